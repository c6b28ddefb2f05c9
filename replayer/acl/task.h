// One piece of device work of an ACL program with its arguments bound to addresses: what eager
// execution issues and what a capture stores.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/acl_program.h"
#include "replayer/acl/known_bytes.h"
#include "replayer/acl/rooms.h"
#include "replayer/bound_call.h"
#include "replayer/contents.h"

namespace acltape::replayer {

// A content to be compared with a recorded one, where the device has it right after a task.
struct Take {
  const analyzer::AclCall* call = nullptr;
  const storage::Snapshot* snapshot = nullptr;
  const uint8_t* address = nullptr;
  size_t bytes = 0;
  // The parts to compare, relative to `address`; the rest is not known.
  std::vector<analyzer::ByteRange> known;
  bool complete = false;  // `known` is all of it
  bool host = false;      // `address` is pinned host memory
  // Of copies in two dimensions: the device side; the host side is `bytes` long.
  size_t rows = 0, width = 0, to_pitch = 0, from_pitch = 0;
};

struct AclTask {
  enum class Work : uint8_t {
    kOperator,
    kUpload,
    kDownload,
    kCopy,
    kFill,
    kFill32,
    kValueWrite,
    kNothing  // only something to take
  };
  const analyzer::AclCall* call = nullptr;
  Work work = Work::kOperator;
  std::shared_ptr<const BoundCall> bound;  // kOperator
  uint8_t* workspace = nullptr;            // the program's own, with its size
  uint64_t workspace_bytes = 0;
  uint8_t* to = nullptr;          // device; of a download host memory, or null: nobody looks at it
  const uint8_t* from = nullptr;  // device; of an upload pinned memory, or null: see `content`
  size_t bytes = 0;               // of the range; of the source range where it has two dimensions
  Bytes content;                  // of an upload: recorded bytes, from `content_at` on
  size_t content_at = 0;
  // Two dimensions: rows of `width` bytes. Rows are 0 for plain copies.
  size_t rows = 0, width = 0, to_pitch = 0, from_pitch = 0;
  uint64_t value = 0;  // of fills and value writes
  uint32_t flag = 0;
  std::vector<Take> takes;

  // Bytes of host memory that a download fills.
  size_t HostBytes() const { return rows == 0 ? bytes : (rows - 1) * to_pitch + width; }
};

// Issues a task on a stream, to run or to be captured. `from` and `to` stand for the host sides of
// uploads and downloads; pinned.
struct HostSides {
  const uint8_t* from = nullptr;
  uint8_t* to = nullptr;
};
void IssueTask(const Device& device, aclrtStream stream, const AclTask& task, const HostSides& host,
               const BoundCall::Reserve& reserve);
// The same at once, without a stream.
void RunTaskNow(const Device& device, const AclTask& task, const HostSides& host);

// A recorded call of an operator as an invocation of it: its arguments without workspace and
// executor.
analyzer::Invocation InvocationOf(const storage::Reader& trace, const storage::Op& op,
                                  const std::vector<storage::Argument>& arguments);

// Makes tasks of calls.
class TaskBinder {
 public:
  TaskBinder(Device& device, const analyzer::AclProgram& program, const Rooms& rooms);

  // The tasks of an operator, copy, fill or value write: one, or none where the device has nothing
  // to do, or the uploads that stand for an operator that the device refuses.
  std::vector<AclTask> Bind(const analyzer::AclCall& call);
  // A captured call of a graph, whose copies from the host read pinned memory.
  std::vector<AclTask> BindStored(const analyzer::AclCall& call);

  // Asks the device for every operator whether it can run it. Those refused get their recorded
  // results; Error kTrace where these are not there.
  void Probe();
  // Reasons by name of the operator, with the calls concerned.
  struct Refusal {
    std::string reason;
    int64_t first_call = 0;
    int64_t calls = 0;
  };
  const std::map<std::string, Refusal>& refusals() const { return refusals_; }

  // The recorded bytes; null when the trace does not hold them.
  Bytes Payload(const std::string& digest);

 private:
  AclTask BindOperator(const analyzer::AclCall& call);
  std::shared_ptr<const BoundCall> Bound(const analyzer::AclCall& call, bool anywhere);
  std::vector<AclTask> Substitute(const analyzer::AclCall& call);
  std::vector<AclTask> BindCopy(const analyzer::AclCall& call, bool stored);
  AclTask BindFill(const analyzer::AclCall& call) const;
  uint8_t* AddressOf(const analyzer::AclUse& use) const;

  Device& device_;
  const analyzer::AclProgram& program_;
  const Rooms& rooms_;
  Block nothing_;  // the address of tensors without elements
  std::unordered_map<std::string, std::shared_ptr<const BoundCall>> bound_;
  std::unordered_map<int64_t, bool> refused_forms_;
  std::map<std::string, Refusal> refusals_;
  std::unordered_map<std::string, Bytes> payloads_;
  int64_t payload_bytes_ = 0;
};

}  // namespace acltape::replayer
