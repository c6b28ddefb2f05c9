// Writes a trace: the collector's side. Creates the file (never overwrites one unless told),
// interns, batches rows in large transactions, and closes into one self-contained file.
//
// While it is open the trace is in state "recording" and in SQLite's WAL mode: any reader can open
// it and sees what was committed. Nothing is synced to the disk: a killed collector loses only the
// open transaction, a power failure may lose the trace.
//
// A full disk does not fail at once: room that was reserved on it is used up (reserved_room.h), and
// `disk_is_full` says so. Every other failure is an Error of kind kDevice, after which the file is
// still an openable trace of all that was committed; `FinishAfterFailure` says so in the ledger.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/error.h"
#include "storage/payload.h"
#include "storage/trace.h"

namespace acltape::storage {

class Writer {
 public:
  struct Options {
    bool overwrite = false;
    int64_t commit_rows = 50000;                // rows per transaction
    int64_t commit_bytes = 8 << 20;             // or bytes of payloads
    Compression compression;                    // payloads are compressed so
    int64_t page_bytes = 8192;                  // each page; a power of 2, at most 65536
    int64_t base_ns = 0;                        // times are stored relative to this one
    int64_t reserve_bytes = int64_t{24} << 20;  // kept free for closing on a full disk
  };
  // Error kUsage when the file exists and may not be overwritten, kDevice when it cannot be made.
  Writer(const std::string& path, const Options& options);
  ~Writer();  // closes as "partial" unless Finish was called
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // The descriptor that claims the file (FileClaim::file).
  int claim() const;

  void SetMeta(const std::string& key, const std::string& value);
  void AddQuirk(const std::string& name, const std::string& description);
  void AddProcess(int64_t process_id, int64_t pid, const std::string& name,
                  std::optional<int64_t> rank = std::nullopt);
  void AddThread(int64_t thread_id, int64_t process_id, int64_t tid, const std::string& name);

  int64_t InternOp(const Op& op);              // ignores op.op_id
  int64_t InternLayout(const Layout& layout);  // ignores layout.layout_id
  // The caller keeps a map from its own key to the returned id.
  int64_t AddSignature(int64_t op_id, const std::vector<SignatureArgument>& arguments);
  int64_t InternScope(int64_t parent_scope, const std::string& kind, const std::string& name);
  // One time that a scope was entered and left; calls first_call .. last_call began inside.
  void AddScopeRange(int64_t scope_id, int64_t thread_id, int64_t first_call, int64_t last_call,
                     int64_t begin_ns, int64_t end_ns);

  // A line of the program's source that a call came from. Frames of a stack are given innermost
  // first; a later stack of the same id replaces the former one.
  struct Frame {
    std::string file;
    int64_t line;
    std::string function;
  };
  // `user_frame`: index of the innermost frame of the user's own code, -1: there is none.
  void AddStack(int64_t stack_id, const std::vector<Frame>& frames, int64_t user_frame = 0);

  // Times are absolute; Call::scope_id is ignored in favour of `scope_id`. `stack_id` 0: no place.
  // `forward_call`, of a backward node: the leaf whose gradient it computes, 0: not known.
  void AddCall(const Call& call, int64_t scope_id, int64_t stack_id = 0, int64_t forward_call = 0);
  void AddDeviceSpan(const DeviceSpan& span);
  // The library's text for a call that failed.
  void AddFailureText(int64_t call_id, const std::string& text);
  void AddBuffer(const Buffer& buffer);  // replaces an earlier row of this id
  // The buffer's row, if there is one, gets at least so many bytes.
  void StretchBuffer(int64_t buffer_id, int64_t bytes);
  // Each replaces an earlier row of this id.
  void AddStream(const Handle& stream);
  void AddEvent(const Handle& event);
  void AddModel(const Handle& model);
  void AddCommunicator(const Communicator& communicator);
  bool HasPayload(const std::string& digest) const;
  // A content for which a full disk has no room is left out.
  void AddPayload(const std::string& digest, const void* data, size_t bytes);
  // Takes over all contents of another trace, which nobody writes.
  void AdoptContents(const std::string& path);
  void AddSnapshot(const Snapshot& snapshot, const std::optional<Statistics>& statistics);
  void AddStep(const Step& step);
  void RemoveSteps();
  void AddWindow(const RecordedWindow& window);  // replaces an earlier row of this id
  void AddLedger(const LedgerEntry& entry);      // counts of the same kind and subject add up

  // Pages of the file that hold something; a file never becomes smaller.
  int64_t UsedBytes();
  // DropBefore leaves this call.
  void KeepAlways(int64_t call_id);
  // Drops the calls with smaller ids, what belongs to them alone, and buffers that were gone at
  // `before_ns`. Contents that nothing names any more go too, when `is_old` says that no snapshot
  // of them is on its way.
  struct Dropped {
    int64_t calls = 0;
    std::vector<std::string> digests;
  };
  Dropped DropBefore(int64_t call_id, int64_t before_ns,
                     const std::function<bool(const std::string&)>& is_old);
  // Before Finish: rows that name calls that were dropped name none, and the file becomes as large
  // as what it holds.
  void ForgetDropped();

  void Commit();
  int64_t commits() const;  // transactions so far
  // The disk has no room any more, and what was reserved is in use: add as little as possible.
  bool disk_is_full() const;
  // The bytes that were reserved when the trace was made: on a disk with little room fewer than
  // were asked for.
  int64_t reserved_bytes() const;
  int64_t uncommitted_rows() const;
  int64_t payload_bytes()
      const;  // bytes of distinct payloads that were not dropped, before compression

  // Writes state ("complete" or "partial"), folds the journal into the one file and closes it.
  void Finish(const std::string& state);
  // After an Error: drops the open transaction, writes `entry` and state "partial" as far as there
  // is room, and closes. Never throws.
  void FinishAfterFailure(const LedgerEntry& entry) noexcept;
  // Closes and removes the file: nothing was recorded.
  void Discard() noexcept;

 private:
  struct State_;
  std::unique_ptr<State_> state_;
};

}  // namespace acltape::storage
