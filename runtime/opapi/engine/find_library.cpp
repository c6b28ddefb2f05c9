// Finds and opens the kernel library of this process.
#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "generated/kit/stamp.h"
#include "kit/identity.h"
#include "kit/place.h"
#include "runtime/opapi/engine/kernel_library.h"

namespace acltape::opapi {
namespace {

struct Opened {
  const KernelLibrary* library = nullptr;
  std::string why;
  bool no_memory = false;
};

// The folder of this library; where a link to it lies, that of its target.
std::string OwnFolder() {
  Dl_info info;
  char real[PATH_MAX];
  if (dladdr(reinterpret_cast<void*>(&OwnFolder), &info) == 0) return "";
  if (realpath(info.dli_fname, real) == nullptr) return "";
  const std::string file = real;
  return file.substr(0, file.rfind('/'));
}

std::string Places() {
  if (const char* given = std::getenv(kit::kPlacesVariable)) return given;
  std::string own = OwnFolder();
  // The form of this library with fewer exports lies one folder deeper.
  constexpr std::string_view kDeeper = "/kernels";
  if (own.ends_with(kDeeper)) own.resize(own.size() - kDeeper.size());
  std::string places = own + "/kits/%";
  if (const kit::Path cache = kit::CacheFolder(); cache.text[0] != '\0') {
    places += std::string(":") + cache.text + "/torch/%-" ACLTAPE_KIT_STAMP;
  }
  return places;
}

struct Found {
  std::string path;  // empty when there is none
  std::string why;   // then one sentence
};

Found InPlaces(const char* identity, const std::string& otherwise) {
  const kit::Path path = kit::FindInKits(Places().c_str(), identity, kit::kKernelsFile);
  if (path.text[0] != '\0') return {path.text, ""};
  return {"", otherwise};
}

// A process with a libtorch gets the kernels for that one: others would load a second libtorch
// beside it, with a dispatcher and thread pools of its own.
Found FindKernels() {
  const kit::LoadedTorch torch = kit::FindLoadedTorch();
  if (torch.path[0] != '\0') {
    kit::Identity identity;
    if (!kit::IdentityOf(torch.path, &identity)) {
      return {"", std::string("operators have no kernels here: ") + torch.path +
                      " cannot be read; run the program where its libtorch is a file."};
    }
    return InPlaces(identity.text, std::string("operators have no kernels for ") + torch.path +
                                       "; build them with `acltape torch add " + torch.path + "`.");
  }
  const char* folder = std::getenv(kit::kFolderVariable);
  if (folder != nullptr && *folder != '\0') {
    return {std::string(folder) + "/" + kit::kKernelsFile, ""};
  }
  return InPlaces(kit::kDefaultName,
                  "operators have no kernels; build them over an installed PyTorch with "
                  "`acltape torch add PYTHON`.");
}

// OpenBLAS asks again and again, without end, for memory that a limit refuses it: 128 MiB for each
// thread that multiplies. So a process that may not have as much loads no kernels. Empty: it may.
std::string TooLittleMemory() {
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  std::ifstream file("/proc/self/statm");
  rlim_t pages[6] = {};  // in all, resident, shared, text, libraries, data
  for (rlim_t& count : pages) file >> count;
  const rlim_t used = pages[5] * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const char* chosen = std::getenv("OPENBLAS_NUM_THREADS");
  const int64_t threads = chosen != nullptr ? atoll(chosen) : sysconf(_SC_NPROCESSORS_ONLN);
  constexpr rlim_t kPerThread = 128 << 20;
  constexpr rlim_t kBesides = 160 << 20;
  const rlim_t needed =
      kBesides + kPerThread * static_cast<rlim_t>(std::clamp<int64_t>(threads, 1, 1024));
  if (limit.rlim_cur >= used + needed) return "";
  return "not enough memory for the kernels: with " + std::to_string(threads) +
         " BLAS threads they need " + std::to_string(needed >> 20) + " MiB beyond the " +
         std::to_string(used >> 20) +
         " MiB in use; raise the limit (`ulimit -d`) or lower OPENBLAS_NUM_THREADS.";
}

Opened Open() {
  const Found found = FindKernels();
  if (found.path.empty()) return {nullptr, found.why};
  if (std::string why = TooLittleMemory(); !why.empty()) return {nullptr, std::move(why), true};
  void* handle = dlopen(found.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {nullptr, std::string("the kernels do not load: ") + dlerror()};
  const auto function =
      reinterpret_cast<KernelLibraryFunction>(dlsym(handle, kKernelLibrarySymbol));
  const KernelLibrary* library = function == nullptr ? nullptr : function();
  if (library == nullptr || !library->open({acl::FindOperator, acl::OperatorCount()})) {
    return {nullptr, found.path +
                         " does not fit this libopapi.so; remove its folder and build it "
                         "again with `acltape torch add`."};
  }
  return {library, ""};
}

}  // namespace

const KernelLibrary* ThisKernelLibrary(const char** why, bool* no_memory) {
  static const Opened* opened = new Opened(Open());
  *why = opened->why.c_str();
  if (no_memory != nullptr) *no_memory = opened->no_memory;
  return opened->library;
}

}  // namespace acltape::opapi
