// Callbacks that programs register by a name: states of streams and devices, aborts of tasks.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device/call.h"

namespace acltape::device {

template <typename Callback>
class NamedCallbacks {
 public:
  // Registers the callback, or takes it away when it is NULL. A name is registered once.
  aclError Set(const char* name, Callback callback, void* args, const char* call) {
    if (aclError code = CheckPointer(name, call, "regName"); code != ACL_SUCCESS) return code;
    if (*name == '\0') return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: regName is empty", call);
    std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.name == name; });
    if ((found != rows_.end()) == (callback != nullptr)) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: a callback of the name %s is %s", call, name,
                  callback != nullptr ? "registered already" : "not registered");
    }
    if (callback != nullptr) {
      rows_.push_back({name, callback, args});
    } else {
      rows_.erase(found);
    }
    return ACL_SUCCESS;
  }

  // Calls every callback in the order of registration, with its own args at the end. A callback may
  // register others.
  template <typename Call>
  void ForEach(const Call& call) {
    std::vector<Row> rows;
    {
      std::lock_guard lock(mutex_);
      rows = rows_;
    }
    for (const Row& row : rows) call(row.callback, row.args);
  }

 private:
  struct Row {
    std::string name;
    Callback callback;
    void* args;
  };

  std::mutex mutex_;
  std::vector<Row> rows_;
};

// Calls the callbacks of aclrtRegStreamStateCallback (CB-11). Called without locks.
void CallStreamStateCallbacks(const Stream& stream, aclrtStreamState state);

}  // namespace acltape::device
