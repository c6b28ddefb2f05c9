#include "analyzer/metrics/standard.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "analyzer/metrics/standards_file.h"
#include "storage/error.h"

namespace acltape::analyzer::metrics {
namespace {

using storage::DType;
using Verdict = Judgement::Verdict;

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// The relative change of a statistic against the reference.
double Change(double a, double b) {
  if (a == b) return 0;
  return a == 0 ? 1 : std::fabs(a - b) / std::fabs(a);
}

double Decibels(double ratio) {
  return ratio <= 0 ? std::numeric_limits<double>::infinity() : -10 * std::log10(ratio);
}

// The mean square error divided by the square of the reference's greatest magnitude.
double PeakError(const TensorMetrics& metrics) {
  const double peak = std::max(std::fabs(metrics.a.min), std::fabs(metrics.a.max));
  if (metrics.rmse == 0) return 0;
  return peak == 0 ? std::numeric_limits<double>::infinity()
                   : metrics.rmse * metrics.rmse / (peak * peak);
}

struct MetricRow {
  const char* name;
  const char* about;
  // NaN means that the metric is not defined. No rule accepts NaN.
  double (*value)(const TensorMetrics& metrics);
};

const MetricRow kMetrics[] = {
    {"differing", "elements whose bits differ",
     [](const TensorMetrics& m) { return static_cast<double>(m.differing); }},
    {"max_abs", "greatest absolute error", [](const TensorMetrics& m) { return m.max_abs; }},
    {"mean_abs", "mean absolute error", [](const TensorMetrics& m) { return m.mean_abs; }},
    {"rmse", "root of the mean square error", [](const TensorMetrics& m) { return m.rmse; }},
    {"max_rel", "greatest relative error", [](const TensorMetrics& m) { return m.max_rel; }},
    {"mean_rel", "mean relative error", [](const TensorMetrics& m) { return m.mean_rel; }},
    {"max_abs_or_rel", "greatest of the smaller of absolute and relative error",
     [](const TensorMetrics& m) { return m.max_abs_or_rel; }},
    {"max_rel_large", "greatest relative error where the reference is not small",
     [](const TensorMetrics& m) { return m.max_rel_large; }},
    {"max_abs_small", "greatest absolute error where the reference is small",
     [](const TensorMetrics& m) { return m.max_abs_small; }},
    {"max_ulp", "greatest distance in units in the last place",
     [](const TensorMetrics& m) {
       return m.max_ulp < 0 ? kUndefined : static_cast<double>(m.max_ulp);
     }},
    {"mean_ulp", "mean distance in units in the last place",
     [](const TensorMetrics& m) { return m.max_ulp < 0 ? kUndefined : m.mean_ulp; }},
    {"cosine", "cosine similarity", [](const TensorMetrics& m) { return m.cosine; }},
    {"nmse", "sum of squared errors by the sum of squares of the reference",
     [](const TensorMetrics& m) { return m.nmse; }},
    {"snr", "signal-to-noise ratio, dB", [](const TensorMetrics& m) { return Decibels(m.nmse); }},
    {"psnr", "peak signal-to-noise ratio, dB",
     [](const TensorMetrics& m) { return Decibels(PeakError(m)); }},
    {"within_hundredth", "share of elements with a relative error of at most 1/100",
     [](const TensorMetrics& m) { return m.within_hundredth; }},
    {"within_thousandth", "... of at most 1/1000",
     [](const TensorMetrics& m) { return m.within_thousandth; }},
    {"within_ten_thousandth", "... of at most 1/10000",
     [](const TensorMetrics& m) { return m.within_ten_thousandth; }},
    {"min_change", "relative change of the smallest element",
     [](const TensorMetrics& m) { return Change(m.a.min, m.b.min); }},
    {"max_change", "relative change of the greatest element",
     [](const TensorMetrics& m) { return Change(m.a.max, m.b.max); }},
    {"mean_change", "relative change of the mean",
     [](const TensorMetrics& m) { return Change(m.a.mean, m.b.mean); }},
    {"norm_change", "relative change of the L2 norm",
     [](const TensorMetrics& m) { return Change(m.a.norm, m.b.norm); }},
};
constexpr std::string_view kUlpShare = "ulp_share_above:";

std::string RuleText(const Standard::Rule& rule, double value) {
  const bool kept = rule.at_least ? value >= rule.threshold : value <= rule.threshold;
  const char* relation = rule.at_least ? (kept ? ">=" : "<") : (kept ? "<=" : ">");
  if (std::isnan(value)) return fmt::format("{} is not defined", rule.metric);
  return fmt::format("{} {:.4g} {} {:.4g}", rule.metric, value, relation, rule.threshold);
}

// The used share of what a rule allows. Above 1 the rule fails.
double Used(const Standard::Rule& rule, double value) {
  if (std::isnan(value)) return std::numeric_limits<double>::infinity();
  if (!rule.at_least) {
    if (value <= rule.threshold) return rule.threshold == 0 ? 0 : value / rule.threshold;
    return std::numeric_limits<double>::infinity();
  }
  if (value < rule.threshold) return std::numeric_limits<double>::infinity();
  // Shares and cosines are at most 1. Other metrics have no upper limit.
  if (rule.threshold < 1) return (1 - value) / (1 - rule.threshold);
  return rule.threshold / value;
}

// The element type by which rules are found.
std::string RuleType(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kComplex32:
      return "float16";
    case DType::kFloat32:
    case DType::kComplex64:
      return "float32";
    case DType::kFloat64:
    case DType::kComplex128:
      return "float64";
    case DType::kBfloat16:
      return "bfloat16";
    default:
      return "integer";
  }
}

std::vector<const Standard::Rule*> RulesFor(const std::vector<Standard::Rule>& rules,
                                            const std::string& op_class, const std::string& dtype) {
  const std::pair<std::string, std::string> keys[] = {
      {op_class, dtype}, {op_class, "*"}, {"*", dtype}, {"*", "*"}};
  for (const auto& [wanted_class, wanted_type] : keys) {
    std::vector<const Standard::Rule*> found;
    for (const Standard::Rule& rule : rules) {
      if (rule.op_class == wanted_class && rule.dtype == wanted_type) found.push_back(&rule);
    }
    if (!found.empty()) return found;
  }
  return {};
}

std::string BareName(std::string_view op) {
  const size_t colons = op.rfind("::");
  if (colons != std::string_view::npos) op.remove_prefix(colons + 2);
  op = op.substr(0, op.find('.'));
  for (const std::string_view prefix : {"aclnn", "Inplace"}) {
    if (op.starts_with(prefix)) op.remove_prefix(prefix.size());
  }
  std::string bare;
  for (const char letter : op) {
    if (letter != '_') bare += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return bare;
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  constexpr std::string_view kNames[] = {"equal", "within", "different"};
  return kNames[static_cast<int>(verdict)];
}

std::optional<double> MetricValue(const std::string& name, const TensorMetrics& metrics) {
  for (const MetricRow& row : kMetrics) {
    if (name == row.name) return row.value(metrics);
  }
  if (!name.starts_with(kUlpShare)) return std::nullopt;
  const std::string limit = name.substr(kUlpShare.size());
  if (limit.empty() || limit.size() > 9 ||
      limit.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return metrics.max_ulp < 0 ? kUndefined : metrics.ShareAboveUlp(std::stol(limit));
}

std::vector<std::pair<std::string, std::string>> MetricNames() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const MetricRow& row : kMetrics) names.emplace_back(row.name, row.about);
  names.emplace_back(std::string(kUlpShare) + "N",
                     "share of elements more than N units in the last place apart, N a power of 2");
  return names;
}

std::string Standard::OpClass(std::string_view op) const {
  const std::string bare = BareName(op);
  if (classes_ != nullptr) {
    for (const auto& [name, patterns] : *classes_) {
      for (const std::string& pattern : patterns) {
        if (fnmatch(pattern.c_str(), bare.c_str(), 0) == 0) return name;
      }
    }
  }
  return "other";
}

double Standard::SmallValue(DType dtype) const {
  for (const std::string& key : {RuleType(dtype), std::string("*")}) {
    const auto found = small_values_.find(key);
    if (found != small_values_.end()) return found->second;
  }
  return DefaultSmallValue(dtype);
}

Judgement Standard::Judge(std::string_view op, DType dtype, const TensorMetrics& metrics) const {
  if (metrics.bitwise_equal()) return {Verdict::kEqual, ""};
  if (bitwise_) {
    return {Verdict::kDifferent,
            fmt::format("{} of {} elements have other bits", metrics.differing, metrics.elements)};
  }
  if (metrics.nan_mismatches > 0 || metrics.inf_mismatches > 0) {
    return {Verdict::kDifferent, fmt::format("{} elements are NaN and {} infinite on one side only",
                                             metrics.nan_mismatches, metrics.inf_mismatches)};
  }
  const std::string type = RuleType(dtype);
  const std::string op_class = OpClass(op);
  const std::string place = fmt::format(" ({}, {})", type, op_class);
  const std::vector<const Rule*> rules = RulesFor(rules_, op_class, type);
  if (rules.empty()) {
    return {Verdict::kDifferent,
            fmt::format("{} of {} elements have other bits, and {} has no rule for them{}",
                        metrics.differing, metrics.elements, name_, place)};
  }
  // A group holds if one of its rules holds. It uses the share of the rule that is furthest from
  // failing.
  struct Group {
    double used = std::numeric_limits<double>::infinity();
    std::string text;  // the rule with that share if the group holds, else all its rules
    std::string all;
  };
  std::vector<std::pair<std::string, Group>> groups;
  for (const Rule* rule : rules) {
    const double value = MetricValue(rule->metric, metrics).value_or(kUndefined);
    auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return !rule->group.empty() && group.first == rule->group;
    });
    if (known == groups.end()) known = groups.insert(known, {rule->group, Group()});
    Group& group = known->second;
    const double used = Used(*rule, value);
    const std::string text = RuleText(*rule, value);
    if (group.all.empty() || used < group.used) {
      group.used = used;
      group.text = text;
    }
    group.all += (group.all.empty() ? "" : " and ") + text;
  }
  const Group* nearest = nullptr;
  for (const auto& [name, group] : groups) {
    if (nearest == nullptr || group.used > nearest->used) nearest = &group;
  }
  const bool within = nearest->used <= 1;
  return {within ? Verdict::kWithin : Verdict::kDifferent,
          (within ? nearest->text : nearest->all) + place};
}

Judgement Standard::Compare(std::string_view op, DType a_type, const uint8_t* a, DType b_type,
                            const uint8_t* b, int64_t elements, TensorMetrics* metrics) const {
  const DType coarser = CoarserType(a_type, b_type);
  const TensorMetrics measured =
      Measure(a_type, a, b_type, b, elements, {.small_value = SmallValue(coarser)});
  Judgement judgement = Judge(op, coarser, measured);
  if (metrics != nullptr) *metrics = measured;
  return judgement;
}

Standard Standard::Load(const std::string& name_or_path) {
  if (name_or_path == "bitwise") return Standard();
  Standard standard = LoadStandard(name_or_path);
  standard.given_ = name_or_path;
  return standard;
}

std::vector<std::pair<std::string, std::string>> Standard::BuiltIn() {
  std::vector<std::pair<std::string, std::string>> names{
      {"bitwise", "Every bit is equal; what holds between eager and captured on one device"}};
  for (const auto& name : BuiltInStandards()) names.push_back(name);
  return names;
}

}  // namespace acltape::analyzer::metrics
