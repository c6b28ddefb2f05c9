#include "replayer/script/step_script.h"

#include <algorithm>

#include "analyzer/program/missing_values.h"
#include "replayer/device/memory_plan.h"
#include "replayer/script/kept_streams.h"

namespace acltape::replayer::script {

using analyzer::LeafKind;
using Treatment = VaryingLeaf::Treatment;

namespace {

StepGraphOptions LayoutOptions(const MixedStepOptions& options) {
  StepGraphOptions layout;
  const bool unshared = options.remedies.own_memory || options.watch == Watch::kEveryResult;
  layout.keep = unshared ? Keep::kEverything : Keep::kStepOutputs;
  layout.plan = options.plan;
  layout.updates = options.plan_updates;
  return layout;
}

}  // namespace

StepScript::StepScript(Session& session, Execution& execution,
                       const analyzer::StepTemplate& step_class, std::shared_ptr<StepState> state,
                       std::map<int64_t, uint64_t>& workspace_bytes,
                       const MixedStepOptions& options)
    : session_(session),
      execution_(execution),
      program_(session.program()),
      class_(step_class),
      state_(std::move(state)),
      workspace_bytes_(workspace_bytes),
      options_(options),
      layout_(LayOutStep(execution, step_class, LayoutOptions(options))),
      places_(session.program(), step_class, layout_),
      captured_(step_class.leaves.size(), false),
      golden_(step_class.leaves.size(), false),
      stream_of_(step_class.leaves.size(), 0),
      scratch_of_(step_class.leaves.size(), -1) {}

bool StepScript::Launches(size_t place) const {
  const int64_t leaf = class_.leaves[place];
  return program_.leaves[leaf].kind == LeafKind::kKernel &&
         !execution_.lowered().IsSubstituted(leaf) &&
         !execution_.lowered().lowerings[leaf].invocations.empty();
}

const VaryingLeaf* StepScript::VaryingAt(size_t place) const {
  for (const VaryingLeaf& leaf : layout_.varying) {
    if (leaf.place == place) return &leaf;
  }
  return nullptr;
}

// Chooses the captures. If a capture depends on the executed step, each executed step gets its own.
// All captures are made before the first execution, so that executions follow each other as they do
// otherwise.
void StepScript::ChooseCaptures() {
  const Remedies& remedies = options_.remedies;
  const bool every_step = remedies.recapture || remedies.step_arguments;
  for (const size_t match : options_.run_matches) {
    if (!every_step && !captures_.empty()) {
      capture_of_[match] = 0;
    } else if (capture_of_.emplace(match, captures_.size()).second) {
      Capture capture;
      capture.seen = remedies.recapture ? match : options_.capture_match;
      capture.arguments = remedies.step_arguments ? match : capture.seen;
      captures_.push_back(capture);
    }
  }
}

void StepScript::ChooseSides() {
  for (size_t place = 0; place < class_.leaves.size(); ++place) {
    const int64_t leaf = class_.leaves[place];
    if (program_.leaves[leaf].kind != LeafKind::kKernel) continue;
    const bool executed = options_.executed.empty() || options_.executed[place];
    golden_[place] = !executed || execution_.lowered().IsSubstituted(leaf);
    if (!golden_[place]) continue;
    // The recorded results must exist. Otherwise the script would fail in the middle.
    for (const size_t match : options_.run_matches) {
      for (const analyzer::TensorUse& use : program_.uses[LeafAt(match, place)].writes) {
        if (use.layout->ElementCount() == 0 || session_.contents().synthetic()) continue;
        const storage::Snapshot* snapshot =
            analyzer::RecordedResult(program_.leaves[LeafAt(match, place)], use);
        if (snapshot != nullptr && snapshot->has_payload) continue;
        throw Error(ErrorKind::kTrace,
                    program_.Describe(LeafAt(match, place)) +
                        " is replaced by its recorded results, which " + program_.trace->path() +
                        " does not hold; " +
                        analyzer::HowToHaveResult(program_, LeafAt(match, place)));
      }
    }
  }
  for (const IssuedRegion& region : layout_.regions) {
    for (const IssuedLeaf& leaf : region.leaves) {
      const bool wanted = options_.captured.empty() || options_.captured[leaf.place];
      captured_[leaf.place] =
          region.captured && wanted && Launches(leaf.place) && !golden_[leaf.place];
      if (region.captured) stream_of_[leaf.place] = leaf.stream;
    }
  }
}

bool StepScript::StaysOnStream(size_t place) const {
  if (options_.remedies.one_stream) return false;
  return options_.on_planned_stream.empty() || options_.on_planned_stream[place];
}

void StepScript::CutRuns() {
  for (const IssuedRegion& region : layout_.regions) {
    const bool as_planned =
        !region.captured || (!options_.remedies.one_stream && options_.on_planned_stream.empty());
    CutRegion(as_planned ? region : MovedToMainStream(region, [&](size_t place) {
      return StaysOnStream(place);
    }));
  }
  int events = 0;
  for (Run& run : runs_) {
    run.fork_event = run.issue.events;
    // Count a fork, and a join for each side stream. A planted fault adds a stream and its own
    // events.
    int extra_streams = 0;
    for (const IssuedLeaf& leaf : run.issue.leaves) {
      const auto effects = effects_.find(leaf.place);
      if (effects != effects_.end() && effects->second.not_waited_for) ++extra_streams;
    }
    events = std::max(events, run.fork_event + 1 + run.issue.streams +
                                  extra_streams * (run.issue.streams + 2 + extra_streams));
    streams_ = std::max(streams_, run.issue.streams + extra_streams);
  }
  executed_event_ = events;
  updated_event_ = events + 1;
  script_.events = events + 2;
  script_.streams = streams_;
  for (const VaryingLeaf& leaf : layout_.varying) {
    if (leaf.treatment != Treatment::kUpdate || !captured_[leaf.place]) continue;
    update_stream_ = streams_;
    script_.streams = streams_ + 1;
  }
}

void StepScript::CutRegion(const IssuedRegion& region) {
  PlannedRegion planned;
  planned.first = region.first;
  planned.captured = region.captured;
  const bool any = std::any_of(region.leaves.begin(), region.leaves.end(),
                               [&](const IssuedLeaf& leaf) { return captured_[leaf.place]; });
  if (region.captured && options_.disable_tasks) {
    CutForDisabling(region, planned);
  } else if (!any) {
    // Use program order, because with nothing captured the step must be the eager one, whatever the
    // plan says.
    for (size_t place = region.first; place < region.end; ++place)
      planned.pieces.push_back({-1, place});
  } else {
    size_t first = 0;  // first call of the open run, in order of issue
    size_t end = 0;    // after its last captured call; equal to first: none is open
    const auto close = [&] {
      if (first == end) return;
      planned.pieces.push_back({static_cast<int>(runs_.size()), 0});
      Run run;
      run.issue = PartOf(region, first, end);
      run.left_out.resize(end - first, false);
      runs_.push_back(std::move(run));
      first = end = 0;
    };
    for (size_t i = 0; i < region.leaves.size(); ++i) {
      const size_t place = region.leaves[i].place;
      if (captured_[place]) {
        if (first == end) first = i;
        end = i + 1;
      } else if (Launches(place) || golden_[place]) {
        close();
        planned.pieces.push_back({-1, place});
      }
    }
    close();
  }
  regions_.push_back(std::move(planned));
}

// Captures the whole region. The calls after the captured ones are disabled in it and run eagerly.
void StepScript::CutForDisabling(const IssuedRegion& region, PlannedRegion& planned) {
  Run run;
  run.issue = region;
  bool ended = false;
  std::vector<size_t> eager;
  for (const IssuedLeaf& leaf : region.leaves) {
    const bool launches = Launches(leaf.place);
    if (golden_[leaf.place]) {
      throw Error(ErrorKind::kUsage,
                  program_.Describe(class_.leaves[leaf.place]) +
                      " is not executed, which the variant that disables tasks cannot express");
    }
    if (launches && ended && captured_[leaf.place]) {
      throw Error(ErrorKind::kUsage,
                  "the variant that disables tasks runs the first calls of a region captured; " +
                      program_.Describe(class_.leaves[leaf.place]) +
                      " is captured after one that is not");
    }
    ended = ended || (launches && !captured_[leaf.place]);
    run.left_out.push_back(launches && !captured_[leaf.place]);
    if (launches && !captured_[leaf.place]) eager.push_back(leaf.place);
  }
  planned.pieces.push_back({static_cast<int>(runs_.size()), 0});
  runs_.push_back(std::move(run));
  for (const size_t place : eager) planned.pieces.push_back({-1, place});
}

void StepScript::Prepare() {
  ChooseCaptures();
  ChooseSides();
  nothing_ = AddBlock("nothing", kDeviceAlignment);
  home_ = AddBlock("home", 0);
  graph_ = AddBlock("graph", layout_.bytes);
  PlantFaults(FaultsOf::kMemory);
  FindReusedBuffers();
  SeparateBuffers();
  PlantFaults(FaultsOf::kOther);
  CutRuns();
  MakeBlocks();
}

std::vector<MemoryReuse> StepScript::Reuses() {
  Prepare();
  std::vector<size_t> issued(class_.leaves.size(), 0);  // by place: position in the order of issue
  size_t position = 0;
  for (const IssuedRegion& region : layout_.regions) {
    for (const IssuedLeaf& leaf : region.leaves) issued[leaf.place] = position++;
  }
  std::stable_sort(reuses_.begin(), reuses_.end(), [&](const MemoryReuse& a, const MemoryReuse& b) {
    return issued[a.place] < issued[b.place];
  });
  return std::move(reuses_);
}

Script StepScript::Build() {
  Prepare();
  last_piece_.assign(places_.objects().size(), -1);

  // A warm-up is needed only if something is captured.
  for (capture_ = 0; !runs_.empty() && capture_ < captures_.size(); ++capture_) {
    EmitStep(captures_[capture_].seen, Mode::kWarmUp);
    Emit(SynchronizeAll{});
    EmitCapture();
    DisableLeftOut();
  }
  for (size_t r = 0; r < options_.run_matches.size(); ++r) {
    const size_t match = options_.run_matches[r];
    capture_ = capture_of_.at(match);
    relocated_ = options_.stress.relocate_inputs && r % 2 == 0;
    if (options_.stress.churn_bytes > 0) {
      Emit(SynchronizeAll{});
      Emit(ChurnMemory{options_.stress.churn_bytes, r + 1});
    }
    EmitUpdates(match);
    EmitStep(match, Mode::kExecute);
    if (update_stream_ != 0) Emit(RecordEvent{executed_event_, 0});
    has_executed_ = true;
    ObserveStep(match);
    relocated_ = false;
  }
  return std::move(script_);
}

}  // namespace acltape::replayer::script
