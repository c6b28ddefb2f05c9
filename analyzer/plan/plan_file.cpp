#include "analyzer/plan/plan_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/plan/validate.h"
#include "storage/payload.h"
#include "storage/plain_file.h"

namespace acltape::analyzer::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPlanHead = "{\n  \"version\": ";
// The line with the digest of all the others. A plan that somebody edited has another digest.
constexpr std::string_view kWrittenKey = "  \"written\": \"";

// Appends "key": [rows], with one row on each line.
void AppendRows(std::string& text, const std::string& indent, std::string_view key,
                const std::vector<Json>& rows, bool last) {
  text += fmt::format("{}\"{}\": [", indent, key);
  for (size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("{}\n{}  {}", i == 0 ? "" : ",", indent, rows[i].dump());
  }
  text += (rows.empty() ? "]" : "\n" + indent + "]") + (last ? "\n" : ",\n");
}

// The members of an object without its braces, for the head of a region.
std::string Members(const Json& object) {
  const std::string text = object.dump();
  return text.substr(1, text.size() - 2);
}

// A value of the file as a sentence shows it: its beginning where it is long.
std::string Shown(const Json& value) {
  constexpr size_t kShown = 60;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...\"";  // only texts are long
}

// Reads the keys of one object of the file. A key that nobody has taken in the end is unknown.
class Row {
 public:
  Row(const Json& object, std::string name) : object_(object), name_(std::move(name)) {
    if (!object.is_object()) Wrong("is {} where an object is expected", Describe(object));
  }

  const std::string& name() const { return name_; }
  void Rename(std::string name) { name_ = std::move(name); }

  int64_t Integer(const char* key, int64_t least, int64_t most = INT64_MAX) {
    const Json& value = Take(key);
    if (!value.is_number_integer() || value.get<double>() < static_cast<double>(least) ||
        value.get<double>() > static_cast<double>(most)) {
      Wrong("\"{}\" is {} where a whole number of at least {} is expected", key, Describe(value),
            least);
    }
    return value.get<int64_t>();
  }
  int32_t Small(const char* key, int32_t least) {
    return static_cast<int32_t>(Integer(key, least, INT32_MAX));
  }
  double Real(const char* key) {
    const Json& value = Take(key);
    if (!value.is_number()) Wrong("\"{}\" is {} where a number is expected", key, Describe(value));
    return value.get<double>();
  }
  bool Flag(const char* key) {
    const Json& value = Take(key);
    if (!value.is_boolean()) {
      Wrong("\"{}\" is {} where true or false is expected", key, Describe(value));
    }
    return value.get<bool>();
  }
  std::string Text(const char* key) {
    const Json& value = Take(key);
    if (!value.is_string()) Wrong("\"{}\" is {} where a text is expected", key, Describe(value));
    return value.get<std::string>();
  }
  std::string OneOf(const char* key, const std::vector<std::string>& words) {
    std::string word = Text(key);
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      Wrong("\"{}\" is {} where one of {} is expected", key, Shown(word), fmt::join(words, ", "));
    }
    return word;
  }
  const Json& Object(const char* key) { return Take(key); }
  const Json& List(const char* key) {
    const Json& value = Take(key);
    if (!value.is_array()) Wrong("\"{}\" is {} where a list is expected", key, Describe(value));
    return value;
  }
  bool Has(const char* key) const { return object_.contains(key); }

  // Throws PlanError if a key was not taken.
  void Close() const {
    for (const auto& [key, value] : object_.items()) {
      if (taken_.count(key) == 0) {
        throw PlanError(PlanRule::kUnknownKey, name_,
                        fmt::format("{} is no key of this row, which has {}; correct or remove it",
                                    Shown(key), fmt::join(taken_, ", ")));
      }
    }
  }

 private:
  const Json& Take(const char* key) {
    taken_.insert(key);
    const auto found = object_.find(key);
    if (found == object_.end()) {
      throw PlanError(PlanRule::kMissingKey, name_, fmt::format("\"{}\" is missing", key));
    }
    return *found;
  }
  template <typename... Words>
  [[noreturn]] void Wrong(fmt::format_string<Words...> format, Words&&... words) const {
    throw PlanError(PlanRule::kWrongValue, name_,
                    fmt::format(format, std::forward<Words>(words)...));
  }
  static std::string Describe(const Json& value) {
    if (value.is_object()) return "an object";
    if (value.is_array()) return "a list";
    return Shown(value);
  }

  const Json& object_;
  std::string name_;
  std::set<std::string> taken_;
};

