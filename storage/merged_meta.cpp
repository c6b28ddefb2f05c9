#include "storage/merged_meta.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "storage/json_text.h"

namespace acltape::storage {
namespace {

// Rows of meta that say something of one trace alone. Of the other rows that differ, those of the
// first trace stand for all.
constexpr std::string_view kOfOneTrace[] = {
    "collector_pid", "collector_start",   "collector_boot", "collector_spool", "rank",
    "trimmed_from",  "trimmed_selection", "trimmed_calls",  "trimmed_ids",     "merged_from"};

bool Has(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Rows of meta that are numbers: what becomes of those of two traces.
struct Extreme {
  const char* key;
  int64_t (*of)(int64_t, int64_t);
};
int64_t Least(int64_t a, int64_t b) { return std::min(a, b); }
int64_t Greatest(int64_t a, int64_t b) { return std::max(a, b); }
int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::max(a, b) : sum;
}
int64_t FirstFailure(int64_t a, int64_t b) { return a != 0 ? a : b; }
constexpr Extreme kExtremes[] = {{"begin_wall_ns", Least}, {"end_wall_ns", Greatest},
                                 {"wall_ns", Greatest},    {"exit_code", FirstFailure},
                                 {"signal", FirstFailure}, {"torch_processes", Sum},
                                 {"acl_processes", Sum}};

std::string OriginText(const MergeSource& source, const MergedProcesses& processes,
                       const std::map<std::string, std::string>& meta,
                       const std::set<std::string>& different) {
  std::string text = "{\"file\":";
  AppendQuoted(text, source.trace->path());
  text += fmt::format(
      ",\"first_process\":{},\"last_process\":{},\"shift_ns\":{},"
      "\"error_ns\":{},\"clock\":",
      processes.added + 1, processes.added + processes.count, source.shift_ns, source.error_ns);
  AppendQuoted(text, source.clock);
  text += ",\"meta\":{";
  bool first = true;
  for (const std::string& key : different) {
    const auto value = meta.find(key);
    if (value == meta.end()) continue;
    if (!first) text += ',';
    first = false;
    AppendQuoted(text, key);
    text += ':';
    AppendQuoted(text, value->second);
  }
  return text + "}}";
}

}  // namespace

void WriteMergedMeta(TraceCopy& copy, const std::vector<MergeSource>& sources,
                     const std::vector<MergedProcesses>& processes,
                     const std::optional<RecordingCost>& cost, int64_t base_ns) {
  std::vector<std::map<std::string, std::string>> all;
  for (const MergeSource& source : sources) all.push_back(source.trace->AllMeta());
  std::map<std::string, std::string> rows;  // the first trace that has a key speaks for all
  for (auto& meta : all) {
    meta.erase(kRecordingCostKey);
    meta.erase("schema_version");
    rows.insert(meta.begin(), meta.end());
  }
  std::set<std::string> different;
  for (const auto& [key, value] : rows) {
    for (const auto& meta : all) {
      const auto other = meta.find(key);
      if (other == meta.end() || other->second != value) different.insert(key);
    }
    if (!different.contains(key) || !Has(kOfOneTrace, key)) copy.SetMeta(key, value);
  }
  for (const Extreme& one : kExtremes) {
    std::optional<int64_t> value;
    for (const auto& meta : all) {
      const auto text = meta.find(one.key);
      if (text == meta.end()) continue;
      const int64_t number = std::strtoll(text->second.c_str(), nullptr, 10);
      value = value ? one.of(*value, number) : number;
    }
    if (value) copy.SetMeta(one.key, std::to_string(*value));
  }
  if (cost) copy.SetMeta(kRecordingCostKey, RecordingCostText(*cost));
  copy.SetMeta("base_ns", std::to_string(base_ns));
  const bool complete = std::ranges::all_of(
      sources, [](const MergeSource& source) { return source.trace->State() == "complete"; });
  copy.SetMeta("state", complete ? "complete" : "partial");
  std::string origins = "[";
  for (size_t i = 0; i < sources.size(); ++i) {
    if (i != 0) origins += ',';
    origins += OriginText(sources[i], processes[i], all[i], different);
  }
  copy.SetMeta("merged_from", origins + "]");
}

}  // namespace acltape::storage
