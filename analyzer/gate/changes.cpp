#include "analyzer/gate/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "meaning/options.h"
#include "storage/error.h"

namespace acltape::analyzer::gate {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

bool Matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  text.remove_prefix(star);
  for (size_t skip = 0; skip <= text.size(); ++skip) {
    if (Matches(pattern, text.substr(skip))) return true;
  }
  return false;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Reads "+2", "-5%", "any", "better" into the rule. False: it is none of these.
bool ReadChange(std::string_view word, AllowRule& rule) {
  if (word == "better") {
    rule.better = true;
    return true;
  }
  if (word == "any") {
    rule.more = rule.less = kAny;
    return true;
  }
  if (word.size() < 2 || (word[0] != '+' && word[0] != '-')) return false;
  const bool more = word[0] == '+';
  word.remove_prefix(1);
  if (word == "any") {
    (more ? rule.more : rule.less) = kAny;
    return true;
  }
  const bool percent = word.back() == '%';
  if (percent) word.remove_suffix(1);
  double number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size() || number < 0) return false;
  double& limit =
      more ? (percent ? rule.more_percent : rule.more) : (percent ? rule.less_percent : rule.less);
  limit = number;
  return true;
}

bool Allows(const AllowRule& rule, const Change& change) {
  if (!Matches(rule.pattern, change.name)) return false;
  if (rule.better && change.verdict == Verdict::kBetter) return true;
  const double by = change.difference();
  const double percent = by > 0 ? rule.more_percent : rule.less_percent;
  const double limit = std::max(by > 0 ? rule.more : rule.less, change.before * percent / 100);
  return std::abs(by) <= limit;
}

Verdict Judge(const Change& change) {
  if (!change.was_known || !change.is_known) return Verdict::kNotKnown;
  if (change.before == change.now) return Verdict::kEqual;
  const MeasureKind* kind = change.is_cause ? nullptr : FindMeasure(change.name);
  const Better better = kind == nullptr ? Better::kLess : kind->better;
  if (better == Better::kNeither) return Verdict::kOther;
  return (change.now < change.before) == (better == Better::kLess) ? Verdict::kBetter
                                                                   : Verdict::kWorse;
}

Change ChangeOfMeasure(const std::string& name, const Baseline& baseline,
                       const Measured& measured) {
  Change change;
  change.name = name;
  const auto before = baseline.measures.find(name);
  const auto now = measured.values.find(name);
  change.was_known = before != baseline.measures.end();
  change.is_known = now != measured.values.end();
  if (change.was_known) change.before = before->second;
  if (change.is_known) change.now = now->second;
  if (!change.was_known) change.why = "the baseline has no such measure";
  if (!change.is_known) change.why = "the trace does not tell it";
  if (change.was_known && change.is_known && baseline.basis != measured.basis &&
      name.starts_with("step.")) {
    change.is_known = false;
    change.why = fmt::format("the baseline has it of a {}, the trace of a {}", baseline.basis,
                             measured.basis);
  }
  return change;
}

Change ChangeOfCause(const std::string& key, const Baseline& baseline, const Measured& measured) {
  Change change;
  change.name = key;
  change.is_cause = true;
  const auto before = baseline.causes.find(key);
  const auto now = measured.causes.find(key);
  if (before != baseline.causes.end()) change.before = static_cast<double>(before->second);
  if (now != measured.causes.end()) {
    change.now = static_cast<double>(now->second.count);
    change.cause = &now->second;
  }
  return change;
}

template <typename First, typename Second>
std::set<std::string> KeysOf(const First& first, const Second& second) {
  std::set<std::string> keys;
  for (const auto& [key, value] : first) keys.insert(key);
  for (const auto& [key, value] : second) keys.insert(key);
  return keys;
}

}  // namespace

AllowRule ParseAllowRule(std::string_view text, const std::string& where) {
  AllowRule rule;
  const std::string_view line = Trimmed(text.substr(0, text.find('#')));
  rule.text = line;
  std::string_view rest = line;
  // The changes are the last words. What is before them is the pattern, which may have spaces.
  size_t changes = 0;
  while (true) {
    const size_t space = rest.find_last_of(" \t");
    if (space == std::string_view::npos) break;
    if (!ReadChange(rest.substr(space + 1), rule)) break;
    ++changes;
    rest = Trimmed(rest.substr(0, space));
  }
  rule.pattern = rest;
  if (changes == 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: '{}' allows nothing; write a measure and how much it may change, "
                            "such as 'step.launches +2', 'step.bytes_* +5%' or '* better'",
                            where, line));
  }
  const bool name = rule.pattern.find_first_of("*|") == std::string::npos;
  if (name && FindMeasure(rule.pattern) == nullptr) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: '{}' is no measure; `acltape gate @list` lists them"_cli, where,
                            rule.pattern));
  }
  return rule;
}

std::string_view VerdictName(Verdict verdict) {
  constexpr std::string_view kNames[] = {"equal",  "allowed", "not known",
                                         "better", "worse",   "differs"};
  return kNames[static_cast<size_t>(verdict)];
}

std::vector<Change> FindChanges(const Baseline& baseline, const Measured& measured) {
  std::vector<Change> changes;
  for (const std::string& name : KeysOf(baseline.measures, measured.values)) {
    changes.push_back(ChangeOfMeasure(name, baseline, measured));
  }
  for (const std::string& key : KeysOf(baseline.causes, measured.causes)) {
    changes.push_back(ChangeOfCause(key, baseline, measured));
  }
  for (Change& change : changes) {
    change.verdict = Judge(change);
    if (change.verdict < Verdict::kBetter) continue;
    for (const AllowRule& rule : baseline.allowed) {
      if (!Allows(rule, change)) continue;
      change.verdict = Verdict::kAllowed;
      change.why = rule.text;
      break;
    }
  }
  return changes;
}

int ExitCodeOf(const std::vector<Change>& changes) {
  const auto any = [&](auto&& is) { return std::any_of(changes.begin(), changes.end(), is); };
  if (any([](const Change& change) { return change.verdict >= Verdict::kBetter; })) return 1;
  const bool unknown =
      any([](const Change& change) { return change.verdict == Verdict::kNotKnown; });
  return unknown ? static_cast<int>(ErrorKind::kCannotJudge) : 0;
}

}  // namespace acltape::analyzer::gate