PlanRegion ParseRegion(const Json& json, size_t index) {
  const std::string name = fmt::format("region {}", index);
  Row row(json, name);
  PlanRegion region;
  region.region = static_cast<int32_t>(
      row.Integer("region", static_cast<int64_t>(index), static_cast<int64_t>(index)));
  region.captured = row.OneOf("kind", {"captured", "eager"}) == "captured";
  region.first_call = row.Integer("first_call", 1);
  region.last_call = row.Integer("last_call", 1);
  region.reason = row.Has("reason") ? row.Text("reason") : "";
  region.gain_ns = row.Has("gain_ns") ? row.Real("gain_ns") : 0;
  if (region.captured || row.Has("placements")) {
    const Json& rows = row.List("placements");
    for (size_t i = 0; i < rows.size(); ++i) {
      Row placement(rows[i], fmt::format("{}, placement {}", name, i));
      PlanPlacement& place = region.placements.emplace_back();
      place.call_id = placement.Integer("call", 1);
      placement.Rename(fmt::format("{} (call {})", placement.name(), place.call_id));
      place.stream = placement.Small("stream", 0);
      place.op = placement.Has("op") ? placement.Text("op") : "";
      placement.Close();
    }
  }
  if (row.Has("waits")) {
    const Json& rows = row.List("waits");
    for (size_t i = 0; i < rows.size(); ++i) {
      Row entry(rows[i], fmt::format("{}, wait {}", name, i));
      PlanWait& wait = region.waits.emplace_back();
      wait.record_after = entry.Integer("record_after", 1);
      wait.wait_before = entry.Integer("wait_before", 1);
      wait.event = entry.Small("event", 0);
      entry.Close();
    }
  }
  row.Close();
  return region;
}

PlanPrediction ParsePrediction(const Json& json) {
  Row row(json, "predicted");
  PlanPrediction predicted;
  predicted.eager_ns = row.Real("eager_ns");
  predicted.captured_one_stream_ns = row.Real("captured_one_stream_ns");
  predicted.captured_ns = row.Real("captured_ns");
  predicted.capture_cost_ns = row.Real("capture_cost_ns");
  predicted.break_even_steps = row.Real("break_even_steps");
  predicted.stay_eager = row.Flag("stay_eager");
  predicted.reason = row.Has("reason") ? row.Text("reason") : "";
  predicted.calibrated = row.Has("calibrated") && row.Flag("calibrated");
  row.Close();
  return predicted;
}

Json ToJson(const PlanPrediction& predicted) {
  Json json = {{"eager_ns", predicted.eager_ns},
               {"captured_one_stream_ns", predicted.captured_one_stream_ns},
               {"captured_ns", predicted.captured_ns},
               {"capture_cost_ns", predicted.capture_cost_ns},
               {"break_even_steps", predicted.break_even_steps},
               {"stay_eager", predicted.stay_eager}};
  if (!predicted.reason.empty()) json["reason"] = predicted.reason;
  if (predicted.calibrated) json["calibrated"] = true;
  return json;
}

void AppendRegion(std::string& text, const PlanRegion& region, bool last) {
  Json head = {{"region", region.region},
               {"kind", region.captured ? "captured" : "eager"},
               {"first_call", region.first_call},
               {"last_call", region.last_call},
               {"reason", region.reason}};
  if (region.gain_ns != 0) head["gain_ns"] = region.gain_ns;
  text += "    {" + Members(head);
  if (region.captured) {
    std::vector<Json> placements;
    for (const PlanPlacement& place : region.placements) {
      Json& row = placements.emplace_back();
      row = {{"call", place.call_id}, {"stream", place.stream}};
      if (!place.op.empty()) row["op"] = place.op;
    }
    std::vector<Json> waits;
    for (const PlanWait& wait : region.waits) {
      waits.push_back({{"record_after", wait.record_after},
                       {"wait_before", wait.wait_before},
                       {"event", wait.event}});
    }
    text += ",\n";
    AppendRows(text, "      ", "placements", placements, false);
    AppendRows(text, "      ", "waits", waits, true);
    text += "    ";
  }
  text += last ? "}\n" : "},\n";
}

}  // namespace

