#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "acl/loader/library.h"
#include "cli/environment/installation.h"
#include "cli/environment/python_module.h"
#include "cli/environment/torch_kits.h"
#include "cli/frame/options.h"
#include "cli/record/commands.h"
#include "cli/terminal/table.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kInstallTorch[] = "apt-get install python3-torch python3-torchvision";
constexpr char kInstallBlas[] = "apt-get install libopenblas0-pthread";

// Runs in the interpreter that is looked at. A product first, so that the BLAS is loaded and
// mapped.
constexpr char kProbe[] = R"(
import json, sys
import torch
torch.mm(torch.ones(8, 8), torch.ones(8, 8))
maps = {line.split()[-1] for line in open('/proc/self/maps') if '/' in line}
blas = sorted(path for path in maps
              if any(word in path.rsplit('/', 1)[-1] for word in ('blas', 'mkl_rt', 'libmkl')))
try:
    import torchvision
    vision = torchvision.__version__
except Exception:
    vision = None
print(json.dumps({'python': sys.version.split()[0], 'torch': torch.__version__,
                  'file': torch.__file__, 'threads': torch.get_num_threads(), 'blas': blas,
                  'vision': vision}))
)";

enum class Health { kOk, kInfo, kWarning, kMissing };

const char* Word(Health health) {
  static constexpr const char* kWords[] = {"ok", "info", "warning", "missing"};
  return kWords[static_cast<size_t>(health)];
}

struct Row {
  Health health;
  std::string subject;
  std::string found;
  std::string remedy;
};
using Rows = std::vector<Row>;

std::vector<fs::path> PythonCandidates() {
  std::vector<fs::path> candidates;
  if (const char* chosen = std::getenv("ACLTAPE_PYTHON")) candidates.emplace_back(chosen);
  for (fs::path& path : FindOnPath("python3")) candidates.push_back(std::move(path));
  candidates.emplace_back("/usr/bin/python3");
  // /bin is /usr/bin on Debian; one file is looked at once.
  std::set<fs::path> seen;
  std::vector<fs::path> unique;
  for (const fs::path& path : candidates) {
    std::error_code ignored;
    if (access(path.c_str(), X_OK) == 0 && seen.insert(fs::canonical(path, ignored)).second) {
      unique.push_back(path);
    }
  }
  return unique;
}

void CheckBlas(const nlohmann::json& probe, Rows& rows) {
  std::string names;
  bool optimised = false;
  for (const auto& entry : probe["blas"]) {
    const auto path = entry.get<std::string>();
    names += (names.empty() ? "" : ", ") + path;
    optimised = optimised || path.find("openblas") != std::string::npos ||
                path.find("mkl") != std::string::npos || path.find("blis") != std::string::npos;
  }
  if (names.empty()) {
    rows.push_back({Health::kInfo, "BLAS", "built into libtorch", ""});
  } else if (optimised) {
    rows.push_back({Health::kOk, "BLAS", names, ""});
  } else {
    rows.push_back({Health::kWarning, "BLAS",
                    names + " is the reference BLAS, about twenty times slower than OpenBLAS",
                    kInstallBlas});
  }
}

void CheckKit(const fs::path& python, Rows& rows) {
  const std::optional<Torch> torch = TorchOf(python);
  const std::optional<Kit> kit = torch ? FindKit(torch->identity) : std::nullopt;
  if (kit) {
    rows.push_back({Health::kOk, "kit", kit->folder.string(), ""});
  } else {
    rows.push_back({Health::kWarning, "kit", "none for the torch of this interpreter",
                    "record builds it at its first use, or: acltape torch add " + python.string()});
  }
}

