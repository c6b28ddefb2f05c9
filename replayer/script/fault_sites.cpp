#include "replayer/script/fault_sites.h"

#include <algorithm>
#include <limits>

#include "replayer/device/memory_plan.h"
#include "replayer/script/fault_effects.h"

namespace acltape::replayer::script {

using analyzer::LeafKind;
using analyzer::TensorUse;

namespace {

bool IsFloating(storage::DType dtype) {
  return dtype == storage::DType::kFloat32 || dtype == storage::DType::kFloat16 ||
         dtype == storage::DType::kBfloat16 || dtype == storage::DType::kFloat64;
}

}  // namespace

FaultSites::FaultSites(Session& session, Execution& execution,
                       const analyzer::StepTemplate& step_class, const StepLayout& layout,
                       StepPlaces& places, StepState& state, size_t capture_match, size_t run_match)
    : session_(session),
      execution_(execution),
      class_(step_class),
      layout_(layout),
      places_(places),
      state_(state),
      capture_match_(capture_match),
      run_match_(run_match),
      calls_(step_class.leaves.size()) {
  const analyzer::Program& program = session.program();
  int64_t position = 0;
  for (size_t r = 0; r < layout.regions.size(); ++r) {
    for (const IssuedLeaf& leaf : layout.regions[r].leaves) {
      Call& call = calls_[leaf.place];
      const int64_t index = step_class.leaves[leaf.place];
      call.region = static_cast<int>(r);
      call.position = position++;
      call.capturable = layout.regions[r].captured &&
                        program.leaves[index].kind == LeafKind::kKernel &&
                        !execution.lowered().IsSubstituted(index) &&
                        !execution.lowered().lowerings[index].invocations.empty();
      const auto add = [&](const TensorUse& use, std::vector<Touch>& touches) {
        const storage::Layout& layout = *use.layout;
        if (layout.ElementCount() == 0) return;
        const StepPlaces::Where where = places_.Find(0, use.tensor.buffer_id, layout);
        touches.push_back({where.object, where.offset,
                           where.offset + layout.EndByte() - layout.FirstByte(),
                           IsFloating(layout.dtype), layout.IsDense()});
        users_[where.object].push_back(leaf.place);
      };
      for (const TensorUse& use : program.uses[index].reads) add(use, call.reads);
      for (const TensorUse& use : program.uses[index].writes) add(use, call.writes);
    }
  }
}

bool FaultSites::Touches(const std::vector<Touch>& touches, int object) {
  return std::any_of(touches.begin(), touches.end(),
                     [&](const Touch& touch) { return touch.object == object; });
}

bool FaultSites::LivesOn(int object) const {
  const StepObject& own = places_.objects()[object];
  return own.operand >= 0 || layout_.lives_on.count(own.buffer) != 0;
}

int64_t FaultSites::LastUse(int object) const {
  if (LivesOn(object)) return std::numeric_limits<int64_t>::max();
  int64_t last = -1;
  for (const size_t place : users_.at(object)) last = std::max(last, calls_[place].position);
  return last;
}

// Returns the last call, in program order, that wrote what `read` reads.
std::optional<size_t> FaultSites::Producer(size_t place, const Touch& read) const {
  for (size_t earlier = place; earlier-- > 0;) {
    for (const Touch& write : calls_[earlier].writes) {
      if (write.object == read.object && write.first < read.end && read.first < write.end) {
        return earlier;
      }
    }
  }
  return std::nullopt;
}

// True if the recorded results of a place differ between the executed step and the captured step.
bool FaultSites::ResultDiffers(size_t place) const {
  const analyzer::Program& program = session_.program();
  const int64_t a = class_.matches[capture_match_].leaves[place];
  const int64_t b = class_.matches[run_match_].leaves[place];
  for (size_t w = 0; w < program.uses[a].writes.size(); ++w) {
    const storage::Snapshot* before =
        analyzer::RecordedResult(program.leaves[a], program.uses[a].writes[w]);
    const storage::Snapshot* now =
        analyzer::RecordedResult(program.leaves[b], program.uses[b].writes[w]);
    if (before != nullptr && now != nullptr && before->digest != now->digest) return true;
  }
  return false;
}

bool FaultSites::OperandDiffers(int operand) const {
  const auto found = operand_differs_.find(operand);
  if (found != operand_differs_.end()) return found->second;
  const auto content = [&](size_t match) { return state_.Content(match, operand); };
  return operand_differs_[operand] = content(capture_match_) != content(run_match_);
}

std::optional<int> FaultSites::InputThatChanges(size_t place) const {
  std::optional<int> other;
  for (const Touch& read : calls_[place].reads) {
    if (Touches(calls_[place].writes, read.object)) continue;
    const std::optional<size_t> producer = Producer(place, read);
    const int operand = places_.objects()[read.object].operand;
    const bool changes = producer       ? ResultDiffers(*producer)
                         : operand >= 0 ? OperandDiffers(operand)
                                        : false;
    // Integers are left out, because a wrong index is a different fault: it may lead outside of a
    // tensor.
    if (!changes || !read.floating) continue;
    if (!producer && class_.operands[operand].moving) return read.object;
    if (!other) other = read.object;
  }
  return other;
}

std::optional<int> FaultSites::NewResult(size_t place) const {
  if (calls_[place].writes.empty()) return std::nullopt;
  const Touch& write = calls_[place].writes[0];
  if (places_.objects()[write.object].operand >= 0 || !write.whole) return std::nullopt;
  if (Touches(calls_[place].reads, write.object)) return std::nullopt;
  for (const size_t user : users_.at(write.object)) {
    if (user < place || (user != place && Touches(calls_[user].writes, write.object))) {
      return std::nullopt;
    }
  }
  return write.object;
}

std::optional<int> FaultSites::ResultToOverwrite(size_t place, size_t other, bool by_output) const {
  const Call& call = calls_[place];
  if (!calls_[other].capturable || calls_[other].position >= call.position) return std::nullopt;
  const std::optional<int> result = NewResult(other);
  if (!result || !calls_[other].writes[0].floating) return std::nullopt;
  if (Touches(call.reads, *result) || Touches(call.writes, *result)) return std::nullopt;
  bool read_later = false;
  for (const size_t user : users_.at(*result)) {
    read_later = read_later || calls_[user].position > call.position;
  }
  if (!read_later) return std::nullopt;
  if (!by_output) return result;
  // The output must fit into that memory. Its last use must not be later than that of the
  // overwritten result.
  const std::optional<int> own = NewResult(place);
  if (!own || LastUse(*own) > LastUse(*result)) return std::nullopt;
  if (places_.objects()[*own].bytes > AlignUp(places_.objects()[*result].bytes)) {
    return std::nullopt;
  }
  return result;
}

std::optional<size_t> FaultSites::OtherToWaitFor(size_t place) const {
  std::optional<size_t> last;
  for (const Touch& read : calls_[place].reads) {
    const std::optional<size_t> producer = Producer(place, read);
    if (!producer || !calls_[*producer].capturable || !read.floating) continue;
    if (calls_[*producer].region != calls_[place].region || !ResultDiffers(*producer)) continue;
    if (!last || calls_[*producer].position > calls_[*last].position) last = producer;
  }
  return last;
}

std::optional<size_t> FaultSites::OtherToOverwrite(size_t place, bool by_output) const {
  std::optional<size_t> last;
  for (size_t other = 0; other < calls_.size(); ++other) {
    if (!ResultToOverwrite(place, other, by_output)) continue;
    if (!last || calls_[other].position > calls_[*last].position) last = other;
  }
  return last;
}

std::optional<PlantedFault> FaultSites::At(FaultKind kind, size_t place) const {
  if (!calls_[place].capturable) return std::nullopt;
  const analyzer::Program& program = session_.program();
  PlantedFault fault;
  fault.kind = kind;
  fault.call_id = program.leaves[class_.leaves[place]].call.call_id;
  std::optional<size_t> other;
  switch (kind) {
    case FaultKind::kWrongBits:
    case FaultKind::kLowBits:
      if (calls_[place].writes.empty() || !calls_[place].writes[0].floating) return std::nullopt;
      return fault;
    case FaultKind::kStaleInput:
    case FaultKind::kMovedAddress:
      if (!InputThatChanges(place)) return std::nullopt;
      return fault;
    case FaultKind::kBakedScalar:
      if (!ScalarThatMatters(execution_.lowered().lowerings[class_.leaves[place]])) {
        return std::nullopt;
      }
      return fault;
    case FaultKind::kMissingWait:
      other = OtherToWaitFor(place);
      break;
    case FaultKind::kOverwrittenOutput:
      other = OtherToOverwrite(place, /*by_output=*/true);
      break;
    case FaultKind::kReusedWorkspace:
      other = OtherToOverwrite(place, /*by_output=*/false);
      break;
  }
  if (!other) return std::nullopt;
  fault.other_call = program.leaves[class_.leaves[*other]].call.call_id;
  return fault;
}

std::vector<PlantedFault> PossibleFaults(const MixedStep& step, FaultKind kind) {
  StepGraphOptions options;
  options.keep = Keep::kStepOutputs;
  options.plan = step.plan();
  const StepLayout layout = LayOutStep(step.execution(), step.step_class(), options);
  StepPlaces places(step.session().program(), step.step_class(), layout);
  StepState state(step.session().program(), step.step_class(), step.session().contents());
  const FaultSites sites(step.session(), step.execution(), step.step_class(), layout, places, state,
                         0, 1);
  std::vector<PlantedFault> faults;
  for (const size_t place : step.capturable()) {
    if (const std::optional<PlantedFault> fault = sites.At(kind, place)) faults.push_back(*fault);
  }
  return faults;
}

}  // namespace acltape::replayer::script
