#include "analyzer/plan/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyzer/calls/byte_set.h"
#include "analyzer/graph/hazards.h"
#include "analyzer/plan/plan_dag.h"
#include "analyzer/program/regions.h"
#include "analyzer/steps/steps.h"
#include "analyzer/streams/budget.h"
#include "analyzer/streams/race_checker.h"
#include "generated/meaning/interface_numbers.h"
#include "storage/checked_row.h"

namespace acltape::analyzer::plan {
namespace {

std::string NameOf(const PlanRegion& region) { return fmt::format("region {}", region.region); }
std::string NameOf(const PlanRegion& region, size_t placement) {
  return fmt::format("region {}, placement {} (call {})", region.region, placement,
                     region.placements[placement].call_id);
}
std::string NameOfWait(const PlanRegion& region, size_t wait) {
  const PlanWait& row = region.waits[wait];
  return fmt::format("region {}, wait {} (record after call {}, wait before call {})",
                     region.region, wait, row.record_after, row.wait_before);
}

// True if node `to` comes after `from` by the order of streams and waits.
bool Reaches(const streams::StreamAssignment& assignment, int32_t from, int32_t to) {
  std::vector<int32_t> next(assignment.stream_of.size(), -1);  // on the same stream
  std::map<int32_t, int32_t> last;
  for (const int32_t node : assignment.order) {
    const auto [entry, first] = last.try_emplace(assignment.stream_of[node], node);
    if (!first) next[entry->second] = node;
    entry->second = node;
  }
  std::vector<bool> seen(next.size(), false);
  std::vector<int32_t> pending = {from};
  while (!pending.empty()) {
    const int32_t node = pending.back();
    pending.pop_back();
    if (node < 0 || seen[node]) continue;
    if (node == to) return true;
    seen[node] = true;
    pending.push_back(next[node]);
    for (const streams::StreamWait& wait : assignment.waits) {
      if (wait.record_after == node) pending.push_back(wait.wait_before);
    }
  }
  return false;
}

class Validator {
 public:
  Validator(const Plan& plan, const Work& work, bool allow_races)
      : plan_(plan), work_(work), allow_races_(allow_races) {}

  std::vector<std::string> Run() {
    CheckTrace();
    calls_ = ActiveCalls(work_, plan_.first_call, plan_.last_call);
    if (calls_.empty()) {
      Fail(PlanRule::kOtherTrace, "plan",
           "the trace has no work from call {} to call {}; plan this trace again", plan_.first_call,
           plan_.last_call);
    }
    CheckRegions();
    const streams::SocLimits* soc = streams::FindSoc(plan_.soc);
    for (size_t r = 0; r < plan_.regions.size(); ++r) {
      if (plan_.regions[r].captured) CheckStreams(plan_.regions[r], CallsOf(r));
    }
    if (soc == nullptr) {
      Fail(PlanRule::kUnknownSoc, "plan",
           "the limits of {} are not known; name a SoC such as \"Ascend910B1\"",
           storage::ShownValue(plan_.soc));
    }
    CheckBudget(*soc);
    CheckCopies();
    CheckUpdates();
    return std::move(warnings_);
  }

 private:
  template <typename... Words>
  [[noreturn]] static void Fail(PlanRule rule, const std::string& row,
                                fmt::format_string<Words...> format, Words&&... words) {
    throw PlanError(rule, row, fmt::format(format, std::forward<Words>(words)...));
  }

  std::string Describe(int64_t call_id) const {
    return work_.Describe(static_cast<size_t>(work_.Find(call_id)));
  }

  void CheckTrace() const {
    const int64_t calls = work_.trace->CallCount(/*leaves_only=*/false);
    if (plan_.trace_calls != calls) {
      Fail(PlanRule::kOtherTrace, "plan",
           "it was made for a trace of {} calls and this one has {}; plan this trace again",
           plan_.trace_calls, calls);
    }
    const std::vector<storage::Step> steps = StoredSteps(work_);
    const auto found = std::find_if(steps.begin(), steps.end(),
                                    [&](const storage::Step& s) { return s.step == plan_.step; });
    if (steps.empty()) return;  // nobody stored the steps in the trace
    if (found == steps.end()) {
      Fail(PlanRule::kOtherTrace, "plan", "the trace has no step {}; plan this trace again",
           plan_.step);
    }
    if (found->first_call != plan_.first_call || found->last_call != plan_.last_call) {
      Fail(PlanRule::kOtherTrace, "plan",
           "step {} holds the calls {} to {} and the plan says {} to {}; plan this trace again",
           plan_.step, found->first_call, found->last_call, plan_.first_call, plan_.last_call);
    }
  }