void CheckPythons(Rows& rows) {
  bool chosen = false;
  for (const fs::path& python : PythonCandidates()) {
    const ProgramOutput output = RunProgram({python.string(), "-c", kProbe});
    const auto probe = nlohmann::json::parse(output.text, nullptr, /*allow_exceptions=*/false);
    if (output.exit_code != 0 || probe.is_discarded()) {
      rows.push_back({Health::kInfo, "python", python.string() + ": cannot import torch", ""});
      continue;
    }
    rows.push_back(
        {Health::kOk, "python",
         fmt::format("{}: Python {}, torch {}, {} threads{}", python.string(),
                     probe["python"].get<std::string>(), probe["torch"].get<std::string>(),
                     probe["threads"].get<int>(), chosen ? "" : "; taken where no other is named"),
         ""});
    if (chosen) continue;
    chosen = true;
    rows.push_back(probe["vision"].is_string()
                       ? Row{Health::kOk, "torchvision", probe["vision"].get<std::string>(), ""}
                       : Row{Health::kWarning, "torchvision",
                             "not importable; programs with models of images need it",
                             "apt-get install python3-torchvision"});
    CheckBlas(probe, rows);
    CheckKit(python, rows);
  }
  if (!chosen) {
    rows.push_back({Health::kMissing, "python", "no interpreter imports torch", kInstallTorch});
  }
}

void CheckAgents(Rows& rows) {
  struct Agent {
    const char* subject;
    fs::path file;
    const char* target;
  };
  for (const Agent& agent : {Agent{"agent", AgentLibrary(), "acltape_agent"},
                             Agent{"ACL agent", AclAgentLibrary(), "acltape_acl_agent"}}) {
    if (fs::exists(agent.file)) {
      rows.push_back({Health::kOk, agent.subject, agent.file.string(), ""});
    } else {
      rows.push_back({Health::kMissing, agent.subject, agent.file.string() + " is not there",
                      std::string("ninja -C build ") + agent.target});
    }
  }
}

// True when the soft device's first phase, given nothing, misses its arguments; without a kernel it
// says so before it looks at them. Not asked of a vendor's library, which need not survive it.
bool HasKernel(const acl::OperatorInfo& info, void* prepare) {
  constexpr aclnnStatus kNoKernel = ACLNN_ERR_INNER_FIND_KERNEL_ERROR;
  const std::vector<acl::ArgValue> nothing(info.arg_count);
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  return info.prepare(prepare, nothing.data(), &workspace, &executor) != kNoKernel;
}

// Counts the operators of the table that the opened library exports. Of the soft device it also
// counts those that have a kernel.
std::string OperatorCoverage(const acl::Library& library) {
  const bool soft = library.Symbol("SoftLaunchKernel") != nullptr;
  uint32_t exported = 0;
  uint32_t kernels = 0;
  for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
    const acl::OperatorInfo& info = acl::OperatorAt(i);
    const acl::OperatorFunctions functions = library.Operator(info);
    if (functions.prepare == nullptr || functions.launch == nullptr) continue;
    ++exported;
    if (soft && HasKernel(info, functions.prepare)) ++kernels;
  }
  std::string text = fmt::format("{} of {} operators exported", exported, acl::OperatorCount());
  if (soft) text += fmt::format(", {} with kernels", kernels);
  return text;
}

void CheckDevice(const std::string& subject, const acl::LibraryOptions& options, bool required,
                 Rows& rows) {
  try {
    const acl::Library library(options);
    std::string found = library.description() + ": " + OperatorCoverage(library);
    if (!library.missing().empty()) {
      found += fmt::format("; {} interface functions missing, the first is {}",
                           library.missing().size(), library.missing().front());
    }
    for (const std::string& reason : library.absent()) found += "; " + reason;
    const bool whole = library.absent().empty();
    rows.push_back({whole ? Health::kOk : Health::kWarning, subject, found,
                    whole ? "" : "ninja -C build opapi nnopbase"});
  } catch (const acl::LoadError& error) {
    rows.push_back({required ? Health::kMissing : Health::kWarning, subject, error.what(),
                    required ? "ninja -C build ascendcl opapi nnopbase" : ""});
  }
}

