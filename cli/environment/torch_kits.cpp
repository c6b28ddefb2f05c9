#include "cli/environment/torch_kits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/environment/installation.h"
#include "cli/environment/interpreter.h"
#include "cli/terminal/progress.h"
#include "generated/kit/stamp.h"
#include "kit/identity.h"
#include "kit/place.h"
#include "storage/checked_row.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kDescription[] = "kit.json";
constexpr char kLibrary[] = "libtorch_cpu.so";

fs::path BuiltInKits() { return LibraryDirectory().parent_path() / "sdk" / "lib64" / "kits"; }

// Empty when the user has no cache.
fs::path CachedKits() {
  const fs::path cache = kit::CacheFolder().text;
  return cache.empty() ? cache : cache / "torch";
}

std::string StampedName(const std::string& name) { return name + "-" ACLTAPE_KIT_STAMP; }

std::string VersionIn(const fs::path& include) {
  // Since 2.9 the numbers stand in a header of their own.
  for (const char* header :
       {"torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"}) {
    std::ifstream in(include / header);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    std::string version;
    for (const char* part : {"MAJOR", "MINOR", "PATCH"}) {
      std::smatch found;
      const std::regex line(fmt::format(R"(#define TORCH_VERSION_{}\s+(\d+))", part));
      if (!std::regex_search(text, found, line)) break;
      version += (version.empty() ? "" : ".") + found[1].str();
    }
    if (!version.empty()) return version;
  }
  return "";
}

// The headers that belong to a library in `folder`: a package has them beside its lib folder, the
// system in the compiler's own search path.
fs::path HeadersBeside(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> candidates = {folder.parent_path() / "include"};
  if (folder.string().rfind("/usr/lib", 0) == 0) candidates.emplace_back("/usr/include");
  for (const fs::path& include : candidates) {
    if (fs::exists(include / "torch/library.h", ignored)) return fs::canonical(include, ignored);
  }
  return {};
}

// libc10.so lies beside libtorch_cpu.so, in distributions with a version in its name.
fs::path FindC10(const fs::path& library) {
  std::error_code ignored;
  const fs::path plain = library.parent_path() / "libc10.so";
  if (fs::exists(plain, ignored)) return plain;
  for (const auto& entry : fs::directory_iterator(library.parent_path(), ignored)) {
    if (entry.path().filename().string().rfind("libc10.so", 0) == 0) return entry.path();
  }
  return plain;
}

// The PyTorch whose library is found below `folder`, or nothing.
std::optional<Torch> TorchIn(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& below : {fs::path("lib"), fs::path("torch/lib"), fs::path()}) {
    const fs::path library = folder / below / kLibrary;
    if (!fs::exists(library, ignored)) continue;
    return FindTorch(library.string());
  }
  return std::nullopt;
}

std::optional<Kit> ReadKit(const fs::path& folder) {
  std::ifstream in(folder / kDescription);
  const auto json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  Kit kit;
  kit.folder = folder;
  kit.identity = json.value("identity", "");
  kit.torch_version = json.value("torch", "");
  kit.library = json.value("library", "");
  return kit;
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Holds other builds of the same kit off. The file stays: to remove it would let two in.
class BuildLock {
 public:
  explicit BuildLock(const fs::path& file) {
    fd_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ >= 0) flock(fd_, LOCK_EX);
  }
  ~BuildLock() {
    if (fd_ >= 0) close(fd_);
  }
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;

 private:
  int fd_ = -1;
};

[[noreturn]] void CannotBuild(const Torch& torch, const std::string& why) {
  throw Error(ErrorKind::kDevice,
              fmt::format("no kit for {} could be built: {}", torch.library.string(), why));
}

// Runs a step of the build; what it prints goes to the log. Ninja's lines move the bar.
void RunStep(const std::vector<std::string>& words, const Torch& torch, const fs::path& log,
             Progress& progress) {
  std::ofstream out(log, std::ios::app);
  const auto show = [&](const std::string& line) {
    out << line << '\n';
    int done = 0, total = 0;
    if (std::sscanf(line.c_str(), "[%d/%d]", &done, &total) == 2) progress.Update(done, total);
  };
  const ProgramOutput output = RunProgram(words, Complaints::kJoined, show);
  out.flush();
  if (output.started && output.exit_code == 0) return;
  progress.Clear();
  if (!output.started || output.exit_code == 127) {
    CannotBuild(torch, fmt::format("{} is not installed; install g++, cmake, ninja-build, "
                                   "pkg-config and libxxhash-dev.",
                                   words.front()));
  }
  CannotBuild(torch, fmt::format("{} failed with code {}; {} has what it printed.", words.front(),
                                 output.exit_code, log.string()));
}

