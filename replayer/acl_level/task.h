// One piece of device work of an ACL program, with its arguments bound to addresses. Eager
// execution issues tasks; a capture stores them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/acl/acl_program.h"
#include "replayer/acl_level/collective_call.h"
#include "replayer/acl_level/known_bytes.h"
#include "replayer/acl_level/rooms.h"
#include "replayer/device/bound_call.h"
#include "replayer/values/contents.h"

namespace acltape::replayer::acl_level {

// A copy: `bytes` bytes, or `rows` rows of `width` bytes. `rows` is 0 for plain copies.
struct Transfer {
  uint8_t* to = nullptr;
  const uint8_t* from = nullptr;
  aclrtMemcpyKind kind = ACL_MEMCPY_DEVICE_TO_HOST;
  size_t bytes = 0;
  size_t rows = 0, width = 0, to_pitch = 0, from_pitch = 0;
};
// Throws CallFailed.
void Issue(const DeviceWork& work, const Transfer& copy, OnStream on);

// A content that is read from the device right after a task, to compare it with the recorded
// content.
struct Take {
  const analyzer::AclCall* call = nullptr;
  const storage::Snapshot* snapshot = nullptr;
  // The place of the content. For two-dimensional copies `from_pitch` is that of the device;
  // `bytes` and `to_pitch` are those of the host side.
  Transfer copy;
  // The parts to compare, relative to `copy.from`. The other bytes are not known.
  std::vector<analyzer::ByteRange> known;
  bool complete = false;  // `known` covers the whole content
  bool host = false;      // `copy.from` is pinned host memory
};

struct AclTask {
  enum class Work : uint8_t {
    kOperator,
    kCopy,
    kFill,
    kFill32,
    kValueWrite,
    kReduce,
    kRandom,
    kCollective,
    kRecord,
    kWait,
    kReset,
    kNothing  // there is only a content to take
  };
  const analyzer::AclCall* call = nullptr;
  Work work = Work::kOperator;
  std::shared_ptr<const BoundCall> bound;  // kOperator
  uint8_t* workspace = nullptr;            // workspace of the program; null: it has none
  uint64_t workspace_bytes = 0;
  // The memory of a copy; of a fill and a value write `to` and `bytes`. Of a two-dimensional copy
  // `bytes` is the length of the source range. An end in host memory is null until the issuer gives
  // it: it uploads `content`, or nothing looks at the result of a download.
  Transfer copy;
  Bytes content;  // content of an upload: recorded bytes from `content_at` on
  size_t content_at = 0;
  uint64_t value = 0;  // for fills and value writes; of a reduction its kind
  uint32_t flag = 0;   // for value writes, records and waits; of a reduction the type of its data
  std::shared_ptr<const aclrtRandomNumTaskInfo> random;  // kRandom
  std::shared_ptr<const CollectiveCall> collective;      // kCollective
  int64_t event = 0;  // for records, waits and resets, as recorded
  std::vector<Take> takes;

  bool IsAboutEvent() const {
    return work == Work::kRecord || work == Work::kWait || work == Work::kReset;
  }
  const uint8_t* Content() const { return content->data() + content_at; }
  // Number of bytes of host memory that the issuer gives for a download.
  size_t LandingBytes() const {
    if (work != Work::kCopy || copy.to != nullptr) return 0;
    return copy.rows == 0 ? copy.bytes : (copy.rows - 1) * copy.to_pitch + copy.width;
  }
};
// Issues a task that is neither an operator nor about an event. Throws CallFailed.
void IssueMemoryWork(const DeviceWork& work, const AclTask& task, OnStream on);

// Makes tasks from calls.
class RankMeeting;

class TaskBinder {
 public:
  // With other ranks, collectives run. With null they write what the recording received. So do
  // operators that communicate.
  TaskBinder(Device& device, const analyzer::AclProgram& program, const Rooms& rooms,
             const RankMeeting* ranks);

  // Returns the tasks of device work that changes memory. This is one task, or none if the
  // device has nothing to do. An operator that the device refuses becomes uploads of its recorded
  // results.
  std::vector<AclTask> Bind(const analyzer::AclCall& call);
  // Returns the tasks of a captured call of a graph. Copies from the host read pinned memory.
  std::vector<AclTask> BindStored(const analyzer::AclCall& call);

  // The address of the memory that an argument of the call names, or an element of a list. Throws
  // Error kTrace if no recorded call allocated it.
  uint8_t* AddressAt(const analyzer::AclCall& call, int position, int element = 0) const;

  // Asks the device for every operator if it can run it. A refused operator is replaced by its
  // recorded results. Throws Error kTrace if the trace lacks them.
  void Probe();
  // The reason of a refusal, with the calls concerned. The map is by name of the operator.
  struct Refusal {
    std::string reason;
    int64_t first_call = 0;
    int64_t calls = 0;
  };
  const std::map<std::string, Refusal>& refusals() const { return refusals_; }

  // True if recorded results take the place of the call.
  bool IsRefused(const analyzer::AclCall& call) const {
    const auto form = refused_forms_.find(call.form);
    return form != refused_forms_.end() && form->second;
  }

  // Returns the recorded bytes, or null if the trace does not hold them.
  Bytes Payload(const std::string& digest);

 private:
  AclTask BindOperator(const analyzer::AclCall& call);
  std::shared_ptr<const BoundCall> Bound(const analyzer::AclCall& call, bool anywhere);
  void RenameGroups(const analyzer::AclCall& call,
                    analyzer::lowering::Invocation& invocation) const;
  std::vector<AclTask> Substitute(const analyzer::AclCall& call);
  std::vector<AclTask> BindCopy(const analyzer::AclCall& call, bool stored);
  AclTask BindFill(const analyzer::AclCall& call) const;
  AclTask BindReduce(const analyzer::AclCall& call) const;
  AclTask BindRandom(const analyzer::AclCall& call) const;
  std::vector<AclTask> BindCollective(const analyzer::AclCall& call);
  uint8_t* AddressOf(const analyzer::TensorUse& use) const;

  Device& device_;
  const analyzer::AclProgram& program_;
  const Rooms& rooms_;
  const RankMeeting* const ranks_;
  Block nothing_;  // the address of tensors without elements
  std::unordered_map<std::string, std::shared_ptr<const BoundCall>> bound_;
  std::unordered_map<int64_t, bool> refused_forms_;
  std::map<std::string, Refusal> refusals_;
  std::unordered_map<std::string, Bytes> payloads_;
  int64_t payload_bytes_ = 0;
};

}  // namespace acltape::replayer::acl_level