  // The places [first, second) in calls_ of a region's calls. They must be work of the step.
  std::pair<size_t, size_t> RangeOf(const PlanRegion& region) const {
    const auto place_of = [&](int64_t call_id) {
      const auto call = static_cast<size_t>(work_.Find(call_id));
      return static_cast<size_t>(std::lower_bound(calls_.begin(), calls_.end(), call) -
                                 calls_.begin());
    };
    return {place_of(region.first_call), place_of(region.last_call) + 1};
  }

  std::span<const size_t> CallsOf(size_t region) const {
    const auto [first, end] = RangeOf(plan_.regions[region]);
    return std::span(calls_).subspan(first, end - first);
  }

  // Fails unless the call id is work of the step.
  void CheckCall(const std::string& row, int64_t call_id) const {
    const int64_t call = work_.Find(call_id);
    if (call < 0) {
      Fail(PlanRule::kUnknownCall, row, "the trace has no leaf with the id {}", call_id);
    }
    if (!std::binary_search(calls_.begin(), calls_.end(), static_cast<size_t>(call))) {
      Fail(PlanRule::kUnknownCall, row, "{} is {}", Describe(call_id),
           work_.form(static_cast<size_t>(call)).active()
               ? fmt::format("not in step {}", plan_.step)
               : "a view or an allocation, which no stream executes");
    }
  }

  void CheckRegions() const {
    size_t next = 0;  // place in calls_ of the first call without a region
    const std::vector<bool> late = LateSources(work_, calls_);
    Barriers barriers(work_);
    for (size_t r = 0; r < plan_.regions.size(); ++r) {
      const PlanRegion& region = plan_.regions[r];
      CheckCall(NameOf(region), region.first_call);
      CheckCall(NameOf(region), region.last_call);
      const auto [first, end] = RangeOf(region);
      if (first < next) {
        Fail(PlanRule::kRegionOverlap, NameOf(region),
             "it begins with {}, which lies in region {} already", work_.Describe(calls_[first]),
             r - 1);
      }
      if (first >= end) {
        Fail(PlanRule::kRegionOverlap, NameOf(region),
             "its last call {} comes before its first call {}", region.last_call,
             region.first_call);
      }
      if (first > next) {
        Fail(PlanRule::kRegionGap, NameOf(region), "{} before it lies in no region",
             work_.Describe(calls_[next]));
      }
      next = end;
      if (!region.captured) {
        if (!region.placements.empty() || !region.waits.empty()) {
          Fail(PlanRule::kEagerContents, NameOf(region),
               "it is eager and lists {}; eager calls run in recorded order on one stream",
               region.placements.empty() ? "waits" : "placements");
        }
        continue;
      }
      for (size_t place = first; place < end; ++place) {
        const size_t call = calls_[place];
        const std::string reason = barriers.ReasonOf(call);
        if (!reason.empty()) {
          Fail(PlanRule::kBarrier, NameOf(region),
               "{} in it cannot be captured ({}); make it an eager region of its own",
               work_.Describe(call), reason);
        }
        if (late[place] && place > first) {
          Fail(PlanRule::kBarrier, NameOf(region),
               "{} in it fills bytes from outside that an earlier call has used; begin a region "
               "with it",
               work_.Describe(call));
        }
      }
    }
    if (next < calls_.size()) {
      Fail(PlanRule::kRegionGap, "plan", "{} and what follows lie in no region",
           work_.Describe(calls_[next]));
    }
  }