// Kits of this libtorch that an earlier acltape of this place had built are of no use to anyone.
void RemoveStale(const Kit& kit) {
  std::error_code ignored;
  for (const Kit& other : AllKits()) {
    if (other.built_in || other.current || other.identity != kit.identity) continue;
    std::ifstream in(other.folder / kDescription);
    const auto json = nlohmann::json::parse(in, nullptr, false);
    if (json.is_object() && json.value("builder", "") == LibraryDirectory().string()) {
      fs::remove_all(other.folder, ignored);
    }
  }
}

// Processes without a libtorch take the default kit; the first one built is it.
void MakeDefault(const Kit& kit) {
  std::error_code ignored;
  const fs::path link = CachedKits() / StampedName(kit::kDefaultName);
  if (fs::exists(BuiltInKits() / kit::kDefaultName / kit::kKernelsFile, ignored)) return;
  if (fs::exists(link, ignored)) return;
  fs::remove(link, ignored);
  fs::create_directory_symlink(kit.folder.filename(), link, ignored);
}

}  // namespace

Torch FindTorch(const std::string& what) {
  std::error_code ignored;
  const fs::path path = what;
  if (fs::is_regular_file(path, ignored) && path.filename().string().rfind(kLibrary, 0) == 0) {
    Torch torch;
    torch.library = fs::canonical(path, ignored);
    torch.include = HeadersBeside(path.parent_path());
    if (torch.include.empty() || torch.include == "/usr/include") {
      // Debian's package folder holds links; the headers beside the link are the library's own.
      const fs::path own = HeadersBeside(torch.library.parent_path());
      if (!own.empty()) torch.include = own;
    }
    torch.version = VersionIn(torch.include);
    kit::Identity identity;
    if (!kit::IdentityOf(torch.library.c_str(), &identity)) {
      throw Error(ErrorKind::kUsage, fmt::format("{} cannot be read.", torch.library.string()));
    }
    torch.identity = identity.text;
    return torch;
  }
  if (fs::is_directory(path, ignored)) {
    if (auto torch = TorchIn(path)) return *torch;
    for (const char* python : {"bin/python3", "bin/python"}) {
      if (fs::exists(path / python, ignored)) return FindTorch((path / python).string());
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("there is no {} in {}, its lib or torch/lib; name a Python interpreter "
                            "that imports torch, or the folder of the package torch.",
                            kLibrary, what));
  }
  if (auto torch = TorchOf(path)) return *torch;
  throw Error(ErrorKind::kUsage,
              fmt::format("'{}' is no Python interpreter that finds a package torch, and no folder "
                          "that holds one; install PyTorch for it or name another.",
                          what));
}

std::optional<Torch> TorchOf(const fs::path& interpreter) {
  const fs::path found = FindExecutable(interpreter.string());
  if (found.empty()) return std::nullopt;
  const fs::path package = AskInterpreter(found).torch;
  return package.empty() ? std::nullopt : TorchIn(package);
}

std::vector<Kit> AllKits() {
  std::vector<Kit> kits;
  std::error_code ignored;
  if (auto kit = ReadKit(BuiltInKits() / kit::kDefaultName)) {
    kit->built_in = true;
    kits.push_back(*kit);
  }
  std::vector<Kit> cached;
  for (const auto& entry : fs::directory_iterator(CachedKits(), ignored)) {
    if (!entry.is_directory(ignored) || entry.is_symlink(ignored)) continue;
    auto kit = ReadKit(entry.path());
    if (!kit) continue;
    kit->current = entry.path().filename() == StampedName(kit->identity);
    cached.push_back(*kit);
  }
  std::sort(cached.begin(), cached.end(),
            [](const Kit& a, const Kit& b) { return a.folder < b.folder; });
  kits.insert(kits.end(), cached.begin(), cached.end());
  return kits;
}

std::optional<Kit> FindKit(const std::string& identity) {
  for (const Kit& kit : AllKits()) {
    if (kit.current && kit.identity == identity) return kit;
  }
  return std::nullopt;
}

std::string KitPlaces() {
  std::string places = (BuiltInKits() / "%").string();
  if (const fs::path cached = CachedKits(); !cached.empty()) {
    places += ":" + (cached / StampedName("%")).string();
  }
  return places;
}

