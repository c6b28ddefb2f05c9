// The records of one ring, in order: the story of one thread. Keeps what the records of a thread
// refer back to (op names, open frames, open ranges, the payload being sent) and turns finished
// things into rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "recorder/collector/spool.h"
#include "recorder/collector/stacks.h"
#include "recorder/collector/trace_builder.h"
#include "recorder/wire/records.h"

namespace acltape::collector {

class RingLog {
 public:
  // `number` counts the logs of a recording.
  RingLog(TraceBuilder& trace, uint32_t number, const LogOrigin& origin);

  // Takes whole records from the front of `bytes`, some 64 KiB of them, and returns how many bytes
  // they were. A malformed record ends the log: it is noted in the ledger, and this and every later
  // call takes and discards everything.
  size_t Consume(std::span<const std::byte> bytes);

  // The thread writes no more: closes what it left open. `expected_calls` is its own count of
  // finished leaves.
  void Finish(uint64_t expected_calls);

  uint32_t number() const { return number_; }
  // A content of which a part has come.
  bool has_incoming_payload() const { return payload_.active; }
  bool broken() const { return broken_; }
  uint64_t call_records() const { return call_records_; }
  // The part of the recording's cost that the records tell: the thread, and its bytes.
  storage::ThreadCost Cost() const;

 private:
  struct OpenFrame {
    storage::Call call;
    int64_t scope_id = 0;
    int64_t forward_call = 0;
  };
  struct OpenScope {
    int64_t scope_id;
    int64_t first_call;
    int64_t begin_ns;
    std::string step_name;  // not empty: this instance is a step
    bool is_optimizer = false;
  };
  struct IncomingPayload {
    std::string digest;
    uint64_t total = 0;
    std::vector<std::byte> bytes;
    bool active = false;
  };

  // False: malformed.
  bool Take(RecordBytes record);
  bool TakeOp(RecordBytes record);
  bool TakeBirth(RecordBytes record);
  bool TakeDeath(RecordBytes record);
  bool TakeCall(RecordBytes record);
  bool TakeAclCall(RecordBytes record);
  bool TakeHandle(RecordBytes record);
  bool TakePlace(RecordBytes record);
  bool TakeWindow(RecordBytes record);
  bool TakeDeviceSpan(RecordBytes record);
  bool TakeFailureText(RecordBytes record);
  bool TakeCommunicator(RecordBytes record);
  bool TakeFrameBegin(RecordBytes record);
  bool TakeFrameEnd(RecordBytes record);
  bool TakeScopeBegin(RecordBytes record);
  bool TakeScopeEnd(RecordBytes record);
  bool TakeData(RecordBytes record);
  bool TakeSnapshot(RecordBytes record);
  bool TakeMeta(RecordBytes record);
  bool TakeLedger(RecordBytes record);
  bool TakeThreadName(RecordBytes record);

  int64_t ScopeOf(int64_t call_id) const;
  void CloseFrame(OpenFrame& frame, int64_t end_ns, int32_t status);
  void CloseScope(const OpenScope& scope, int64_t next_call, int64_t end_ns);
  void DropIncomingPayload();
  void Break(const char* cause);

  TraceBuilder& trace_;
  uint32_t number_;
  int64_t thread_id_;
  std::vector<KnownOp> ops_;
  std::vector<OpenFrame> frames_;
  std::vector<OpenScope> scopes_;
  IncomingPayload payload_;
  Stacks stacks_;
  Windows::Window* window_ = nullptr;  // null before the first
  storage::Call call_;                 // reused, so that a call allocates nothing
  int64_t first_ns_ = 0;               // 0: nothing with a time has come
  int64_t last_ns_ = 0;
  uint64_t call_records_ = 0;
  int64_t bytes_ = 0;          // all records
  int64_t input_bytes_ = 0;    // contents that calls read
  int64_t output_bytes_ = 0;   // contents that calls left
  int64_t content_bytes_ = 0;  // contents whose snapshot comes next
  bool in_step_ = false;
  int optimizer_depth_ = 0;  // open scopes of optimizers
  bool broken_ = false;
};

}  // namespace acltape::collector
