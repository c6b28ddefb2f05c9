#include "replayer/script/kept_streams.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "meaning/options.h"
#include "replayer/script/mixed_step.h"
#include "replayer/script/word_list.h"

namespace acltape::replayer::script {

IssuedRegion MovedToMainStream(const IssuedRegion& region,
                               const std::function<bool(size_t place)>& stays) {
  IssuedRegion moved = region;
  moved.streams = 1;
  moved.events = 0;
  std::map<int, size_t> recorded;      // by event of the plan: the leaf that recorded it last
  std::map<int, size_t> last_planned;  // by stream of the plan
  std::map<size_t, int> event_of;      // by leaf: the event that others wait for
  for (size_t i = 0; i < region.leaves.size(); ++i) {
    const IssuedLeaf& planned = region.leaves[i];
    const int stream = stays(planned.place) ? planned.stream : 0;
    std::set<size_t> earlier;
    for (const int event : planned.wait_for) {
      if (const auto found = recorded.find(event); found != recorded.end()) {
        earlier.insert(found->second);
      }
    }
    if (const auto found = last_planned.find(planned.stream); found != last_planned.end()) {
      earlier.insert(found->second);
    }
    moved.leaves[i] = {planned.place, stream, {}, {}};
    moved.streams = std::max(moved.streams, stream + 1);
    for (const size_t other : earlier) {
      if (moved.leaves[other].stream == stream) continue;
      const auto [event, created] = event_of.emplace(other, moved.events);
      if (created) {
        moved.leaves[other].record.push_back(event->second);
        ++moved.events;
      }
      moved.leaves[i].wait_for.push_back(event->second);
    }
    last_planned[planned.stream] = i;
    for (const int event : planned.record) recorded[event] = i;
  }
  return moved;
}

std::vector<SideStream> SideStreamsOf(const MixedStep& step) {
  std::vector<SideStream> streams;
  if (step.plan() == nullptr) return streams;
  const std::set<size_t> capturable(step.capturable().begin(), step.capturable().end());
  for (const analyzer::plan::PlanRegion& region : step.plan()->regions) {
    std::map<int, std::vector<size_t>> of_stream;
    for (const analyzer::plan::PlanPlacement& placement : region.placements) {
      const size_t place = step.PlaceOf(placement.call_id);
      if (region.captured && placement.stream > 0 && capturable.count(place) != 0) {
        of_stream[placement.stream].push_back(place);
      }
    }
    for (auto& [stream, places] : of_stream) {
      streams.push_back({region.region, stream, std::move(places)});
    }
  }
  return streams;
}

std::string KeptStreamsText(const MixedStep& step, const std::vector<bool>& stays) {
  if (stays.empty()) return "all";
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ",") + word; };
  bool all = true;
  for (const SideStream& stream : SideStreamsOf(step)) {
    const auto kept = [&](size_t place) { return stays[place]; };
    if (std::all_of(stream.places.begin(), stream.places.end(), kept)) {
      add(std::to_string(stream.region) + ":" + std::to_string(stream.stream));
      continue;
    }
    all = false;
    for (const size_t place : stream.places) {
      if (stays[place]) add(std::to_string(step.CallAt(place)));
    }
  }
  return all ? "all" : text.empty() ? "none" : text;
}

std::vector<bool> ParseKeptStreams(const MixedStep& step, const std::string& text) {
  if (text == "all") return {};
  std::vector<bool> stays(step.places(), false);
  if (text == "none") return stays;
  const std::vector<SideStream> streams = SideStreamsOf(step);
  std::string known;
  std::set<size_t> aside;
  for (const SideStream& stream : streams) {
    known += (known.empty() ? "" : ", ") + std::to_string(stream.region) + ":" +
             std::to_string(stream.stream);
    aside.insert(stream.places.begin(), stream.places.end());
  }
  const auto refuse = [&](const std::string& word, const std::string& why) {
    throw Error(ErrorKind::kUsage, "@keep-streams "_cli + word + ": " + why +
                                       "; the side streams of the plan, as REGION:STREAM, are " +
                                       (known.empty() ? "none" : known));
  };
  for (const std::string& word : WordsOf(text)) {
    const size_t colon = word.find(':');
    const std::optional<int64_t> first = NumberOf(word.substr(0, colon));
    if (!first) refuse(word, "neither REGION:STREAM nor the number of a call");
    if (colon == std::string::npos) {
      const size_t place = step.PlaceOf(*first);
      if (aside.count(place) == 0) refuse(word, "the plan puts this call on no side stream");
      stays[place] = true;
      continue;
    }
    const std::optional<int64_t> second = NumberOf(word.substr(colon + 1));
    const auto found = std::find_if(streams.begin(), streams.end(), [&](const SideStream& stream) {
      return second && stream.region == *first && stream.stream == *second;
    });
    if (found == streams.end()) refuse(word, "the plan has no such side stream");
    for (const size_t place : found->places) stays[place] = true;
  }
  return stays;
}

}  // namespace acltape::replayer::script
