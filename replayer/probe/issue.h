// Issues one recorded call again as it was.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "analyzer/calls/work.h"
#include "replayer/device/device.h"
#include "replayer/probe/objects.h"

namespace acltape::replayer::probe {

class Issuer {
 public:
  Issuer(Device& device, const analyzer::Work& work, ProbeObjects& objects)
      : device_(device), work_(work), objects_(objects) {}

  // Makes the call in this thread and returns its code. Returns nothing if the probe does not know
  // the call or the device cannot run the operator. With `pin` the host memory of a copy is pinned.
  std::optional<int32_t> Issue(size_t call, bool pin);
  // True if a wait was given up, because the device stood still.
  bool stood_still() const { return stood_still_; }

 private:
  using Arguments = std::vector<storage::Argument>;
  // The parts of a recorded call that issuing needs.
  struct Call {
    size_t index = 0;
    const analyzer::WorkForm* form = nullptr;
    Arguments arguments;
    aclrtStream stream = nullptr;  // null where it names none
    bool pin = false;
    // Returns where memory work goes. The host waits for copies and fills that are not
    // asynchronous.
    OnStream on() const {
      return analyzer::WaitsOnHost(form->acl_kind()) ? OnStream() : OnStream(stream);
    }
    int64_t Integer(int position) const {
      return position < 0 || position >= static_cast<int>(arguments.size())
                 ? 0
                 : arguments[position].integer;
    }
    int64_t object() const { return Integer(form->function->object); }
    int64_t detail() const { return Integer(form->function->detail); }
    uint32_t flag() const {
      return analyzer::IsExternalFlag(detail()) ? ACL_EVENT_WAIT_EXTERNAL : 0;
    }
  };

  using Code = std::optional<int32_t>;
  Code Issue(const Call& call);
  Code Operator(const Call& call);
  Code Copy(const Call& call);
  Code CopyRows(const Call& call);
  Code StreamDestroy(const Call& call);
  Code EventDestroy(const Call& call);
  Code EventQuery(const Call& call);
  Code EventTime(const Call& call);
  Code UpdateBegin(const Call& call);
  Code Memory(const Call& call);
  Code PoolMemory(const Call& call);
  Code ExchangeMode(const Call& call);
  // The host waits for work that may need work that the stretch does not hold.
  Code Wait(const std::function<CallResult(int limit_ms)>& wait);
  aclrtEvent EventOf(const Call& call) { return objects_.EventOf(call.object()).get(); }

  Device& device_;
  const analyzer::Work& work_;
  ProbeObjects& objects_;
  bool stood_still_ = false;
};

}  // namespace acltape::replayer::probe
