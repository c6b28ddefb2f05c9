#include "timeline/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "storage/database.h"
#include "timeline/calls.h"
#include "timeline/open_slices.h"
#include "timeline/source.h"
#include "timeline/spans.h"

namespace acltape::timeline {
namespace {

// Numbers for processes and threads whose own number is not known or taken; no operating system
// gives one above 2^22.
class FreeNumbers {
 public:
  int64_t Take(int64_t wanted) {
    if (wanted > 0 && taken_.insert(wanted).second) return wanted;
    taken_.insert(++last_);
    return last_;
  }

 private:
  std::set<int64_t> taken_;
  int64_t last_ = int64_t{1} << 23;
};

// Counts the tracks that are written.
class CountingWriter final : public EventWriter {
 public:
  CountingWriter(EventWriter& writer, TimelineCounts& counts) : writer_(writer), counts_(counts) {}
  void Begin(const TimelineFacts& facts) override { writer_.Begin(facts); }
  void AddTrack(const Track& track) override {
    ++counts_.tracks;
    writer_.AddTrack(track);
  }
  void BeginSlice(const Slice& slice) override { writer_.BeginSlice(slice); }
  void EndSlice(int64_t track, int64_t end_ns) override { writer_.EndSlice(track, end_ns); }
  void Count(int64_t track, int64_t at_ns, int64_t bytes) override {
    writer_.Count(track, at_ns, bytes);
  }
  void Finish() override { writer_.Finish(); }

 private:
  EventWriter& writer_;
  TimelineCounts& counts_;
};

void AddProcesses(const storage::Reader& trace, OpenSlices& slices, Tracks& tracks) {
  FreeNumbers pids;
  storage::Statement processes(trace.database(),
                               "SELECT process_id, pid, name, rank FROM process "
                               "WHERE ?1 = 0 OR process_id = ?1 ORDER BY process_id");
  processes.Bind(1, trace.process());
  while (processes.Next()) {
    Tracks::Process process;
    process.pid = pids.Take(processes.Integer(1));
    Track track;
    track.kind = TrackKind::kProcess;
    track.pid = process.pid;
    track.name = processes.Text(2);
    if (!processes.IsNull(3)) track.name += fmt::format(" (rank {})", processes.Integer(3));
    process.track = slices.AddHolder(track);
    tracks.processes[processes.Integer(0)] = process;
  }
  FreeNumbers tids;
  int rank = 0;
  storage::Statement threads(trace.database(),
                             "SELECT thread_id, process_id, tid, name FROM thread "
                             "WHERE ?1 = 0 OR process_id = ?1 ORDER BY thread_id");
  threads.Bind(1, trace.process());
  while (threads.Next()) {
    Track track;
    track.kind = TrackKind::kThread;
    if (const auto process = tracks.processes.find(threads.Integer(1));
        process != tracks.processes.end()) {
      track.parent = process->second.track;
      track.pid = process->second.pid;
    }
    track.tid = tids.Take(threads.Integer(2));
    track.rank = rank += 2;  // the one before is for its ranges
    track.name = threads.Text(3).empty() ? fmt::format("thread {}", threads.Integer(0))
                                         : std::string(threads.Text(3));
    tracks.threads[threads.Integer(0)] = {threads.Integer(1), slices.AddGroup(track), {}};
  }
}

// The time from the start of the first wanted call to the end of the last.
void FindShownTime(const storage::Reader& trace, CallLookup& calls, Tracks& tracks) {
  tracks.first_ns = std::numeric_limits<int64_t>::min();
  tracks.last_ns = std::numeric_limits<int64_t>::max();
  if (!calls.restricted()) return;
  std::swap(tracks.first_ns, tracks.last_ns);
  for (CallRow row; calls.Next(row);) {
    if (!calls.Shown(row)) continue;
    tracks.first_ns = std::min(tracks.first_ns, row.begin_ns);
    tracks.last_ns = std::max(tracks.last_ns, row.end_ns);
  }
  if (tracks.first_ns > tracks.last_ns) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the selection picks no call of '{}'; `acltape query` lists its calls.",
                            trace.path()));
  }
}

TimelineFacts FactsOf(const storage::Reader& trace, int64_t base_ns) {
  TimelineFacts facts;
  facts.base_ns = base_ns;
  facts.wall_ns = trace.database().Integer(
      "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'begin_wall_ns'");
  facts.command = trace.Meta("command");
  facts.version = trace.Meta("acltape_version", "of unknown version");
  return facts;
}

}  // namespace

TimelineCounts WriteTimeline(const storage::Reader& trace, const TimelineOptions& options,
                             EventWriter& writer) {
  TimelineCounts counts;
  CountingWriter counting(writer, counts);
  OpenSlices slices(counting);
  Tracks tracks;
  tracks.base_ns =
      trace.database().Integer("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns'");
  CallLookup calls(trace, options);
  FindShownTime(trace, calls, tracks);
  counting.Begin(FactsOf(trace, tracks.base_ns));
  AddProcesses(trace, slices, tracks);

  Output output{trace, slices, tracks, calls, counts};
  std::vector<std::unique_ptr<Source>> sources;
  for (auto* make :
       {MakeStepSource, MakeRangeSource, MakeCallSource, MakeDeviceSource, MakeMemorySource}) {
    if (auto source = make(output)) sources.push_back(std::move(source));
  }
  for (;;) {
    Source* earliest = nullptr;
    int64_t earliest_ns = 0;
    for (const auto& source : sources) {
      const std::optional<int64_t> next = source->NextTime();
      if (next && (earliest == nullptr || *next < earliest_ns)) {
        earliest = source.get();
        earliest_ns = *next;
      }
    }
    if (earliest == nullptr) break;
    earliest->Emit();
    if (options.progress) options.progress(counts.calls);
  }
  slices.CloseAll();
  counting.Finish();
  counts.slices = slices.slices();
  return counts;
}

}  // namespace acltape::timeline
