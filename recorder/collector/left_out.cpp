#include "recorder/collector/left_out.h"

#include <fmt/format.h>

#include <atomic>
#include <string>

namespace acltape::collector {
namespace {

using storage::Severity;

constexpr char kNoMemory[] = "the program had no memory left for the recorder, ";

struct Row {
  wire::LeftOut what;
  Severity severity;
  const char* subject;
  const char* why;
  const char* effect;
};
constexpr Row kRows[] = {
    {wire::LeftOut::kProcesses, Severity::kDataLoss, "processes",
     "the system refused the recorder memory or a key when a process started, ",
     "it was not recorded"},
    {wire::LeftOut::kCalls, Severity::kDataLoss, "calls", kNoMemory,
     "calls were not recorded or not told from the device library's own"},
    {wire::LeftOut::kArguments, Severity::kDataLoss, "arguments", kNoMemory,
     "calls were recorded without arguments"},
    {wire::LeftOut::kIdentities, Severity::kDataLoss, "identities", kNoMemory,
     "memory, streams, events or graphs are not told apart"},
    {wire::LeftOut::kContents, Severity::kDataLoss, "contents", kNoMemory, "values were not kept"},
    {wire::LeftOut::kRanges, Severity::kDataLoss, "ranges", kNoMemory,
     "ranges or enclosing calls are missing or end too early"},
    {wire::LeftOut::kLines, Severity::kNotice, "source lines", kNoMemory,
     "lines of its source are missing"},
};
static_assert(sizeof(kRows) / sizeof(kRows[0]) == wire::kLeftOutKinds);

struct Unrecorded {
  std::atomic<uint64_t> wire::ArenaHeader::*count;
  const char* kind;
  const char* subject;
  const char* cause;
  const char* remedy;
};
constexpr char kMoreMemory[] =
    "allow the program more address space or memory, or record with smaller rings";
constexpr Unrecorded kUnrecorded[] = {
    {&wire::ArenaHeader::threads_without_ring, "threads_without_ring", "threads",
     "the system refused a thread the memory of its ring, it was not recorded", kMoreMemory},
    {&wire::ArenaHeader::processes_without_number, "processes_without_number", "processes",
     "a process in another PID namespace could not learn by which number the recorder knows it, it "
     "was not recorded",
     "let the program keep its network namespace, or its /proc"},
    {&wire::ArenaHeader::processes_not_attached, "processes_not_attached", "processes",
     "the system refused a process the recorder's memory, it was not recorded", kMoreMemory},
    {&wire::ArenaHeader::processes_unanswered, "processes_unanswered", "processes",
     "a process asked for the recorder's memory and got no answer in time, it was not recorded",
     "do not stop the recorder while the program starts processes"},
};

}  // namespace

void NoteLeftOut(const wire::ArenaHeader& arena, TraceBuilder& trace) {
  if (const uint64_t count = arena.threads_without_slot.load(); count > 0) {
    trace.Note(Severity::kDataLoss, "threads_without_slot", "threads",
               fmt::format("more than {} threads at a time, the others were not recorded",
                           arena.slot_count),
               "record with more slots", static_cast<int64_t>(count));
  }
  for (const Unrecorded& row : kUnrecorded) {
    const uint64_t count = (arena.*row.count).load();
    if (count == 0) continue;
    trace.Note(Severity::kDataLoss, row.kind, row.subject, row.cause, row.remedy,
               static_cast<int64_t>(count));
  }
  for (const Row& row : kRows) {
    const uint64_t count = arena.left_out[static_cast<size_t>(row.what)].load();
    if (count == 0) continue;
    trace.Note(row.severity, "left_out", row.subject, std::string(row.why) + row.effect,
               "give the program more memory", static_cast<int64_t>(count));
  }
}

void NoteOutlived(TraceBuilder& trace) {
  trace.Note(Severity::kDataLoss, "process_outlived", "processes",
             "a process that the program started was still running when recording ended",
             "wait in the program for the processes that it starts");
}

}  // namespace acltape::collector