BuildReport BuildKit(const Torch& torch) {
  const fs::path cache = CachedKits();
  if (cache.empty()) CannotBuild(torch, "there is no home folder; set ACLTAPE_CACHE to a folder.");
  if (torch.version.empty()) {
    CannotBuild(torch,
                "its headers are not installed beside it (torch/library.h); a PyTorch from a "
                "wheel brings them.");
  }
  std::error_code error;
  fs::create_directories(cache, error);
  if (access(cache.c_str(), W_OK) != 0) {
    CannotBuild(torch, fmt::format("{} cannot be written; set ACLTAPE_CACHE to a folder that can.",
                                   cache.string()));
  }
  const std::string name = StampedName(torch.identity);
  const BuildLock lock(cache / (name + ".lock"));
  if (auto kit = FindKit(torch.identity)) return {*kit};

  const auto begin = std::chrono::steady_clock::now();
  const double cpu_before = CpuSeconds();
  const fs::path log = cache / (name + ".log");
  const fs::path work = cache / fmt::format(".{}-{}", name, getpid());
  fs::remove_all(work, error);
  fs::remove(log, error);
  Progress progress(fmt::format("building the kit for torch {}", torch.version));
  RunStep({"cmake", "-S", (SourceDirectory() / "kit/project").string(), "-B",
           (work / "build").string(), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
           "-DACLTAPE_PREFIX=" + LibraryDirectory().parent_path().string(),
           "-DACLTAPE_KIT_FOLDER=" + (work / "kit").string(),
           "-DTORCH_INCLUDE_DIR=" + torch.include.string(),
           "-DTORCH_CPU_LIBRARY=" + torch.library.string(),
           "-DC10_LIBRARY=" + FindC10(torch.library).string()},
          torch, log, progress);
  RunStep({"cmake", "--build", (work / "build").string()}, torch, log, progress);
  progress.Clear();
  const nlohmann::json description = {{"identity", torch.identity},
                                      {"torch", torch.version},
                                      {"library", torch.library.string()},
                                      {"builder", LibraryDirectory().string()}};
  std::ofstream(work / "kit" / kDescription) << description.dump() << '\n';
  const fs::path folder = cache / name;
  fs::remove_all(folder, error);
  fs::rename(work / "kit", folder, error);
  if (error) CannotBuild(torch, fmt::format("{} ({}).", folder.string(), error.message()));
  fs::remove_all(work, error);
  fs::remove(log, error);

  BuildReport report;
  report.kit = *ReadKit(folder);
  report.cpu_seconds = CpuSeconds() - cpu_before;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  report.wall_seconds = wall.count();
  RemoveStale(report.kit);
  MakeDefault(report.kit);
  return report;
}

namespace {

// Builds the kit when it is missing; says what it does, and what hinders it, on stderr.
bool EnsureKit(const Torch& torch) {
  if (FindKit(torch.identity)) return true;
  fmt::print(stderr, "acltape: first use of torch {} ({}): its kit is built once.\n", torch.version,
             torch.library.string());
  try {
    const BuildReport report = BuildKit(torch);
    fmt::print(stderr, "acltape: the kit is in {} ({:.0f} s, {:.0f} s of processor time).\n",
               report.kit.folder.string(), report.wall_seconds, report.cpu_seconds);
    return true;
  } catch (const Error& error) {
    fmt::print(stderr, "acltape: {}\n", error.what());
    return false;
  }
}

}  // namespace

void PrepareKitFor(const std::vector<std::string>& command) {
  const fs::path interpreter = NamedInterpreter(command);
  if (interpreter.empty()) return;
  try {
    if (const auto torch = TorchOf(interpreter)) EnsureKit(*torch);
  } catch (const Error& error) {
    fmt::print(stderr, "acltape: {}\n", error.what());
  }
}

namespace {
bool other_kit = false;
}  // namespace

bool UsesOtherKit() { return other_kit; }

void UseKit(const std::string& identity, const std::string& library) {
  // The user's own choice wins.
  if (std::getenv(kit::kFolderVariable) != nullptr) return;
  if (const auto found = FindKit(identity)) {
    setenv(kit::kFolderVariable, found->folder.c_str(), 1);
    return;
  }
  other_kit = true;
  // The trace may come from anywhere. The file that it names is neither opened nor built against:
  // that would run what somebody put there.
  fmt::print(
      stderr,
      "acltape: the trace was recorded with {}, for which there is no kit; the operators of "
      "the default kit are used, whose results can differ in their last bits; where that file "
      "is yours, `acltape torch add` builds its kit.\n",
      storage::ShownValue(library));
}

}  // namespace acltape::cli
