// Precision standards: when is a difference too much? Data, not code: standards.json has a version,
// operator classes, small values and named standards, whose rules are rows of operator class,
// element type, metric, threshold and source. A file of a user has the same form; what it leaves
// out of operator classes and small values is taken from the built-in file.
//
//   {"version": 1,
//    "op_classes": [{"class": "matmul", "ops": ["mm", "addmm", "*matmul*"]}],
//    "standards": [{"name": "mine", "about": "one sentence", "rules": [
//      {"op_class": "matmul", "dtype": "float16", "metric": "max_rel", "at_most": 0.002,
//       "source": "who says so"},
//      {"op_class": "*", "dtype": "*", "metric": "cosine", "at_least": 0.99, "group": "size",
//       "source": "fails only together with the other rules of its group"}]}]}
//
// Names of operators are matched without namespace, "aclnn", "Inplace", overload, underscores and
// capitals; the first class that has the name counts, "other" when none has. Complex types are
// judged as the type of their parts; integers and booleans are the type "integer". Of the rows for
// an operator class and element type, else the class and "*", else "*" and the type, else "*" and
// "*", the first set that is not empty judges. Where none does, bits must be equal.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/metrics/metrics.h"

namespace acltape::analyzer {

// A judgement with its reason.
struct Judgement {
  enum class Verdict { kEqual, kWithin, kDifferent };
  Verdict verdict = Verdict::kEqual;
  // Of kDifferent, and of kWithin what came nearest: "max_rel 0.0031 > 0.001 (float16, matmul)".
  std::string reason;
};

// "equal", "within", "different".
std::string_view VerdictName(Judgement::Verdict verdict);

class Standard {
 public:
  // Bitwise.
  Standard() = default;
  // "bitwise", the name of a built-in standard, or the path of a file in the same form with one
  // standard ("FILE:NAME" picks one of several). Throws Error kUsage: what is wrong, where, and
  // which names there are.
  static Standard Load(const std::string& name_or_path);
  // Names of the built-in ones with a sentence each, "bitwise" first.
  static std::vector<std::pair<std::string, std::string>> BuiltIn();

  struct Rule {
    std::string op_class;  // "*": every class without rows of its own
    std::string dtype;     // "*": every type without rows of its own
    std::string metric;
    bool at_least = false;  // the metric must be at least the threshold, else at most
    double threshold = 0;
    std::string source;
    std::string group;  // rules of one group must fail together for the group to fail; "": alone
  };

  const std::string& name() const { return name_; }
  const std::string& about() const { return about_; }
  const std::string& given() const { return given_; }  // what Load was asked for
  bool bitwise() const { return bitwise_; }
  // Of the text that it was read from; empty for bitwise.
  const std::string& digest() const { return digest_; }
  const std::vector<Rule>& rules() const { return rules_; }

  // "matmul", "elementwise", ..., "other".
  std::string OpClass(std::string_view op) const;
  // What |a| must be for its relative error to count; MeasureOptions::small_value.
  double SmallValue(storage::DType dtype) const;

  // `op` is a full name ("aten::mm" or "aclnnMm"); `dtype` the coarser element type of the two.
  // Numbers that are NaN or infinite on one side only are different by every standard.
  Judgement Judge(std::string_view op, storage::DType dtype, const TensorMetrics& metrics) const;
  // Measures with the small value of this standard and judges; `metrics` may be null.
  Judgement Compare(std::string_view op, storage::DType a_type, const uint8_t* a,
                    storage::DType b_type, const uint8_t* b, int64_t elements,
                    TensorMetrics* metrics) const;

 private:
  friend class StandardsFile;
  std::string name_ = "bitwise";
  std::string given_ = "bitwise";
  std::string about_;
  std::string digest_;
  bool bitwise_ = true;
  std::vector<Rule> rules_;
  // Class and patterns, in the order of the file.
  std::shared_ptr<const std::vector<std::pair<std::string, std::vector<std::string>>>> classes_;
  std::map<std::string, double> small_values_;  // by name of the type, "*": others
};

// The metrics that rules can name, a sentence each.
std::vector<std::pair<std::string, std::string>> MetricNames();

}  // namespace acltape::analyzer