void CheckToolkit(Rows& rows) {
  for (const char* variable : {"ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    acl::LibraryOptions options;
    options.path = value;
    CheckDevice(fmt::format("{}={}", variable, value), options, /*required=*/false, rows);
    return;
  }
  rows.push_back({Health::kInfo, "vendor toolkit",
                  "ASCEND_TOOLKIT_HOME is not set; the soft device is used", ""});
}

void CheckSharedMemory(Rows& rows) {
  const int fd = memfd_create("acltape-doctor", MFD_CLOEXEC);
  if (fd < 0) {
    rows.push_back({Health::kMissing, "shared memory",
                    fmt::format("memfd_create fails: {}", std::strerror(errno)),
                    "allow memfd_create in the container's seccomp profile"});
    return;
  }
  const bool opens = std::ifstream(fmt::format("/proc/{}/fd/{}", getpid(), fd)).good();
  close(fd);
  rows.push_back(opens ? Row{Health::kOk, "shared memory", "memfd_create and /proc work", ""}
                       : Row{Health::kMissing, "shared memory",
                             "/proc/PID/fd cannot be opened by another process", "mount /proc"});
}

void CheckShell(Rows& rows) {
  const ProgramOutput output = RunProgram({"sqlite3", "--version"});
  if (!output.started || output.exit_code != 0) {
    rows.push_back({Health::kWarning, "sqlite3 shell", "not found; `acltape query` works without",
                    "apt-get install sqlite3"});
    return;
  }
  rows.push_back({Health::kOk, "sqlite3 shell", output.text.substr(0, output.text.find(' ')), ""});
}

// Packages that `acltape fleet` takes. Nothing else needs them, so that none is missing.
void CheckFleets(Rows& rows) {
  try {
    RunPythonModule("acltape.fleet.requirements", {}, "fleets are asked by Python",
                    [&rows](const nlohmann::json& said) {
                      const std::string remedy = said.value("remedy", "");
                      rows.push_back({remedy.empty() ? Health::kOk : Health::kInfo,
                                      said.value("subject", ""), said.value("found", ""), remedy});
                    });
  } catch (const Error& error) {
    rows.push_back({Health::kInfo, "fleets", error.what(), ""});
  }
}

class DoctorCommand final : public Command {
 public:
  std::string Name() const override { return "doctor"; }
  std::string Summary() const override {
    return "Say what this machine has, what is missing and how to get it";
  }
  std::string Examples() const override {
    return "  acltape doctor\n"
           "  acltape doctor @device-lib /usr/local/Ascend/ascend-toolkit/latest"_cli;
  }

  void Declare(CLI::App& app) override {
    AddOption(app, "device-lib", device_,
              "Look at this ACL library too (a toolkit folder or libascendcl.so)");
    AddFormatOption(app, format_);
  }

  int Run() override {
    Rows rows;
    rows.push_back({Health::kOk, "processor",
                    fmt::format("{} cores", std::thread::hardware_concurrency()), ""});
    CheckSharedMemory(rows);
    CheckPythons(rows);
    CheckAgents(rows);
    CheckDevice("soft device", {}, /*required=*/true, rows);
    if (!device_.empty()) {
      acl::LibraryOptions options;
      options.path = device_;
      CheckDevice("@device-lib"_cli, options, /*required=*/true, rows);
    }
    CheckToolkit(rows);
    rows.push_back({Health::kInfo, "SQLite library", sqlite3_libversion(), ""});
    CheckShell(rows);
    CheckFleets(rows);

    Table table({"state", "subject", "found", "remedy"});
    bool sound = true;
    for (const Row& row : rows) {
      table.Add({std::string(Word(row.health)), row.subject, row.found, row.remedy});
      sound = sound && row.health != Health::kMissing;
    }
    fmt::print("{}", table.ToText(format_));
    return sound ? kExitFine : kExitDevice;
  }

 private:
  std::string device_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeDoctorCommand() { return std::make_unique<DoctorCommand>(); }

}  // namespace acltape::cli