std::string PlanText(const Plan& plan) {
  std::string text(kPlanHead);
  const auto add = [&](const char* key, const Json& value) {
    text += fmt::format("  \"{}\": {},\n", key, value.dump());
  };
  text += fmt::format("{},\n", plan.version);
  add("trace_calls", plan.trace_calls);
  add("step", plan.step);
  add("first_call", plan.first_call);
  add("last_call", plan.last_call);
  add("capture_mode", plan.capture_mode);
  add("soc", plan.soc);
  add("streams", plan.streams);
  text += "  \"regions\": [\n";
  for (const PlanRegion& region : plan.regions) {
    AppendRegion(text, region, &region == &plan.regions.back());
  }
  text += "  ],\n";
  std::vector<Json> copies;
  for (const PlanCopy& copy : plan.copies) {
    copies.push_back({{"call", copy.call_id}, {"argument", copy.argument}, {"bytes", copy.bytes}});
  }
  AppendRows(text, "  ", "copies", copies, false);
  std::vector<Json> updates;
  for (const PlanUpdate& update : plan.updates) {
    updates.push_back({{"call", update.call_id}, {"argument", update.argument}});
  }
  AppendRows(text, "  ", "updates", updates, false);
  text += fmt::format("  \"predicted\": {}\n}}\n", ToJson(plan.predicted).dump());
  return text;
}

Plan ParsePlan(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw PlanError(PlanRule::kSyntax, fmt::format("byte {}", error.byte),
                    "the file is no JSON from here on; correct it or write the plan again");
  }
  Row row(json, "plan");
  Plan plan;
  plan.version = row.Small("version", 1);
  if (plan.version > Plan().version) {
    throw PlanError(PlanRule::kNewerVersion, "plan",
                    fmt::format("\"version\" is {} and this build reads up to {}; use a newer "
                                "acltape or plan again",
                                plan.version, Plan().version));
  }
  if (row.Has("written")) row.Text("written");
  plan.trace_calls = row.Integer("trace_calls", 0);
  plan.step = row.Integer("step", 0);
  plan.first_call = row.Integer("first_call", 1);
  plan.last_call = row.Integer("last_call", 1);
  plan.capture_mode = row.OneOf("capture_mode", {"global", "thread_local", "relaxed"});
  plan.soc = row.Has("soc") ? row.Text("soc") : plan.soc;
  plan.streams = row.Small("streams", 1);
  const Json& regions = row.List("regions");
  for (size_t i = 0; i < regions.size(); ++i) {
    plan.regions.push_back(ParseRegion(regions[i], i));
  }
  if (row.Has("copies")) {
    const Json& rows = row.List("copies");
    for (size_t i = 0; i < rows.size(); ++i) {
      Row entry(rows[i], fmt::format("copy {}", i));
      PlanCopy& copy = plan.copies.emplace_back();
      copy.call_id = entry.Integer("call", 1);
      copy.argument = entry.Text("argument");
      copy.bytes = entry.Integer("bytes", 1);
      entry.Close();
    }
  }
  if (row.Has("updates")) {
    const Json& rows = row.List("updates");
    for (size_t i = 0; i < rows.size(); ++i) {
      Row entry(rows[i], fmt::format("update {}", i));
      PlanUpdate& update = plan.updates.emplace_back();
      update.call_id = entry.Integer("call", 1);
      update.argument = entry.Text("argument");
      entry.Close();
    }
  }
  if (row.Has("predicted")) plan.predicted = ParsePrediction(row.Object("predicted"));
  row.Close();
  return plan;
}

bool IsWrittenPlan(const std::string& path) {
  std::string text = storage::ReadPlainFile(path).value_or("");
  if (!text.starts_with(kPlanHead)) return false;
  const size_t line = text.find(kWrittenKey);
  if (line == std::string::npos) return false;
  const size_t digest = line + kWrittenKey.size();
  const std::string stated = text.substr(digest, text.find('"', digest) - digest);
  text.erase(line, text.find('\n', line) + 1 - line);
  return stated == storage::DigestOf(text.data(), text.size());
}

storage::OutputRules PlanRules(const std::string& trace, bool overwrite) {
  return {.overwrite = overwrite, .trace = trace, .is_own = IsWrittenPlan};
}

void WritePlan(const Plan& plan, const std::string& path, const storage::OutputRules& rules) {
  std::string text = PlanText(plan);
  const std::string digest = storage::DigestOf(text.data(), text.size());
  text.insert(text.find('\n', kPlanHead.size()) + 1, fmt::format("{}{}\",\n", kWrittenKey, digest));
  storage::WriteNewFile(path, text, rules);
}

Plan ReadPlan(const std::string& path, const Work& work, bool allow_races,
              std::vector<std::string>* warnings) {
  std::string why;
  const std::optional<std::string> text = storage::ReadPlainFile(path, &why);
  if (!text) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("the plan '{}' {}; `acltape plan TRACE -o FILE` writes one", path, why));
  }
  try {
    Plan plan = ParsePlan(*text);
    std::vector<std::string> races = ValidatePlan(plan, work, allow_races);
    if (warnings != nullptr) *warnings = std::move(races);
    return plan;
  } catch (const PlanError& error) {
    throw error.In(path);
  }
}

}  // namespace acltape::analyzer::plan
