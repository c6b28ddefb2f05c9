// Precision standards: when is a difference too much? Data, not code: standards.json has a version,
// named standards, and rows of op class, element type, metric, threshold and source.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/metrics/metrics.h"

namespace acltape::analyzer {

// A judgement with its reason.
struct Judgement {
  enum class Verdict { kEqual, kWithin, kDifferent };
  Verdict verdict = Verdict::kEqual;
  // Of kDifferent, and of kWithin what came nearest: "max_rel 0.0031 > 0.001 (float16, absolute
  // threshold ops)".
  std::string reason;
};

class Standard {
 public:
  // "bitwise", the name of a built-in standard, or the path of a file in the same form. Throws
  // Error kUsage: what is wrong, where, and which names there are.
  static Standard Load(const std::string& name_or_path);
  // Names of the built-in ones with a sentence each.
  static std::vector<std::pair<std::string, std::string>> BuiltIn();

  const std::string& name() const { return name_; }
  bool bitwise() const { return bitwise_; }

  // `op` is a full name ("aten::mm" or "aclnnMm"), which has a class in the data file; `dtype` the
  // coarser element type of the two.
  Judgement Judge(std::string_view op, storage::DType dtype, const TensorMetrics& metrics) const;

 private:
  struct Rule {
    std::string op_class;  // "*": every class
    std::string dtype;     // "*": every type
    std::string metric;
    bool at_least = false;  // the metric must be at least the threshold, else at most
    double threshold = 0;
    std::string source;
    int group = 0;  // rules of one group must fail together for the group to fail
  };
  std::string name_;
  bool bitwise_ = false;
  std::vector<Rule> rules_;
};

}  // namespace acltape::analyzer
