// An ACL installation opened at run time: the soft device or a vendor's libraries, through one
// table of function pointers.
//
// Libraries are looked up by the vendor's names and resolved symbol by symbol, so that an older or
// smaller installation still opens: what it lacks is null in api() and listed in missing(). They
// stay loaded until the process ends, because devices keep threads and run destructors late.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "acl/invoke/operator_table.h"
#include "generated/acl/api.h"

namespace acltape::acl {

// One sentence: what is wrong, where, and what to do.
class LoadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct LibraryOptions {
  // A directory that holds libascendcl.so (itself or in lib64), or the file. Empty: the toolkit
  // variables if asked for below and set, else the soft device built with this program.
  std::string path;
  // True: an empty path means ASCEND_TOOLKIT_HOME or, where that is not set, ASCEND_HOME_PATH.
  bool use_toolkit_environment = false;
};

// The two phases of an operator; null where the library lacks it.
struct OperatorFunctions {
  void* prepare = nullptr;  // aclnnXGetWorkspaceSize
  void* launch = nullptr;   // aclnnX
};

class Library {
 public:
  // Throws LoadError when libascendcl.so cannot be found or opened, or does not define aclInit. The
  // operator libraries may be absent; see absent().
  explicit Library(const LibraryOptions& options = {});

  const Api& api() const { return api_; }

  // Names of interface functions that no opened library defines, in table order.
  const std::vector<std::string>& missing() const { return missing_; }

  // Expected library files that were not found or did not open, each with the reason.
  const std::vector<std::string>& absent() const { return absent_; }

  // Throws LoadError naming every function of `names` that is missing.
  void Require(std::initializer_list<std::string_view> names) const;

  // Resolved at the first call and kept. Usable from any thread.
  OperatorFunctions Operator(const OperatorInfo& info) const;

  // Address of any symbol of the opened libraries, or null; not cached.
  void* Symbol(const char* name) const;

  // The folder the libraries were opened from.
  const std::filesystem::path& directory() const { return directory_; }

  // True if the device computes in this process, on the CPU.
  bool IsSoftDevice() const;
  // "soft device (…/sdk/lib64)" or "ACL library (…/lib64)", for reports.
  std::string description() const;

  // The default folder of the soft device: sdk/lib64 beside the folder of the running executable.
  static std::filesystem::path SoftDeviceDirectory();

 private:
  void Open(const std::filesystem::path& directory);
  void Resolve();

  std::filesystem::path directory_;
  std::vector<void*> handles_;
  Api api_;
  std::vector<std::string> missing_;
  std::vector<std::string> absent_;
  // Two slots per operator: prepare, launch. kUnresolved until asked for.
  std::unique_ptr<std::atomic<void*>[]> operators_;
};

}  // namespace acltape::acl
