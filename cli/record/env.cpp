#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/environment/adapter_names.h"
#include "cli/environment/interpreter.h"
#include "cli/environment/soft_environment.h"
#include "cli/environment/torch_kits.h"
#include "cli/frame/options.h"
#include "cli/record/commands.h"
#include "cli/terminal/table.h"
#include "storage/error.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

class EnvCommand final : public Command {
 public:
  std::string Name() const override { return "env"; }
  std::string Summary() const override {
    return "Print the settings with which a shell's programs run on the soft device";
  }
  std::string Examples() const override {
    return "  eval \"$(acltape env)\" && python3 train.py\n"
           "  acltape env .venv/bin/python3\n"
           "  acltape env @check\n"
           "@check tells for each library of the interpreter's NPU adapter which names it needs\n"
           "and who defines them; it ends with code 1 when one is left that nobody defines."_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("python", python_, "The interpreter that will run (default: python3 of PATH)");
    AddFlag(app, "check", check_, "Tell which names the installed NPU adapter needs");
    AddFormatOption(app, format_);
  }

  int Run() override {
    const std::filesystem::path interpreter =
        python_.empty() ? FindInterpreter({}) : FindExecutable(python_);
    if (interpreter.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("there is no interpreter {}; name one: acltape env /path/to/python3.",
                              python_.empty() ? "python3 on PATH" : python_));
    }
    if (check_) return Check(interpreter);
    const auto settings = SoftEnvironment(interpreter);
    PrepareKitFor({interpreter.string()});
    for (const auto& [name, value] : settings) {
      fmt::print("export {}={}\n", name, storage::ShellWord(value));
    }
    return kExitFine;
  }

 private:
  int Check(const std::filesystem::path& interpreter) const {
    const InstalledPackages packages = AskInterpreter(interpreter);
    if (packages.torch_npu.empty()) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("{} has no torch_npu; install it, or name the interpreter that has it.",
                      interpreter.string()));
    }
    const AdapterNames names = ReadAdapterNames(packages, ToolkitFolder() / "lib64");
    std::set<std::string> generated;
    if (HasLeftovers(names)) {
      const auto made = GeneratedNames(LeftoversFolder(names));
      generated.insert(made.begin(), made.end());
    }
    Table table({"library", "needed", "exported", "generated", "unresolved", "remark"});
    int64_t unresolved_of_all = 0;
    for (const AdapterLibrary& library : names.libraries) {
      const auto exported = static_cast<int64_t>(library.offered.size());
      const auto left = static_cast<int64_t>(library.leftovers.size());
      const int64_t made =
          std::count_if(library.leftovers.begin(), library.leftovers.end(),
                        [&](const std::string& name) { return generated.count(name) > 0; });
      unresolved_of_all += left - made;
      table.Add({library.file, exported + left, exported, made, left - made,
                 library.missing_files.empty()
                     ? ""
                     : fmt::format("generated: {}", fmt::join(library.missing_files, ", "))});
    }
    fmt::print("{}", table.ToText(format_));
    if (format_ == Format::kTable) {
      fmt::print("{} unresolved\n", unresolved_of_all);
    }
    return unresolved_of_all == 0 ? kExitFine : kExitDifferences;
  }

  std::string python_;
  bool check_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeEnvCommand() { return std::make_unique<EnvCommand>(); }

}  // namespace acltape::cli
