#include "analyzer/ranks/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "analyzer/ranks/completions.h"
#include "analyzer/ranks/meetings.h"
#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/row_gate.h"

namespace acltape::analyzer::ranks {
namespace {

// True of collectives in which no rank is done before all have come: those without a root. Where
// ranks give different counts (HcclAlltoAllV and the like), one may need nothing of another.
bool IsMeeting(const Collective& what) {
  if (what.op == "HcclBarrier") return true;
  const bool counted = what.op.ends_with("V") || what.op.ends_with("VC");
  return !what.root && !what.peer && !counted && what.received_bytes > 0;
}

// So many runs of each process are followed until a host knows that they have ended.
constexpr size_t kMostFollowed = 512;

// Limits that leave room for sums: times of a machine that has run for nine years, and what they
// may be apart. Values beyond them are none of a recording.
constexpr int64_t kMostTimeNs = int64_t{1} << 58;
constexpr int64_t kMostShiftNs = int64_t{1} << 59;

bool IsTime(int64_t ns) { return ns >= -kMostTimeNs && ns <= kMostTimeNs; }

// A meeting: the communicator and the number of the collective in it.
using MeetingName = std::pair<std::string, size_t>;

// When the trace's ranks came to each meeting, and when it had ended.
using Moments = std::map<MeetingName, Moment>;

// The end of the work of each call, by the device's clock.
std::map<int64_t, int64_t> LoadEnds(const storage::Reader& trace) {
  std::map<int64_t, int64_t> ends;
  storage::Statement rows(
      trace.database(),
      "SELECT call_id, max(end_ns + ifnull(error_ns, 0)) FROM device_span GROUP BY 1");
  const storage::CheckedRow row(rows, trace.path(), "device_span");
  while (rows.Next()) ends[row.Id("call_id")] = row.Integer(1, "end_ns", -kMost, kMost);
  return ends;
}

Moments LoadMoments(const storage::Reader& trace) {
  Moments moments;
  const Communication all = LoadCommunication(trace);
  const std::map<int64_t, int64_t> ends =
      all.on_device ? LoadEnds(trace) : FindCompletions(trace, all, kMostFollowed);
  for (const Communicator& one : FindCommunicators(all)) {
    if (one.ambiguous) continue;
    for (const auto& [rank, runs] : one.runs) {
      for (size_t i = 0; i < runs.size(); ++i) {
        const Run& run = *runs[i];
        const auto end = ends.find(run.call_id);
        if (end == ends.end() || !IsMeeting(*run.what)) continue;
        if (!IsTime(run.begin_ns) || !IsTime(end->second)) continue;
        // The host's begin is never after the arrival, whatever the device's clock says.
        const Moment moment{run.begin_ns, end->second};
        const auto [known, is_new] = moments.try_emplace({one.name, i}, moment);
        if (is_new) continue;
        known->second.from_ns = std::max(known->second.from_ns, moment.from_ns);
        known->second.to_ns = std::min(known->second.to_ns, moment.to_ns);
      }
    }
  }
  return moments;
}

int64_t MetaNumber(const storage::Reader& trace, const char* key) {
  return storage::TakeBaseNs(trace.path(), trace.Meta(key));
}

// The shift by the wall clocks, which are read where a recording begins.
int64_t WallShift(const storage::Reader& first, const storage::Reader& other) {
  const auto distance = [](const storage::Reader& trace) {
    return MetaNumber(trace, "begin_wall_ns") - MetaNumber(trace, "base_ns");
  };
  return distance(other) - distance(first);
}

class Alignment {
 public:
  explicit Alignment(const std::vector<const storage::Reader*>& traces)
      : traces_(traces), moments_(traces.size()), sources_(traces.size()) {}

