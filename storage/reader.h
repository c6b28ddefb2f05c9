// Reads a trace. Opening checks that the file is a trace of a schema this build knows; each failure
// is an Error of kind kTrace whose sentence names the file and the way out. Static tables (ops,
// signatures, layouts, buffers) are loaded on first use and kept.
//
// A trace can be opened while it is being recorded: it then holds what was committed when a table
// is first read. Not thread-safe, not even its const functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "storage/error.h"
#include "storage/trace.h"
#include "storage/trace_part.h"

struct sqlite3;

namespace acltape::storage {

class Database;

class Reader {
 public:
  enum class Mode { kReadOnly, kReadWrite };
  // kReadWrite is for tools that add results (steps, findings, runs); where the file or its folder
  // cannot be written it opens for reading, and storage/results.h refuses.
  // A trace in state "recording" that no collector writes any more reads as "partial".
  // If the trace has several processes or both levels, the reader looks at `part`. Throws Error
  // kUsage when the trace has no such process.
  explicit Reader(const std::string& path, Mode mode = Mode::kReadOnly, TracePart part = {});
  Reader(const std::string& path, TracePart part)
      : Reader(path, Mode::kReadOnly, std::move(part)) {}
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const std::string& path() const;
  sqlite3* handle() const;
  Database& database() const;
  bool writable() const;
  // The part of the trace that the reader was told to look at.
  const TracePart& part() const;
  // The process whose calls, steps, streams, events and models alone are read; 0: all. See
  // storage/process_choice.h.
  int64_t process() const;

  std::string Meta(const std::string& key, const std::string& otherwise = "") const;
  std::map<std::string, std::string> AllMeta() const;
  std::string State() const;  // "complete", "partial" or "recording"

  const Op& GetOp(int64_t op_id) const;  // throws kTrace when unknown
  const Layout& GetLayout(int64_t layout_id) const;
  const Buffer& GetBuffer(int64_t buffer_id) const;  // an empty Buffer with this id when unknown
  bool HasBuffer(int64_t buffer_id) const;

  // Calls in order of call_id. `leaves_only` leaves out enclosing calls.
  std::vector<Call> Calls(bool leaves_only) const;
  // Visits the calls one at a time, for traces that would fill the memory. `call` is valid during
  // the visit.
  void VisitCalls(bool leaves_only, const std::function<void(const Call& call)>& visit) const;
  // The calls that were made inside of a call, one level down, in order; those of every level,
  // whatever part of the trace the reader reads.
  std::vector<Call> CallsInside(int64_t call_id) const;
  int64_t CallCount(bool leaves_only) const;
  // The arguments that all calls of a signature share. Empty when unknown.
  const std::vector<SignatureArgument>& SignatureArguments(int64_t signature_id) const;
  // The arguments of a call, tensors filled with the call's buffers.
  std::vector<Argument> Arguments(const Call& call) const;
  std::vector<Argument> Arguments(int64_t signature_id, std::span<const int64_t> buffers) const;

  // These lists are in order of ids.
  std::vector<Handle> Streams() const;
  std::vector<Handle> Events() const;
  std::vector<Handle> Models() const;

  std::vector<Step> Steps() const;
  std::vector<Snapshot> Snapshots() const;  // in order of call_id, moment, position
  bool HasPayload(const std::string& digest) const;
  // The packed bytes; throws kTrace when the digest is unknown or damaged (digest does not match).
  std::vector<uint8_t> Payload(const std::string& digest) const;

  std::vector<LedgerEntry> Ledger() const;

 private:
  struct State_;
  std::unique_ptr<State_> state_;
};

}  // namespace acltape::storage
