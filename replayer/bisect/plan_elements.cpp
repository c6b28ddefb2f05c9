#include "replayer/bisect/plan_elements.h"

#include <fmt/format.h>

namespace acltape::replayer::bisect {
namespace {

void CaptureAll(const script::MixedStep& step, script::MixedStepOptions& options) {
  options.captured.assign(step.places(), false);
  for (const size_t place : step.capturable()) options.captured[place] = true;
}

std::string OwnerText(const script::MixedStep& step, script::MemoryReuse::What what, int64_t id,
                      size_t place) {
  const std::string call = step.Describe(place);
  return what == script::MemoryReuse::What::kBuffer ? fmt::format("buffer {} of {}", id, call)
                                                    : "the workspace of " + call;
}

}  // namespace

SideStreamCalls::SideStreamCalls(const script::MixedStep& step) : step_(step) {
  for (const script::SideStream& stream : script::SideStreamsOf(step)) {
    CallGroup group;
    group.description =
        fmt::format("stream {} of region {}, {} call{} from call {} to call {}", stream.stream,
                    stream.region, stream.places.size(), stream.places.size() == 1 ? "" : "s",
                    step.CallAt(stream.places.front()), step.CallAt(stream.places.back()));
    for (const size_t place : stream.places) {
      group.members.push_back(places_.size());
      places_.push_back(place);
    }
    streams_.push_back(std::move(group));
  }
}

std::string SideStreamCalls::Describe(size_t element) const {
  return step_.Describe(places_.at(element));
}

std::vector<bool> SideStreamCalls::Stays(const script::ElementSet& altered) const {
  std::vector<bool> stays(step_.places(), false);
  for (const size_t element : altered) stays[places_.at(element)] = true;
  return stays;
}

void SideStreamCalls::Apply(const script::ElementSet& altered,
                            script::MixedStepOptions& options) const {
  CaptureAll(step_, options);
  options.on_planned_stream = Stays(altered);
}

meaning::OptionChange SideStreamCalls::Change(const script::ElementSet& altered) const {
  return {"keep-streams", script::KeptStreamsText(step_, Stays(altered))};
}

ReusedMemory::ReusedMemory(const script::MixedStep& step, const script::MixedStepOptions& options)
    : step_(step) {
  script::MixedStepOptions all = options;
  CaptureAll(step, all);
  reuses_ = step.Reuses(all);
}

std::string ReusedMemory::Describe(size_t element) const {
  const script::MemoryReuse& reuse = reuses_.at(element);
  return fmt::format("{}, where {} lies", OwnerText(step_, reuse.what, reuse.id, reuse.place),
                     OwnerText(step_, reuse.over, reuse.over_id, reuse.over_place));
}

script::KeptReuses ReusedMemory::Kept(const script::ElementSet& altered) const {
  script::KeptReuses kept;
  for (const size_t element : altered) kept.Add(reuses_.at(element));
  return kept;
}

void ReusedMemory::Apply(const script::ElementSet& altered,
                         script::MixedStepOptions& options) const {
  CaptureAll(step_, options);
  options.kept_reuses = Kept(altered);
}

meaning::OptionChange ReusedMemory::Change(const script::ElementSet& altered) const {
  return {"share-memory", script::KeptReusesText(reuses_, Kept(altered))};
}

}  // namespace acltape::replayer::bisect
