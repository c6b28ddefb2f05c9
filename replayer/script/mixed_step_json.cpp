#include "replayer/script/mixed_step_json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "storage/error.h"
#include "storage/plain_file.h"

namespace acltape::replayer::script {
namespace {

using nlohmann::json;

constexpr const char* kAll = "all";

[[noreturn]] void Refuse(const std::string& key, const std::string& why) {
  throw Error(ErrorKind::kUsage, "\"" + key + "\" of a mixed step " + why);
}

std::string PlacesText(const std::vector<bool>& places) {
  if (places.empty()) return kAll;
  std::string text;
  for (size_t first = 0; first < places.size();) {
    if (!places[first]) {
      ++first;
      continue;
    }
    size_t last = first;
    while (last + 1 < places.size() && places[last + 1]) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    first = last + 1;
  }
  return text;
}

std::vector<bool> ParsePlaces(const std::string& key, const std::string& text, size_t count) {
  if (text == kAll) return {};
  std::vector<bool> places(count, false);
  const char* next = text.data();
  const char* end = next + text.size();
  const auto number = [&] {
    size_t value = 0;
    const auto [rest, error] = std::from_chars(next, end, value);
    if (error != std::errc()) Refuse(key, "is '" + text + "'; it holds places such as 0-41,57");
    next = rest;
    return value;
  };
  while (next != end) {
    const size_t first = number();
    size_t last = first;
    if (next != end && *next == '-') {
      ++next;
      last = number();
    }
    if (last < first || last >= count) {
      Refuse(key, "names place " + std::to_string(last) + " of " + std::to_string(count));
    }
    for (size_t place = first; place <= last; ++place) places[place] = true;
    if (next != end && *next++ != ',')
      Refuse(key, "is '" + text + "'; commas go between its ranges");
  }
  return places;
}

}  // namespace

json MixedStepJson(const MixedStepOptions& options) {
  json remedies = json::array();
  for (const Remedy& remedy : AllRemedies()) {
    if (options.remedies.*remedy.member) remedies.push_back(remedy.Word('_'));
  }
  json stress = json::object();
  if (options.stress.poison_gaps) stress["poison_gaps"] = true;
  if (options.stress.relocate_inputs) stress["relocate_inputs"] = true;
  if (options.stress.churn_bytes != 0) stress["churn_bytes"] = options.stress.churn_bytes;
  json faults = json::array();
  for (const PlantedFault& fault : options.faults) faults.push_back(FaultText(fault));
  json text{{"captured", PlacesText(options.captured)},
            {"executed", PlacesText(options.executed)},
            {"places", std::max({options.captured.size(), options.executed.size(),
                                 options.on_planned_stream.size()})},
            {"capture_match", options.capture_match},
            {"run_matches", options.run_matches},
            {"plan_updates", options.plan_updates},
            {"disable_tasks", options.disable_tasks},
            {"watch", options.watch == Watch::kStepOutputs ? "step" : "every"},
            {"remedies", std::move(remedies)},
            {"stress", std::move(stress)},
            {"faults", std::move(faults)}};
  if (!options.on_planned_stream.empty()) {
    text["on_planned_stream"] = PlacesText(options.on_planned_stream);
  }
  if (options.kept_reuses) {
    text["kept_reuses"] = {{"buffers", options.kept_reuses->buffers},
                           {"workspaces", options.kept_reuses->workspaces}};
  }
  return text;
}

MixedStepOptions ParseMixedStep(const json& text) {
  MixedStepOptions options;
  const auto get = [&](const json& object, const char* key, auto& value) {
    if (!object.contains(key)) return;
    try {
      object.at(key).get_to(value);
    } catch (const json::exception&) {
      Refuse(key, "is " + object.at(key).dump() + ", which is of another type");
    }
  };
  std::string captured = kAll;
  std::string executed = kAll;
  std::string watch = "step";
  size_t places = 0;
  std::vector<std::string> remedies;
  std::vector<std::string> faults;
  get(text, "captured", captured);
  get(text, "executed", executed);
  get(text, "places", places);
  get(text, "capture_match", options.capture_match);
  get(text, "run_matches", options.run_matches);
  get(text, "plan_updates", options.plan_updates);
  get(text, "disable_tasks", options.disable_tasks);
  get(text, "watch", watch);
  get(text, "remedies", remedies);
  get(text, "faults", faults);
  options.captured = ParsePlaces("captured", captured, places);
  options.executed = ParsePlaces("executed", executed, places);
  std::string on_planned_stream = kAll;
  get(text, "on_planned_stream", on_planned_stream);
  options.on_planned_stream = ParsePlaces("on_planned_stream", on_planned_stream, places);
  if (text.contains("kept_reuses")) {
    options.kept_reuses.emplace();
    get(text.at("kept_reuses"), "buffers", options.kept_reuses->buffers);
    get(text.at("kept_reuses"), "workspaces", options.kept_reuses->workspaces);
  }
  if (options.run_matches.empty()) Refuse("run_matches", "is empty; name a step that is executed");
  if (watch != "step" && watch != "every") Refuse("watch", "is '" + watch + "', not step or every");
  options.watch = watch == "step" ? Watch::kStepOutputs : Watch::kEveryResult;
  for (const std::string& name : remedies) {
    const Remedy* remedy = FindRemedy(name, '_');
    if (remedy == nullptr) Refuse("remedies", "has '" + name + "', which is none");
    options.remedies.*remedy->member = true;
  }
  if (text.contains("stress")) {
    const json& stress = text.at("stress");
    get(stress, "poison_gaps", options.stress.poison_gaps);
    get(stress, "relocate_inputs", options.stress.relocate_inputs);
    get(stress, "churn_bytes", options.stress.churn_bytes);
  }
  for (const std::string& fault : faults) options.faults.push_back(ParseFault(fault));
  return options;
}

MixedStepOptions ReadMixedStep(const std::string& path) {
  std::string why;
  const std::optional<std::string> read = storage::ReadPlainFile(path, &why);
  if (!read) throw Error(ErrorKind::kUsage, "the options file " + path + " " + why);
  const json text = json::parse(*read, nullptr, /*allow_exceptions=*/false);
  if (!text.is_object()) {
    throw Error(ErrorKind::kUsage, "the options file " + path + " holds no JSON object");
  }
  try {
    return ParseMixedStep(text);
  } catch (const Error& cause) {
    throw Error(cause.kind(), "the options file " + path + ": " + cause.what());
  }
}

}  // namespace acltape::replayer::script
