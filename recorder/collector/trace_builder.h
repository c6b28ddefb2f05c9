// State that all rings of a recording share: the trace being written, interned signatures, buffer
// lives, steps, promised payloads, and the count of everything that went wrong.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "recorder/collector/address_lines.h"
#include "recorder/collector/argument_decoder.h"
#include "recorder/collector/buffer_lives.h"
#include "recorder/collector/handle_lives.h"
#include "recorder/collector/op_schema.h"
#include "recorder/collector/spool.h"
#include "recorder/collector/tick_clock.h"
#include "recorder/collector/windows.h"
#include "recorder/wire/arena.h"
#include "recorder/wire/step_name.h"
#include "storage/recording_cost.h"
#include "storage/writer.h"

namespace acltape::collector {

// An op as one ring names it.
struct KnownOp {
  int64_t op_id = 0;
  bool is_operator = false;  // its calls are leaves
  OpSchema schema;
};

class TraceBuilder {
 public:
  // `header` tells which ids have been given out; it may change while the object lives.
  // `steps_from` as in RecordOptions.
  TraceBuilder(storage::Writer& writer, const wire::ArenaHeader& header, const TickClock& clock,
               std::string steps_from);

  storage::Writer& writer() { return writer_; }
  AddressLines& addresses() { return addresses_; }
  BufferLives& buffers() { return buffers_; }
  HandleLives& handles() { return handles_; }
  Windows& windows() { return windows_; }
  int64_t ProcessOf(int64_t thread_id) const {
    return threads_[static_cast<size_t>(thread_id) - 1].process_id;
  }
  int64_t ToNs(uint64_t tick) const { return clock_.ToNs(tick); }
  int64_t NsOf(uint64_t ticks) const { return clock_.NsOf(ticks); }
  uint64_t next_call_id() const { return header_.next_call_id.load(std::memory_order_relaxed); }
  uint64_t next_buffer_id() const { return header_.next_buffer_id.load(std::memory_order_relaxed); }
  // Ids that no process can have been given belong to a damaged record.
  bool IsCallId(uint64_t id) const { return id != 0 && id < next_call_id(); }
  // An id that the next call had at some moment.
  bool IsNextCallId(uint64_t id) const { return id != 0 && id <= next_call_id(); }
  bool IsBufferId(uint64_t id) const { return id != 0 && id < next_buffer_id(); }

  // Registers a thread (and its process) at its first record.
  int64_t AddThread(const LogOrigin& origin);
  void NameThread(int64_t thread_id, const std::string& name);
  // The rank of the thread's process, a number.
  void SetRank(int64_t thread_id, const std::string& rank);

  KnownOp AddOp(uint32_t dialect, std::string_view name, std::string_view overload,
                std::string_view schema);

  // The signature of a call of `op` with these argument bytes; 0 when they are malformed.
  int64_t Signature(const KnownOp& op, std::span<const std::byte> bytes, uint32_t slot_count);

  void AddCall(const storage::Call& call, int64_t scope_id, int64_t stack_id = 0,
               int64_t forward_call = 0) {
    writer_.AddCall(call, scope_id, stack_id, forward_call);
    ++calls_;
    leaves_ += call.leaf ? 1 : 0;
    if (call.call_id > last_call_) last_call_ = call.call_id;
  }

  void AddMeta(const std::string& key, const std::string& value);
  // A process has libtorch, recorded or not.
  bool met_torch() const { return met_torch_; }
  // From now on the trace may have to drop its oldest part (size_limit.h).
  void LimitSize() { limited_ = true; }
  bool limited() const { return limited_; }
  // Later windows need the call.
  void KeepAlways(int64_t call_id) {
    if (limited_) writer_.KeepAlways(call_id);
  }
  // Drops what came before the cut; returns how many calls.
  int64_t DropBefore(const Windows::Cut& cut);

  // Something worth telling; rows of one kind and subject are added up.
  void Note(storage::Severity severity, const std::string& kind, const std::string& subject,
            const std::string& cause, const std::string& remedy, int64_t count = 1);
  // A payload announced by a snapshot: must have arrived when recording ends.
  void Promise(const std::string& digest) {
    if (!writer_.HasPayload(digest)) promised_.insert(digest);
  }
  // The bytes of a payload, left out when the disk is full; false when they do not have this
  // digest.
  bool AddPayload(const std::string& digest, const void* data, size_t bytes, int64_t arrived_ns);

  bool IsStepName(std::string_view name) const { return wire::IsStepName(steps_from_, name); }
  void AddStep(int64_t first_call, int64_t last_call, const std::string& name);
  // A step of an optimizer ended in the window, in front of the call.
  void AddTurn(const Windows::Window& window, int64_t next_call) {
    turns_.push_back({&window, next_call});
  }

  // Adds the cost of a thread that has ended.
  void AddCost(const storage::ThreadCost& thread) { cost_.threads.push_back(thread); }
  // A content was kept; `ns` is the time of the call before it on its thread, 0: there is none.
  void NoteContent(int64_t ns);
  // How records were to be kept, and whether too many of them waited.
  void SetBacklog(uint64_t most_bytes) { cost_.backlog_bytes = static_cast<int64_t>(most_bytes); }
  // `by_option`: what waits has the size that SetBacklog told.
  void NoteFullBacklog(bool by_option) {
    cost_.backlog_was_full = true;
    if (!by_option) cost_.backlog_bytes = 0;
  }

  // Last rows: living buffers, missing payloads, steps in order, ledger. Afterwards `data_lost`
  // says whether the trace lacks something that was recorded.
  void Finish();

  bool data_lost() const { return data_lost_; }
  int64_t calls() const { return calls_; }
  int64_t leaves() const { return leaves_; }
  int64_t last_call() const { return last_call_; }

 private:
  // Says what the recording took from the program, and why threads had to wait.
  void WriteCost();
  // Names the steps of chosen steps that end with an optimizer.
  void AddStepsOfTurns();

  struct Key {
    uint64_t low, high;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.low; }
  };

  storage::Writer& writer_;
  AddressLines addresses_;
  const wire::ArenaHeader& header_;
  TickClock clock_;
  BufferLives buffers_;
  HandleLives handles_;
  Windows windows_;
  std::string steps_from_;
  int64_t calls_ = 0;
  int64_t leaves_ = 0;
  int64_t last_call_ = 0;
  bool data_lost_ = false;
  bool met_torch_ = false;
  bool limited_ = false;
  std::unordered_map<std::string, int64_t> arrived_ns_;  // contents, when limited

  std::unordered_map<uint32_t, int64_t> processes_;
  struct Thread {
    int64_t process_id;
    LogOrigin origin;
  };
  std::vector<Thread> threads_;
  std::unordered_map<Key, int64_t, KeyHash> signatures_;
  std::unordered_set<std::string> promised_;
  storage::RecordingCost cost_;
  int64_t first_content_ns_ = 0;  // 0: none so far
  int64_t last_content_ns_ = 0;
  std::vector<storage::Step> steps_;
  int64_t next_step_ = 0;
  struct Turn {
    const Windows::Window* window;
    int64_t next_call;
  };
  std::vector<Turn> turns_;
  std::map<std::pair<std::string, std::string>, storage::LedgerEntry> notes_;
};

}  // namespace acltape::collector
