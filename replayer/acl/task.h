// One piece of device work of an ACL program, with its arguments bound to addresses. Eager
// execution issues tasks; a capture stores them.
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

// A content that is read from the device right after a task, to compare it with the recorded
// content.
struct Take {
  const analyzer::AclCall* call = nullptr;
  const storage::Snapshot* snapshot = nullptr;
  const uint8_t* address = nullptr;
  size_t bytes = 0;
  // The parts to compare, relative to `address`. The other bytes are not known.
  std::vector<analyzer::ByteRange> known;
  bool complete = false;  // `known` covers the whole content
  bool host = false;      // `address` is pinned host memory
  // Only for two-dimensional copies: `from_pitch` is that of the device; `bytes` and `to_pitch` are
  // those of the host side. `rows` is 0 for other takes.
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
    kNothing  // there is only a content to take
  };
  const analyzer::AclCall* call = nullptr;
  Work work = Work::kOperator;
  std::shared_ptr<const BoundCall> bound;  // kOperator
  uint8_t* workspace = nullptr;            // of the program; null: it has none
  uint64_t workspace_bytes = 0;
  // Device memory. For a download, host memory, or null if nothing looks at the result.
  uint8_t* to = nullptr;
  // Device memory. For an upload, pinned memory, or null if `content` is uploaded.
  const uint8_t* from = nullptr;
  // Length of the range. For two-dimensional copies, length of the source range.
  size_t bytes = 0;
  Bytes content;  // of an upload: recorded bytes from `content_at` on
  size_t content_at = 0;
  // Two-dimensional copies have `rows` of `width` bytes. `rows` is 0 for plain copies.
  size_t rows = 0, width = 0, to_pitch = 0, from_pitch = 0;
  uint64_t value = 0;  // for fills and value writes
  uint32_t flag = 0;
  std::vector<Take> takes;

  // Number of bytes of host memory that a download needs.
  size_t HostBytes() const { return rows == 0 ? bytes : (rows - 1) * to_pitch + width; }
};

// The host ends of an upload (`from`) and a download (`to`). They replace the task's own and must
// be pinned memory; null keeps the task's own.
struct HostSides {
  const uint8_t* from = nullptr;
  uint8_t* to = nullptr;
};
void IssueTask(const Device& device, aclrtStream stream, const AclTask& task, const HostSides& host,
               const BoundCall::Reserve& reserve);
// Runs a copy or a fill at once, without a stream. The host waits for it.
void RunTaskNow(const Device& device, const AclTask& task, const HostSides& host);

// Makes tasks from calls.
class TaskBinder {
 public:
  TaskBinder(Device& device, const analyzer::AclProgram& program, const Rooms& rooms);

  // Returns the tasks of an operator, copy, fill or value write. This is one task, or none if the
  // device has nothing to do. An operator that the device refuses becomes uploads of its recorded
  // results.
  std::vector<AclTask> Bind(const analyzer::AclCall& call);
  // Returns the tasks of a captured call of a graph. Copies from the host read pinned memory.
  std::vector<AclTask> BindStored(const analyzer::AclCall& call);

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

  // Returns the recorded bytes, or null if the trace does not hold them.
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
