#include "recorder/collector/left_out.h"

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

}  // namespace

void NoteLeftOut(const wire::ArenaHeader& arena, TraceBuilder& trace) {
  for (const Row& row : kRows) {
    const uint64_t count = arena.left_out[static_cast<size_t>(row.what)].load();
    if (count == 0) continue;
    trace.Note(row.severity, "left_out", row.subject, std::string(row.why) + row.effect,
               "give the program more memory", static_cast<int64_t>(count));
  }
}

}  // namespace acltape::collector