  void CheckPlacements(const PlanRegion& region, std::span<const size_t> calls) const {
    std::unordered_map<int64_t, size_t> placed;
    for (size_t i = 0; i < region.placements.size(); ++i) {
      const PlanPlacement& place = region.placements[i];
      const std::string row = NameOf(region, i);
      CheckCall(row, place.call_id);
      const auto call = static_cast<size_t>(work_.Find(place.call_id));
      if (!place.op.empty() && place.op != work_.op(call).FullName()) {
        Fail(PlanRule::kOtherOperator, row, "the trace has {} there and the plan says {}",
             work_.op(call).FullName(), storage::ShownValue(place.op));
      }
      if (!std::binary_search(calls.begin(), calls.end(), call)) {
        Fail(PlanRule::kOutsideRegion, row, "it lies outside the region, which has calls {} to {}",
             region.first_call, region.last_call);
      }
      const auto [entry, first] = placed.try_emplace(place.call_id, i);
      if (!first) {
        Fail(PlanRule::kCallTwice, row, "it is placed by placement {} already", entry->second);
      }
      if (place.stream < 0 || place.stream >= plan_.streams) {
        Fail(PlanRule::kStreamRange, row, "stream {} does not exist, the plan has {} from 0 on",
             place.stream, plan_.streams);
      }
    }
    for (const size_t call : calls) {
      if (placed.count(work_.calls[call].call_id) == 0) {
        Fail(PlanRule::kCallMissing, NameOf(region), "{} is not placed on a stream",
             work_.Describe(call));
      }
    }
  }

  void CheckStreams(const PlanRegion& region, std::span<const size_t> calls) {
    CheckPlacements(region, calls);
    for (size_t i = 0; i < region.waits.size(); ++i) {
      const PlanWait& wait = region.waits[i];
      const std::string row = NameOfWait(region, i);
      for (const int64_t call_id : {wait.record_after, wait.wait_before}) {
        CheckCall(row, call_id);
        if (!std::binary_search(calls.begin(), calls.end(),
                                static_cast<size_t>(work_.Find(call_id)))) {
          Fail(PlanRule::kOutsideRegion, row, "call {} lies outside the region", call_id);
        }
      }
      if (wait.record_after == wait.wait_before) {
        Fail(PlanRule::kSelfWait, row, "a call cannot wait for itself");
      }
    }
    const streams::StreamAssignment assignment = AssignmentOf(region, work_, calls);
    std::vector<size_t> issued(calls.size());
    for (size_t i = 0; i < assignment.order.size(); ++i) issued[assignment.order[i]] = i;
    for (size_t i = 0; i < assignment.waits.size(); ++i) {
      const streams::StreamWait& wait = assignment.waits[i];
      if (issued[wait.record_after] < issued[wait.wait_before]) continue;
      if (Reaches(assignment, wait.wait_before, wait.record_after)) {
        Fail(PlanRule::kWaitCycle, NameOfWait(region, i),
             "{} itself comes after {} by waits and stream order, so both would wait for ever",
             Describe(region.waits[i].record_after), Describe(region.waits[i].wait_before));
      }
      Fail(PlanRule::kWaitBackwards, NameOfWait(region, i),
           "the event would be waited for before it is recorded ({}); issue {} before {}",
           meaning::kAclErrorRtCaptureDependency, Describe(region.waits[i].record_after),
           Describe(region.waits[i].wait_before));
    }
    CheckEventOrder(region, assignment, issued);
    CheckIssueOrder(region, calls, issued);
    CheckRaces(region, calls, assignment, issued);
  }

  // A wait takes the last record that was issued before it. That record must be the one that its
  // row names.
  static void CheckEventOrder(const PlanRegion& region, const streams::StreamAssignment& assignment,
                              const std::vector<size_t>& issued) {
    std::map<std::pair<int32_t, size_t>, size_t> rows;  // by event and place of its record
    for (size_t i = 0; i < assignment.waits.size(); ++i) {
      rows.emplace(
          std::make_pair(assignment.waits[i].event, issued[assignment.waits[i].record_after]), i);
    }
    for (const streams::StreamWait& wait : assignment.waits) {
      const auto next = rows.upper_bound({wait.event, issued[wait.record_after]});
      if (next == rows.end() || next->first.first != wait.event ||
          next->first.second >= issued[wait.wait_before]) {
        continue;
      }
      const auto row = static_cast<size_t>(&wait - assignment.waits.data());
      Fail(PlanRule::kEventReuse, NameOfWait(region, next->second),
           "event {} is recorded again before call {} waits for its record after call {}; give "
           "one of the two an event of its own",
           wait.event, region.waits[row].wait_before, region.waits[row].record_after);
    }
  }

  void CheckIssueOrder(const PlanRegion& region, std::span<const size_t> calls,
                       const std::vector<size_t>& issued) const {
    for (const streams::DagEdge& edge : EdgesOf(work_, calls)) {
      if (issued[edge.from] < issued[edge.to]) continue;
      Fail(PlanRule::kIssueOrder, NameOf(region, issued[edge.to]),
           "{} must be issued after {}, whose bytes it uses", work_.Describe(calls[edge.to]),
           work_.Describe(calls[edge.from]));
    }
  }

