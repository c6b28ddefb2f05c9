#include "recorder/acl/message_groups.h"

#include <stdlib.h>

#include "generated/meaning/parameter_positions.h"
#include "hccl/hccl.h"
#include "recorder/acl/bytes.h"
#include "recorder/agent/memory.h"

namespace acltape::acl_agent {
namespace {

// A message of a group that is open.
struct Gathered {
  HcclSendRecvItem item;
  uint64_t communicator;  // 0: a batch has taken it
  uint64_t stream;
};

__thread uint32_t t_depth = 0;
// An array of Gathered.
__thread Bytes t_gathered;

// HcclSend and HcclRecv have the same parameters but for their names.
namespace position = meaning::position::HcclSend;
static_assert(position::kSendBuf == meaning::position::HcclRecv::kRecvBuf &&
              position::kCount == meaning::position::HcclRecv::kCount &&
              position::kDataType == meaning::position::HcclRecv::kDataType &&
              position::kDestRank == meaning::position::HcclRecv::kSrcRank &&
              position::kComm == meaning::position::HcclRecv::kComm &&
              position::kStream == meaning::position::HcclRecv::kStream);

// The messages of one communicator and stream, as arguments of HcclBatchSendRecv.
class Batch {
 public:
  ~Batch() { free(items_.data); }

  // Takes the messages of the first communicator and stream that are left; false: there are none.
  bool TakeFrom(Bytes& gathered) {
    items_.Clear();
    auto* messages = reinterpret_cast<Gathered*>(gathered.data);
    const size_t count = gathered.size / sizeof(Gathered);
    uint64_t communicator = 0, stream = 0;
    for (size_t i = 0; i < count; ++i) {
      Gathered& message = messages[i];
      if (message.communicator == 0) continue;
      if (communicator == 0) {
        communicator = message.communicator;
        stream = message.stream;
      }
      if (message.communicator != communicator || message.stream != stream) continue;
      items_.Add(message.item);
      message.communicator = 0;
    }
    values_[0] = reinterpret_cast<uint64_t>(items_.data);
    values_[1] = items_.size / sizeof(HcclSendRecvItem);
    values_[2] = communicator;
    values_[3] = stream;
    return values_[1] != 0;
  }

  const uint64_t* values() const { return values_; }

 private:
  Bytes items_;
  uint64_t values_[4] = {};
};

using RealGroup = HcclResult (*)();

RealGroup RealGroupFunction(uint32_t function) {
  return reinterpret_cast<RealGroup>(Real(GroupFunctionNumber(function)));
}

// Ends the outermost group. The library begins all batches at once: the first one is recorded
// around that, the others, if there are several communicators or streams, after it.
HcclResult EndGroup(RealGroup end, const void* caller) {
  Bytes gathered = t_gathered;
  t_gathered = Bytes();
  if (gathered.lost) agent::LeaveOut(wire::LeftOut::kCalls);
  const uint32_t call = FunctionOf("HcclBatchSendRecv");
  Batch batch;
  OpenCall open;
  const bool recorded = batch.TakeFrom(gathered) && BeginCall(call, batch.values(), caller, &open);
  const HcclResult result = end();
  if (recorded) EndCall(call, batch.values(), &open, result);
  while (batch.TakeFrom(gathered)) {
    if (BeginCall(call, batch.values(), caller, &open)) {
      EndCall(call, batch.values(), &open, result);
    }
  }
  free(gathered.data);
  return result;
}

}  // namespace

bool IsGathering() { return t_depth != 0; }

void Gather(const CallInfo& info, const uint64_t* values) {
  const bool sends = !info.rules[position::kSendBuf].written;
  t_gathered.Add(
      Gathered{{sends ? HCCL_SEND : HCCL_RECV, reinterpret_cast<void*>(values[position::kSendBuf]),
                values[position::kCount], static_cast<HcclDataType>(values[position::kDataType]),
                static_cast<uint32_t>(values[position::kDestRank])},
               values[position::kComm],
               values[position::kStream]});
}

void ForgetGroup() {
  free(t_gathered.data);
  t_gathered = Bytes();
  t_depth = 0;
}

}  // namespace acltape::acl_agent

extern "C" {

HcclResult HcclGroupStart(void) {
  using namespace acltape::acl_agent;
  const RealGroup start = RealGroupFunction(/*function=*/0);
  if (start == nullptr) return HCCL_E_NOT_SUPPORT;
  const HcclResult result = start();
  if (result == HCCL_SUCCESS) ++t_depth;
  return result;
}

HcclResult HcclGroupEnd(void) {
  using namespace acltape::acl_agent;
  const RealGroup end = RealGroupFunction(/*function=*/1);
  if (end == nullptr) return HCCL_E_NOT_SUPPORT;
  if (t_depth == 0) return end();
  return --t_depth == 0 ? EndGroup(end, __builtin_return_address(0)) : end();
}

}  // extern "C"

namespace acltape::acl_agent {

const WrappedFunction kGroupFunctions[] = {
    {"HcclGroupStart", reinterpret_cast<void*>(&::HcclGroupStart)},
    {"HcclGroupEnd", reinterpret_cast<void*>(&::HcclGroupEnd)},
    {nullptr, nullptr},
};

}  // namespace acltape::acl_agent
