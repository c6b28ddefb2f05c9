// Reads precision standards from a file and reports what is wrong with one.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/metrics/standard.h"

namespace acltape::analyzer::metrics {

// Loads a built-in standard or one of a file, as Standard::Load does, but not "bitwise".
Standard LoadStandard(const std::string& name_or_path);
std::vector<std::pair<std::string, std::string>> BuiltInStandards();

// The value of a metric by its name in a rule. Empty if the name is not a metric. NaN if the metric
// is not defined for the element type.
std::optional<double> MetricValue(const std::string& name, const TensorMetrics& metrics);

}  // namespace acltape::analyzer::metrics
