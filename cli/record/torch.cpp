#include <fmt/format.h>

#include "cli/environment/torch_kits.h"
#include "cli/frame/options.h"
#include "cli/record/commands.h"
#include "cli/terminal/table.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

namespace fs = std::filesystem;

int64_t BytesOf(const fs::path& folder) {
  std::error_code ignored;
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_regular_file(ignored)) bytes += static_cast<int64_t>(entry.file_size(ignored));
  }
  return bytes;
}

std::string StateOf(const Kit& kit) {
  std::error_code ignored;
  if (!fs::exists(kit.library, ignored)) return "its libtorch is gone";
  if (!kit.current) return "of another acltape";
  return kit.built_in ? "ready, built in" : "ready";
}

class TorchCommand final : public Command {
 public:
  std::string Name() const override { return "torch"; }
  std::string Summary() const override {
    return "Build, list and remove kits: what acltape needs for one PyTorch";
  }
  std::string Examples() const override {
    return "  acltape torch add                    # for the python3 on the path\n"
           "  acltape torch add ~/venv/bin/python3\n"
           "  acltape torch list\n"
           "  acltape torch remove 2.13.0\n"
           "record, run and replay build a missing kit on their own. A kit is the torch plug-in "
           "and\n"
           "the operator kernels, compiled for one libtorch into the cache ($ACLTAPE_CACHE, else\n"
           "~/.cache/acltape); it takes g++, cmake and some minutes of processor time, once.";
  }

  void Declare(CLI::App& app) override {
    app.add_option("action", action_, "add, list or remove")
        ->check(CLI::IsMember({"add", "list", "remove"}))
        ->capture_default_str();
    app.add_option(
        "what", what_,
        "add: a Python interpreter, the folder of a package torch, or a libtorch_cpu.so\n"
        "remove: a torch version, an identity, stale or all");
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (action_ == "add") return Add();
    if (action_ == "remove") return Remove();
    return List();
  }

 private:
  int Add() {
    const Torch torch = FindTorch(what_.empty() ? "python3" : what_);
    if (const auto kit = FindKit(torch.identity)) {
      fmt::print("torch {} has its kit: {}\n", kit->torch_version, kit->folder.string());
      return kExitFine;
    }
    const BuildReport report = BuildKit(torch);
    fmt::print("built the kit for torch {} in {:.0f} s, {:.0f} s of processor time: {}\n",
               torch.version, report.wall_seconds, report.cpu_seconds, report.kit.folder.string());
    return kExitFine;
  }

  int List() {
    Table table({"torch", "identity", "state", "size", "library", "folder"});
    for (const Kit& kit : AllKits()) {
      table.Add({kit.torch_version, kit.identity, StateOf(kit), HumanBytes(BytesOf(kit.folder)),
                 kit.library.string(), kit.folder.string()});
    }
    fmt::print("{}", table.ToText(format_));
    return kExitFine;
  }

  int Remove() {
    if (what_.empty()) {
      throw Error(ErrorKind::kUsage,
                  "remove needs a torch version, an identity, stale or all; `acltape torch list` "
                  "shows them.");
    }
    int removed = 0;
    for (const Kit& kit : AllKits()) {
      const bool stale = !kit.current || !fs::exists(kit.library);
      const bool meant = what_ == "all" || (what_ == "stale" && stale) ||
                         what_ == kit.torch_version || what_ == kit.identity;
      if (kit.built_in || !meant) continue;
      fs::remove_all(kit.folder);
      fmt::print("removed {}\n", kit.folder.string());
      ++removed;
    }
    if (removed == 0 && what_ != "all" && what_ != "stale") {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("no kit in the cache is called '{}'; `acltape torch list` shows them.",
                      what_));
    }
    return kExitFine;
  }

  std::string action_ = "list";
  std::string what_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeTorchCommand() { return std::make_unique<TorchCommand>(); }

}  // namespace acltape::cli
