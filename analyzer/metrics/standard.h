// A precision standard says when a difference is too much. Standards are data and not code.
// standards.json has a version, operator classes, small values and named standards. The rules of a
// standard are rows of operator class, element type, metric, threshold and source. A user's file
// has the same form. If it leaves out operator classes or small values, those of the built-in file
// are used.
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
// capitals. The first class that has the name counts; it is "other" if none has. Complex types are
// judged as the type of their parts. Integers and booleans have the type "integer". These sets of
// rows are looked up in order, and the first one that is not empty judges: operator class and
// element type; the class and "*"; "*" and the type; "*" and "*". If all are empty, bits must be
// equal.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/metrics/metrics.h"

namespace acltape::analyzer::metrics {

// A judgement with its reason.
struct Judgement {
  enum class Verdict { kEqual, kWithin, kDifferent };
  Verdict verdict = Verdict::kEqual;
  // The metric that failed (kDifferent) or came nearest to failing (kWithin). Example: "max_rel
  // 0.0031 > 0.001 (float16, matmul)".
  std::string reason;
};

// "equal", "within", "different".
std::string_view VerdictName(Judgement::Verdict verdict);

class Standard {
 public:
  // The standard "bitwise".
  Standard() = default;
  // Loads "bitwise", a built-in standard by its name, or a file in the same form with one standard
  // ("FILE:NAME" picks one of several). Throws Error kUsage, which says what is wrong, where, and
  // which names exist.
  static Standard Load(const std::string& name_or_path);
  // The names of the built-in standards with a sentence each, "bitwise" first.
  static std::vector<std::pair<std::string, std::string>> BuiltIn();

  struct Rule {
    std::string op_class;  // "*": every class without own rows
    std::string dtype;     // "*": every type without own rows
    std::string metric;
    bool at_least = false;  // else at most
    double threshold = 0;
    std::string source;
    // Rules of one group must all fail for the group to fail. A rule with an empty group stands
    // alone.
    std::string group;
  };

  const std::string& name() const { return name_; }
  const std::string& about() const { return about_; }
  const std::string& given() const { return given_; }  // the argument of Load
  bool bitwise() const { return bitwise_; }
  // The digest of the text from which it was read; empty for "bitwise".
  const std::string& digest() const { return digest_; }
  const std::vector<Rule>& rules() const { return rules_; }

  // The class of an operator: "matmul", "elementwise", ..., "other".
  std::string OpClass(std::string_view op) const;
  // The least |a| for which the relative error counts (MeasureOptions::small_value).
  double SmallValue(storage::DType dtype) const;

  // Judges by these metrics. `op` is a full name ("aten::mm" or "aclnnMm"). `dtype` is the coarser
  // of the two element types. If a number is NaN or infinite on one side only, every standard finds
  // a difference.
  Judgement Judge(std::string_view op, storage::DType dtype, const TensorMetrics& metrics) const;
  // Measures with the small value of this standard and judges. `metrics` may be null.
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
  // Classes and their patterns, in the order of the file.
  std::shared_ptr<const std::vector<std::pair<std::string, std::vector<std::string>>>> classes_;
  std::map<std::string, double> small_values_;  // by name of the type; "*" is for others
};

// The metrics that rules can name, with a sentence each.
std::vector<std::pair<std::string, std::string>> MetricNames();

}  // namespace acltape::analyzer::metrics
