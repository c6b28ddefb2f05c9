#include "acl/loader/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace acltape::acl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuntimeLibrary = "libascendcl.so";

struct LibraryFile {
  const char* name;
  bool expected;  // report it when it is not there
};
// A library comes after those that it needs. Newer vendor releases split the operator library by
// domain.
constexpr LibraryFile kLibraryFiles[] = {
    {kRuntimeLibrary, true},
    {"libnnopbase.so", true},
    {"libopapi.so", true},
    {"libopapi_math.so", false},
    {"libopapi_nn.so", false},
    {"libopapi_cv.so", false},
    {"libopapi_transformer.so", false},
};

char unresolved_mark;
void* const kUnresolved = &unresolved_mark;

[[noreturn]] void FailMissing(const fs::path& where, const std::string& remedy) {
  throw LoadError("device library missing: no " + std::string(kRuntimeLibrary) + " in " +
                  where.string() + "; " + remedy);
}

// The folder inside `path` that holds the libraries, or an empty path.
fs::path FindIn(const fs::path& path) {
  std::error_code ignored;
  for (const fs::path& folder : {path, path / "lib64"}) {
    if (fs::exists(folder / kRuntimeLibrary, ignored)) return folder;
  }
  return {};
}

fs::path FindDirectory(const LibraryOptions& options) {
  std::error_code ignored;
  if (!options.path.empty()) {
    fs::path path = options.path;
    if (fs::is_regular_file(path, ignored)) {
      if (path.filename() != kRuntimeLibrary) {
        throw LoadError("device library missing: " + path.string() + " is not named " +
                        kRuntimeLibrary + "; name that file or the folder that holds it");
      }
      return path.has_parent_path() ? path.parent_path() : fs::path(".");
    }
    fs::path found = FindIn(path);
    if (found.empty()) FailMissing(path, "name the file or the folder that holds it");
    return found;
  }
  if (options.use_toolkit_environment) {
    for (const char* variable : {"ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH"}) {
      const char* value = std::getenv(variable);
      if (value == nullptr || *value == '\0') continue;
      fs::path found = FindIn(value);
      if (found.empty()) {
        FailMissing(fs::path(value) / "lib64",
                    "set " + std::string(variable) + " to an ACL toolkit, or unset it");
      }
      return found;
    }
  }
  fs::path soft = Library::SoftDeviceDirectory();
  fs::path found = FindIn(soft);
  if (found.empty()) FailMissing(soft, "build the target ascendcl, or name another device library");
  return found;
}

}  // namespace

Library::Library(const LibraryOptions& options)
    : operators_(std::make_unique<std::atomic<void*>[]>(2 * size_t{OperatorCount()})) {
  for (size_t i = 0; i < 2 * size_t{OperatorCount()}; ++i) {
    operators_[i].store(kUnresolved, std::memory_order_relaxed);
  }
  Open(FindDirectory(options));
  Resolve();
}

void Library::Open(const fs::path& directory) {
  std::error_code ignored;
  directory_ = fs::absolute(directory, ignored).lexically_normal();
  for (const LibraryFile& file : kLibraryFiles) {
    fs::path path = directory_ / file.name;
    if (!fs::exists(path, ignored)) {
      if (file.expected) absent_.push_back(path.string() + ": no such file");
      continue;
    }
    // Local: two installations may be open in one process.
    void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != nullptr) {
      handles_.push_back(handle);
      continue;
    }
    const char* reason = dlerror();
    std::string text = reason != nullptr ? reason : path.string() + ": cannot be opened";
    if (std::strcmp(file.name, kRuntimeLibrary) == 0) {
      throw LoadError("device library unusable: " + text +
                      "; check that it is built for this machine and that what it needs is on "
                      "LD_LIBRARY_PATH");
    }
    absent_.push_back(text);
  }
}

void Library::Resolve() {
  for (const ApiMember& member : kApiMembers) {
    void* address = Symbol(member.name);
    if (address == nullptr) {
      missing_.emplace_back(member.name);
      continue;
    }
    std::memcpy(reinterpret_cast<char*>(&api_) + member.offset, &address, sizeof(address));
  }
  if (api_.aclInit == nullptr) {
    throw LoadError("device library unusable: " + (directory_ / kRuntimeLibrary).string() +
                    " does not define aclInit; name an ACL runtime library");
  }
}

void* Library::Symbol(const char* name) const {
  for (void* handle : handles_) {
    if (void* address = dlsym(handle, name)) return address;
  }
  return nullptr;
}

void Library::Require(std::initializer_list<std::string_view> names) const {
  std::string lacking;
  for (std::string_view name : names) {
    if (std::find(missing_.begin(), missing_.end(), name) == missing_.end()) continue;
    lacking += (lacking.empty() ? "" : ", ") + std::string(name);
  }
  if (!lacking.empty()) {
    throw LoadError("device library too old or too small: " + directory_.string() +
                    " does not define " + lacking + "; use a newer one");
  }
}

OperatorFunctions Library::Operator(const OperatorInfo& info) const {
  auto resolve = [this](std::atomic<void*>& slot, std::string_view name) {
    void* address = slot.load(std::memory_order_acquire);
    if (address == kUnresolved) {
      // Two threads may both resolve; they store the same address.
      address = Symbol(std::string(name).c_str());
      slot.store(address, std::memory_order_release);
    }
    return address;
  };
  return {resolve(operators_[2 * size_t{info.index}], info.workspace_name),
          resolve(operators_[2 * size_t{info.index} + 1], info.name)};
}

bool Library::IsSoftDevice() const { return Symbol("SoftLaunchKernel") != nullptr; }

std::string Library::description() const {
  const char* kind = IsSoftDevice() ? "soft device" : "ACL library";
  return std::string(kind) + " (" + directory_.string() + ")";
}

fs::path Library::SoftDeviceDirectory() {
  std::error_code ignored;
  fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  return (executable.parent_path() / ".." / "sdk" / "lib64").lexically_normal();
}

}  // namespace acltape::acl
