// One row of the operator grid: an operator, the inputs to try it on, and how to call libtorch's
// own operator for the same result, or a formula of it (formula.h). To put an operator into the
// grid, add a row; nothing else names it.
#pragma once

#include <functional>
#include <string>
#include <tuple>

#include "tests/opapi/grid/source.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi::grid {

// The inputs of one call (what it reads, in the operator table's order) as the library takes them.
class In {
 public:
  explicit In(const Args& args) : args_(args) {}

  int count() const { return static_cast<int>(args_.size()); }
  const Tensor& operator[](int i) const { return std::get<Tensor>(args_.at(i)); }
  c10::optional<Tensor> maybe(int i) const;
  const Tensors& list(int i) const { return std::get<Tensors>(args_.at(i)); }
  at::Scalar number(int i) const;
  c10::optional<at::Scalar> maybe_number(int i) const;
  const std::vector<at::Scalar>& numbers(int i) const;
  int64_t integer(int i) const { return number(i).toLong(); }
  bool flag(int i) const { return number(i).toBool(); }
  double real(int i) const { return number(i).toDouble(); }
  const std::vector<int64_t>& ints(int i) const {
    return std::get<std::vector<int64_t>>(args_.at(i));
  }
  std::vector<int64_t> maybe_ints(int i) const;  // empty where the argument is NULL
  at::ScalarType dtype(int i) const { return std::get<at::ScalarType>(args_.at(i)); }
  const char* text(int i) const { return std::get<const char*>(args_.at(i)); }
  const Arg& arg(int i) const { return args_.at(i); }
  const Args& args() const { return args_; }

 private:
  const Args& args_;
};

// Calls the library. Gives what the operator writes, in the operator table's order; an undefined
// tensor stands for an output that is not asked for.
class Reference {
 public:
  template <typename Fn>
  Reference(Fn fn)  // NOLINT(google-explicit-constructor): rows hold lambdas
      : call_([fn](const In& in) { return Results(fn(in)); }) {}

  Args operator()(const Args& inputs) const { return call_(In(inputs)); }

 private:
  static Args Results(const Tensor& tensor) { return {tensor}; }
  static Args Results(const Tensors& list) { return {list}; }
  static Args Results(const Args& results) { return results; }
  template <typename... T>
  static Args Results(const std::tuple<T...>& results) {
    return std::apply([](const auto&... result) { return Args{result...}; }, results);
  }

  std::function<Args(const In&)> call_;
};

// The distance that an operator may have from the library, and the reason. All others are compared
// bit by bit.
struct Tolerance {
  double ulps = 0;            // units of the output's dtype at the greater magnitude
  double absolute = 0;        // or as far apart as this
  bool strided_only = false;  // bits are equal where the output has the library's strides
  const char* reason = "";
};
inline const Tolerance kComposed = {16, 1e-5, false,
                                    "composed from other operators of the library"};
inline const Tolerance kSummed = {16, 1e-6, true,
                                  "libtorch splits sums by the strides of both sides"};

// The library adds up halves in halves; the operator rounds once.
inline Tensor InFloat(const Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

using Inputs = std::function<std::vector<Args>(Source&, at::ScalarType)>;

struct Row {
  std::string op;
  Inputs inputs;
  Dtypes dtypes;
  Reference reference;
  Tolerance tolerance = {};
  double low = -3, high = 3;  // range of the random inputs
  // True: the in-place form ("aclnnInplaceX", when there is a kernel) is tested, too, and the
  // output may lie over the first input.
  bool inplace = true;
  bool may_refuse = false;  // the reference refuses some of the inputs; set by the row's family
};
using Rows = std::vector<Row>;

// The families, each in the file of its name.
Rows ElementwiseRows();
Rows ElementFormulaRows();
Rows ActivationRows();
Rows ActivationFormulaRows();
Rows ReduceRows();
Rows MatrixRows();
Rows LayerRows();
Rows AttentionRows();
Rows InferenceRows();
Rows BlockSparseRows();
Rows RopeCacheRows();
Rows RingRows();
Rows IndexRows();
Rows IndexFormulaRows();
Rows LinalgRows();
Rows NetworkRows();
Rows ShapeRows();
Rows ForeachRows();
Rows VisionRows();
Rows ResampleRows();
Rows SearchRows();
Rows GradientRows();
Rows VolumeRows();
Rows PositionRows();
Rows QuantizedRows();
Rows FusedNormRows();
Rows AdapterRows();
Rows StateRows();
Rows BoostRows();
Rows BlockCacheRows();
Rows PluginRows();
Rows SharedKvRows();
Rows SplitRows();
Rows SampleRows();
Rows TrainingRows();
Rows RoutingRows();
Rows RegionRows();
Rows GroupQuantisedRows();
Rows ExpertProductRows();
Rows ServingRows();
Rows TurnedRows();

// Makers of inputs; `extra` follows the tensors.
Inputs OneTensor(Args extra = {});
Inputs TwoTensors(Args extra = {}, bool mixed = true);
Inputs TensorAndNumbers(Args extra = {});
// The inputs of all makers, one after the other.
Inputs All(std::vector<Inputs> makers);
// The inputs of a maker for floating dtypes, and none for others.
Inputs OnlyFloats(Inputs maker);

}  // namespace acltape::opapi::grid