  void CheckRaces(const PlanRegion& region, std::span<const size_t> calls,
                  const streams::StreamAssignment& assignment, const std::vector<size_t>& issued) {
    const std::vector<std::vector<ByteAccess>> accesses = AccessesOf(work_, calls);
    const streams::RaceChecker checker = streams::CheckAssignment(assignment, accesses);
    if (checker.races().empty()) return;
    std::map<int64_t, std::pair<int64_t, int64_t>> advice;  // by second: record after, wait before
    for (const streams::MissingWait& wait : checker.missing_waits()) {
      advice[wait.wait_before] = {wait.record_after, wait.wait_before};
    }
    for (const streams::Race& race : checker.races()) {
      const auto first = static_cast<size_t>(race.first);
      const auto second = static_cast<size_t>(race.second);
      if (race.buffer < 0) {
        ReportEventReuse(region, -1 - race.buffer, work_.calls[calls[first]].call_id,
                         work_.calls[calls[second]].call_id);
        continue;
      }
      std::string edit = "put both on one stream";
      if (const auto found = advice.find(race.second); found != advice.end()) {
        edit = fmt::format("add a wait with record_after {} and wait_before {}",
                           work_.calls[calls[found->second.first]].call_id,
                           work_.calls[calls[found->second.second]].call_id);
      }
      Report(PlanRule::kRace, NameOf(region, issued[second]),
             fmt::format("{} on stream {} and {} (placement {}) on stream {} touch bytes {} to {} "
                         "of buffer {} ({}) and no wait orders them; {}",
                         work_.Describe(calls[second]), assignment.stream_of[second],
                         work_.Describe(calls[first]), issued[first], assignment.stream_of[first],
                         race.first_byte, race.end_byte, race.buffer,
                         graph::HazardKindName(race.kind), edit));
    }
  }

  // Reports that `first` and `second` record or wait for the event without an order between them.
  void ReportEventReuse(const PlanRegion& region, int64_t event, int64_t first, int64_t second) {
    size_t row = 0;
    for (size_t i = 0; i < region.waits.size(); ++i) {
      const PlanWait& wait = region.waits[i];
      if (wait.event == event && (wait.record_after == second || wait.wait_before == second)) {
        row = i;
        break;
      }
    }
    Report(PlanRule::kEventReuse, NameOfWait(region, row),
           fmt::format("event {} is used by call {} while call {} may still wait for it; give one "
                       "of the two an event of its own",
                       event, second, first));
  }

  // Throws an error, or adds a warning if races are allowed.
  void Report(PlanRule rule, const std::string& row, const std::string& sentence) {
    const PlanError error(rule, row, sentence);
    if (!allow_races_) throw error;
    warnings_.emplace_back(error.what());
  }

  void CheckBudget(const streams::SocLimits& soc) const {
    int64_t numbers = 0;
    for (size_t r = 0; r < plan_.regions.size(); ++r) {
      const PlanRegion& region = plan_.regions[r];
      if (!region.captured) continue;
      const std::span<const size_t> calls = CallsOf(r);
      std::vector<int32_t> tasks;
      for (const size_t call : calls) {
        tasks.push_back(work_.form(call).kind == LeafKind::kKernel ? 1 : 0);
      }
      const streams::GraphLoad load = streams::LoadOf(AssignmentOf(region, work_, calls), tasks);
      if (load.events > soc.events) {
        Fail(PlanRule::kEventBudget, NameOf(region), "it needs {} events and {} has {} ({})",
             load.events, plan_.soc, soc.events, meaning::kAclErrorRtNoEventResource);
      }
      if (load.entries() > streams::kQueueEntries * soc.usable_streams()) {
        Fail(PlanRule::kQueueBudget, NameOf(region),
             "it needs {} queue entries and the {} usable streams of {} hold {} ({})",
             load.entries(), soc.usable_streams(), plan_.soc,
             streams::kQueueEntries * soc.usable_streams(), meaning::kAclErrorRtResourceAllocFail);
      }
      numbers += load.stream_numbers();
      if (numbers > soc.usable_streams()) {
        Fail(PlanRule::kStreamBudget, NameOf(region),
             "the graphs up to it hold {} streams and {} has {} usable ones ({})", numbers,
             plan_.soc, soc.usable_streams(), meaning::kAclErrorRtResourceAllocFail);
      }
    }
  }