  std::vector<storage::MergeSource> Run() {
    for (size_t i = 0; i < traces_.size(); ++i) sources_[i].trace = traces_[i];
    Settle(0, {}, "the first trace");
    TakeSameMachines();
    while (settled_.size() < traces_.size()) {
      if (!TakeByMeetings()) TakeByWall();
      TakeSameMachines();
    }
    return std::move(sources_);
  }

 private:
  void Settle(size_t trace, const Distance& distance, std::string clock) {
    sources_[trace].shift_ns = std::clamp(distance.shift_ns, -kMostShiftNs, kMostShiftNs);
    sources_[trace].error_ns = std::min(distance.error_ns, kMostShiftNs);
    sources_[trace].clock = std::move(clock);
    settled_.insert(trace);
  }

  void TakeSameMachines() {
    for (size_t i = 0; i < traces_.size(); ++i) {
      const std::string boot = traces_[i]->Meta("collector_boot");
      if (settled_.contains(i) || boot.empty()) continue;
      for (const size_t known : settled_) {
        if (traces_[known]->Meta("collector_boot") != boot) continue;
        Settle(i, {sources_[known].shift_ns, sources_[known].error_ns},
               fmt::format("the machine of {}", traces_[known]->path()));
        break;
      }
    }
  }

  const Moments& MomentsOf(size_t trace) {
    if (!moments_[trace]) moments_[trace] = LoadMoments(*traces_[trace]);
    return *moments_[trace];
  }

  // Takes the trace whose clock is known best by what it has met; false: none met.
  bool TakeByMeetings() {
    std::optional<size_t> best;
    Distance distance;
    std::string clock;
    for (size_t i = 0; i < traces_.size(); ++i) {
      if (settled_.contains(i)) continue;
      for (const size_t known : settled_) {
        std::vector<Moment> there;
        std::vector<Moment> here;
        for (const auto& [meeting, moment] : MomentsOf(i)) {
          const auto other = MomentsOf(known).find(meeting);
          if (other == MomentsOf(known).end()) continue;
          here.push_back(moment);
          there.push_back({other->second.from_ns + sources_[known].shift_ns,
                           other->second.to_ns + sources_[known].shift_ns});
        }
        if (here.empty() || sources_[known].error_ns < 0) continue;
        const Distance one = DistanceOf(there, here, sources_[known].error_ns);
        if (best && one.error_ns >= distance.error_ns) continue;
        best = i;
        distance = one;
        clock = fmt::format("{} collectives with {}{}", here.size(), traces_[known]->path(),
                            one.consistent ? ""
                                           : ", which no shift suits: the clocks do not run "
                                             "alike");
      }
    }
    if (best) Settle(*best, distance, std::move(clock));
    return best.has_value();
  }

  void TakeByWall() {
    for (size_t i = 0; i < traces_.size(); ++i) {
      if (settled_.contains(i)) continue;
      Settle(i, {WallShift(*traces_.front(), *traces_[i]), -1},
             "the machine's wall clock, as no collective of it ended on both");
      return;
    }
  }

  const std::vector<const storage::Reader*>& traces_;
  std::vector<std::optional<Moments>> moments_;
  std::vector<storage::MergeSource> sources_;
  std::set<size_t> settled_;
};

}  // namespace

Distance DistanceOf(const std::vector<Moment>& a, const std::vector<Moment>& b,
                    int64_t a_error_ns) {
  int64_t least = INT64_MIN;
  int64_t most = INT64_MAX;
  for (size_t i = 0; i < a.size(); ++i) {
    // b had ended only after a had come, and the other way round.
    least = std::max(least, a[i].from_ns - b[i].to_ns);
    most = std::min(most, a[i].to_ns - b[i].from_ns);
  }
  const int64_t width = most - least;
  return {least + width / 2, std::abs(width) / 2 + a_error_ns, width >= 0};
}

std::vector<storage::MergeSource> AlignClocks(const std::vector<const storage::Reader*>& traces) {
  return Alignment(traces).Run();
}

}  // namespace acltape::analyzer::ranks
