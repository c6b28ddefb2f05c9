#include "cli/gate/gate_files.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "meaning/options.h"
#include "storage/error.h"
#include "storage/new_file.h"
#include "storage/plain_file.h"

namespace acltape::cli {
namespace {

using analyzer::gate::AllowRule;
using nlohmann::ordered_json;

constexpr char kKey[] = "acltape_gate_baseline";
constexpr int kVersion = 1;
constexpr char kRatio[] = "captured_to_eager";

[[noreturn]] void RefuseBaseline(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::kUsage,
              fmt::format("the baseline '{}' {}; `acltape gate TRACE @write-baseline FILE` writes "
                          "one."_cli,
                          path, why));
}

// Nothing if the file is no JSON.
ordered_json Document(const std::string& path) {
  std::string why;
  const std::optional<std::string> text = storage::ReadPlainFile(path, &why);
  if (!text) RefuseBaseline(path, why);
  return ordered_json::parse(*text, nullptr, /*allow_exceptions=*/false);
}

bool IsGateBaseline(const std::string& path) {
  const std::string text = storage::ReadPlainFile(path).value_or("");
  if (!text.starts_with('{')) return false;
  const auto document = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  return document.is_object() && document.contains(kKey);
}

storage::OutputRules Rules(const std::string& trace) {
  return {.trace = trace,
          .is_own = IsGateBaseline,
          .remedy = "it is no baseline of gate, so name another file"};
}

// The numbers of an object of the document, by name.
std::map<std::string, double> Numbers(const std::string& path, const ordered_json& document,
                                      const char* key) {
  if (!document.contains(key) || !document[key].is_object()) {
    RefuseBaseline(path, fmt::format("has no object '{}'", key));
  }
  std::map<std::string, double> numbers;
  for (const auto& [name, value] : document[key].items()) {
    if (!value.is_number()) {
      RefuseBaseline(path, fmt::format("has no number for '{}' in '{}'", name, key));
    }
    numbers.emplace(name, value.get<double>());
  }
  return numbers;
}

std::optional<TimeRatio> TimesOf(const std::string& path, const ordered_json& document) {
  if (!document.contains("times")) return std::nullopt;
  const ordered_json& times = document["times"];
  if (!times.is_object() || !times.contains(kRatio) || !times[kRatio].is_object()) {
    RefuseBaseline(path, fmt::format("has no object '{}' in 'times'", kRatio));
  }
  const std::map<std::string, double> numbers = Numbers(path, times, kRatio);
  TimeRatio ratio;
  const std::pair<const char*, double*> parts[] = {
      {"median", &ratio.median}, {"low", &ratio.low}, {"high", &ratio.high}};
  for (const auto& [name, part] : parts) {
    const auto found = numbers.find(name);
    if (found == numbers.end() || found->second <= 0) {
      RefuseBaseline(path, fmt::format("has no positive number for '{}' in '{}'", name, kRatio));
    }
    *part = found->second;
  }
  return ratio;
}

// A number as JSON; whole ones without a point.
ordered_json NumberJson(double number) {
  if (number == std::floor(number)) return static_cast<int64_t>(number);
  return number;
}

}  // namespace

GateBaseline ReadGateBaseline(const std::string& path) {
  const ordered_json document = Document(path);
  if (!document.is_object() || !document.contains(kKey)) {
    RefuseBaseline(path, "is no baseline of gate");
  }
  if (document[kKey] != kVersion) RefuseBaseline(path, "is of another version of acltape");
  GateBaseline baseline;
  baseline.path = path;
  if (!document.contains("basis") || !document["basis"].is_string()) {
    RefuseBaseline(path, "has no text 'basis'");
  }
  baseline.counts.basis = document["basis"].get<std::string>();
  baseline.counts.measures = Numbers(path, document, "measures");
  for (const auto& [name, value] : Numbers(path, document, "findings")) {
    baseline.counts.causes.emplace(name, static_cast<int64_t>(value));
  }
  if (document.contains("allow")) {
    if (!document["allow"].is_array()) RefuseBaseline(path, "has no list 'allow'");
    for (const ordered_json& rule : document["allow"]) {
      if (!rule.is_string()) RefuseBaseline(path, "has something else than texts in 'allow'");
      baseline.counts.allowed.push_back(analyzer::gate::ParseAllowRule(
          rule.get<std::string>(), fmt::format("'allow' of the baseline '{}'", path)));
    }
  }
  baseline.times = TimesOf(path, document);
  return baseline;
}

std::vector<AllowRule> ReadAllowFile(const std::string& path) {
  std::string why;
  const std::optional<std::string> text = storage::ReadPlainFile(path, &why);
  if (!text) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the list of allowed changes '{}' {}; it is a text with a rule on each "
                            "line, such as 'step.launches +2'",
                            path, why));
  }
  std::istringstream file(*text);
  std::vector<AllowRule> rules;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    rules.push_back(analyzer::gate::ParseAllowRule(line, fmt::format("{}:{}", path, number)));
  }
  return rules;
}

void JudgeGateBaseline(const std::string& path, const std::string& trace) {
  storage::JudgeOutput(path, Rules(trace));
}

void WriteGateBaseline(const std::string& path, const std::string& trace,
                       const analyzer::gate::Measured& measured,
                       const std::optional<TimeRatio>& times) {
  ordered_json allow = ordered_json::array();
  if (IsGateBaseline(path)) {
    const ordered_json before = Document(path);
    if (before.contains("allow")) allow = before["allow"];
  }
  ordered_json measures = ordered_json::object();
  for (const auto& [name, value] : measured.values) measures[name] = NumberJson(value);
  ordered_json findings = ordered_json::object();
  for (const auto& [key, cause] : measured.causes) findings[key] = cause.count;
  ordered_json document{{kKey, kVersion},
                        {"basis", measured.basis},
                        {"allow", std::move(allow)},
                        {"measures", std::move(measures)},
                        {"findings", std::move(findings)}};
  if (times) {
    document["times"][kRatio] = {
        {"median", times->median}, {"low", times->low}, {"high", times->high}};
  }
  storage::WriteNewFile(path,
                        document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n',
                        Rules(trace));
}

int64_t LineInBaseline(const std::string& path, const std::string& name) {
  const std::string key =
      ordered_json(name).dump(-1, ' ', false, ordered_json::error_handler_t::replace) + ":";
  std::istringstream file(storage::ReadPlainFile(path).value_or(""));
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.find(key) != std::string::npos) return number;
  }
  return 1;
}

}  // namespace acltape::cli
