// Functions that libraries of the program want called when the process is initialised and finalised
// (INIT-10, INIT-11).
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "acl/acl.h"

namespace acltape::device {

// Functions by the kind of library that registered them.
template <typename Function>
class RegisteredCallbacks {
 public:
  struct Entry {
    aclRegisterCallbackType type;
    Function function;
    void* user_data;
  };

  // False when the type allows only one function and has one.
  bool Add(const Entry& entry) {
    const std::lock_guard lock(mutex_);
    if (entry.type != ACL_REG_TYPE_OTHER) {
      for (const Entry& known : entries_) {
        if (known.type == entry.type) return false;
      }
    }
    entries_.push_back(entry);
    return true;
  }

  // False when it is not there.
  bool Remove(aclRegisterCallbackType type, Function function) {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->type != type || entry->function != function) continue;
      entries_.erase(entry);
      return true;
    }
    return false;
  }

  // In the order in which they were registered. Callbacks may register and take away others.
  std::vector<Entry> All() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

RegisteredCallbacks<aclInitCallbackFunc>& InitCallbacks();
RegisteredCallbacks<aclFinalizeCallbackFunc>& FinalizeCallbacks();

// Calls each with the text of the configuration, until one gives a code that is not success.
aclError CallInitCallbacks(const std::string& configuration);
// Calls all. Gives the first code that is not success.
aclError CallFinalizeCallbacks();

// True between aclInit and the end. `configuration` gets the file's text.
bool IsInitialised(std::string* configuration);

}  // namespace acltape::device