  // The argument that a row names: "self", or "tensors[2]" for an element of a list.
  struct Named {
    const storage::SignatureArgument* argument = nullptr;
    int32_t position = -1;
    int32_t element = -1;
  };
  Named FindArgument(const std::string& row, int64_t call_id, const std::string& name) const {
    CheckCall(row, call_id);
    const WorkForm& form = work_.form(static_cast<size_t>(work_.Find(call_id)));
    Named found;
    std::string base = name;
    const size_t bracket = name.find('[');
    if (bracket != std::string::npos && name.back() == ']') {
      base = name.substr(0, bracket);
      found.element = static_cast<int32_t>(std::strtol(name.c_str() + bracket + 1, nullptr, 10));
    }
    for (size_t i = 0; i < form.arguments->size(); ++i) {
      const storage::SignatureArgument& argument = (*form.arguments)[i];
      if (argument.name != base) continue;
      found.argument = &argument;
      found.position = static_cast<int32_t>(i);
    }
    return found;
  }

  void CheckCopies() const {
    if (plan_.copies.empty()) return;
    const std::vector<graph::Hazard> hazards =
        graph::FindHazards(work_, calls_.front(), calls_.back() + 1);
    for (size_t i = 0; i < plan_.copies.size(); ++i) {
      const PlanCopy& copy = plan_.copies[i];
      const std::string row = fmt::format("copy {} (call {})", i, copy.call_id);
      const Named named = FindArgument(row, copy.call_id, copy.argument);
      const auto call = static_cast<size_t>(work_.Find(copy.call_id));
      bool read = false;
      bool made_inside = false;  // another call of the step wrote every byte of it
      work_.VisitAccesses(call, [&](const ByteAccess& access) {
        if (named.argument == nullptr || access.form->argument != named.position) return;
        if (named.element >= 0 && access.form->element != named.element) return;
        if (access.write) return;
        read = true;
        ByteSet made;
        for (const graph::Hazard& hazard : hazards) {
          if (hazard.target == call && hazard.kind == graph::HazardKind::kRaw &&
              hazard.buffer == access.buffer) {
            made.Add(hazard.first_byte, hazard.end_byte);
          }
        }
        made_inside = made.Covers(access.first, access.end);
      });
      if (!read) {
        Fail(PlanRule::kNoInput, row, "{} reads no tensor {}", work_.Describe(call),
             storage::ShownValue(copy.argument));
      }
      if (made_inside) {
        Fail(PlanRule::kNoInput, row,
             "{} of {} is written by the step itself before, so that nothing is to be copied "
             "in; remove the row",
             storage::ShownValue(copy.argument), work_.Describe(call));
      }
    }
  }

  void CheckUpdates() const {
    for (size_t i = 0; i < plan_.updates.size(); ++i) {
      const PlanUpdate& update = plan_.updates[i];
      const std::string row = fmt::format("update {} (call {})", i, update.call_id);
      const Named named = FindArgument(row, update.call_id, update.argument);
      const auto call = static_cast<size_t>(work_.Find(update.call_id));
      if (named.argument == nullptr) {
        Fail(PlanRule::kNoArgument, row, "{} has no argument {}", work_.Describe(call),
             storage::ShownValue(update.argument));
      }
      if (!named.argument->tensors.empty() ||
          named.argument->direction == storage::Direction::kOut) {
        Fail(PlanRule::kNoArgument, row,
             "{} of {} is a tensor, and updates give host values; moved tensors are copied in",
             storage::ShownValue(update.argument), work_.Describe(call));
      }
      if (work_.form(call).kind != LeafKind::kKernel) {
        Fail(PlanRule::kNoUpdate, row, "{} launches no kernel that could be updated",
             work_.Describe(call));
      }
      for (const PlanRegion& region : plan_.regions) {
        if (region.captured || region.first_call > update.call_id ||
            region.last_call < update.call_id) {
          continue;
        }
        Fail(PlanRule::kNoUpdate, row,
             "{} lies in the eager region {}, which is launched with its own values; remove the "
             "row",
             work_.Describe(call), region.region);
      }
    }
  }

  const Plan& plan_;
  const Work& work_;
  const bool allow_races_;
  std::vector<size_t> calls_;
  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> ValidatePlan(const Plan& plan, const Work& work, bool allow_races) {
  return Validator(plan, work, allow_races).Run();
}

}  // namespace acltape::analyzer::plan
