// The arguments of one operator call as libtorch values, validated while they are read: what
// binders (engine/kernel_table.h) are written against.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "acl/invoke/operator_table.h"
#include "runtime/opapi/base/objects.h"

namespace acltape::opapi {

// Thrown by binders and accessors; the first phase returns `status` and sets `message`.
struct RejectedCall {
  aclnnStatus status;
  std::string message;
};

// The dtypes that libtorch's CPU operator lacks a kernel for, so that the operator computes in
// float32 and rounds once at the end.
enum class Widen : uint8_t { kNever, kHalf, kBfloat16, kHalfAndBfloat16 };

// An input: the view over device memory, read through operator() at every run, in float32 where the
// library's operator lacks the dtype.
class Operand {
 public:
  Operand() = default;
  Operand(at::Tensor view, Widen widen);

  at::Tensor operator()() const { return widen_ ? view_.to(at::kFloat) : view_; }
  // Like operator(), but counts no reference. `scratch` holds the converted tensor if there is one.
  const at::Tensor& Read(at::Tensor& scratch) const {
    if (!widen_) return view_;
    return scratch = view_.to(at::kFloat);
  }
  const at::Tensor& view() const { return view_; }
  bool defined() const { return view_.defined(); }
  at::IntArrayRef sizes() const { return view_.sizes(); }
  int64_t dim() const { return view_.dim(); }
  // The dtype that operator() yields.
  at::ScalarType dtype() const { return widen_ ? at::kFloat : view_.scalar_type(); }

 private:
  at::Tensor view_;
  bool widen_ = false;
};

class Call {
 public:
  // `merged_out` is kOwnOutputs, or says that `op` is the in-place form of an operator: it lacks
  // the output that the operator has at this position and overwrites its first argument instead.
  static constexpr int kOwnOutputs = -1;
  Call(const acl::OperatorInfo& op, const acl::ArgValue* args, Widen widen,
       int merged_out = kOwnOutputs)
      : op_(op), args_(args), widen_(widen), merged_out_(merged_out) {}

  bool in_place() const { return merged_out_ != kOwnOutputs; }

  // Accessors take the argument's position in the operator table. In an in-place form that is the
  // position in the operator with an output; the output's position then means the first argument.
  // All but Optional* reject NULL.

  at::Tensor View(int i) const;     // as it is, whatever its direction
  Operand In(int i) const;          // an input, widened where needed
  Operand OptionalIn(int i) const;  // not defined() when absent
  at::Tensor Out(int i) const;      // rejects outputs that overlap themselves
  // Like View and Out, for what moves elements: unsigned integers of 16, 32 and 64 bits, which the
  // library lacks, come as the signed integers of as many bits.
  at::Tensor Bits(int i) const;
  at::Tensor BitsOut(int i) const;
  bool IsUnsigned(int i) const;  // true where Bits gives such a stand-in
  // Complex numbers of two halves (ACL_COMPLEX32), which the library does not compute with, as
  // halves in one more dim: the real parts and the imaginary ones.
  bool IsHalfComplex(int i) const;
  at::Tensor HalfParts(int i) const;
  at::Tensor HalfPartsOut(int i) const;
  at::Tensor OptionalOut(int i) const;  // undefined when NULL
  // The kernel reports the shape of output `i` here, and aclGetViewShape then gives it.
  std::shared_ptr<ReportedShape> Reported(int i) const;
  // The argument's tensor as the caller described it.
  aclTensor& Described(int i) const { return *acl::Unpack<aclTensor*>(Value(i)); }
  std::vector<at::Tensor> Views(int i) const;     // members of a tensor list
  std::vector<at::Tensor> ListBits(int i) const;  // like Bits
  std::vector<Operand> Ins(int i) const;
  std::vector<at::Tensor> Outs(int i) const;
  at::Scalar Number(int i) const;
  c10::optional<at::Scalar> OptionalNumber(int i) const;
  std::vector<at::Scalar> Numbers(int i) const;
  int64_t Int(int i) const { return Value(i).integer; }
  bool Bool(int i) const { return Value(i).integer != 0; }
  double Real(int i) const { return Value(i).real; }
  std::string Text(int i) const;
  at::ScalarType Dtype(int i) const;
  // The dtype of arguments `i` and `j` when both are tensors and have the same one. Needs no views,
  // which are most of the cost of a first phase.
  c10::optional<at::ScalarType> SharedDtype(int i, int j) const;
  std::vector<int64_t> Ints(int i) const;  // NULL counts as empty
  std::vector<bool> Bools(int i) const;
  bool IsNull(int i) const { return Value(i).pointer == nullptr; }
  // NULL, or an array, a list or a tensor without elements: callers say "not given" in all ways.
  bool IsAbsent(int i) const;

  // A dim argument counted from the front, checked against `rank` (0-dim tensors have one dim).
  int64_t Dim(int i, int64_t rank) const;
  // Dims of a reduction: empty means all; counted from the front, in the given order, no
  // duplicates.
  std::vector<int64_t> ReductionDims(int i, int64_t rank) const;

  // Rejects the call unless tensor `i` has exactly these sizes. An output of one number may have
  // the shape [1], as on a device; the view then has no dims, like the result.
  void ExpectSizes(int i, const at::Tensor& tensor, at::IntArrayRef sizes) const;
  void ExpectRank(int i, const at::Tensor& tensor, int64_t rank) const;
  // Rejects the call if one of these is given: the soft device lacks what it asks for.
  void ExpectAbsent(const std::vector<int>& positions) const;
  // Rejects index tensors that are neither int32 nor int64.
  void ExpectIndex(int i, const at::Tensor& tensor) const;
  // The broadcast shape of the inputs; rejects inputs that do not broadcast.
  std::vector<int64_t> Broadcast(std::initializer_list<at::IntArrayRef> shapes) const;

  // Rejects the call as invalid: "aclnnAdd: out <what>."
  [[noreturn]] void RejectArg(int i, const std::string& what) const;
  [[noreturn]] void RejectCall(const std::string& what) const;

  const acl::OperatorInfo& op() const { return op_; }
  // The row of argument `i` in the operator table.
  const acl::ArgInfo& Arg(int i) const { return op_.args[Index(i)]; }
  Widen widen() const { return widen_; }
  // The dtype that results of the operator are computed in when promotion says `dtype`.
  at::ScalarType Computed(at::ScalarType dtype) const;

 private:
  enum class Unsigned : uint8_t { kRefused, kAsSigned };
  at::Tensor MakeView(int i, const aclTensor* tensor,
                      Unsigned unsigned_integers = Unsigned::kRefused) const;
  // The view, which the operator writes.
  at::Tensor Written(int i, at::Tensor view) const;
  // The position in `op` of the argument that accessors know as `i`.
  int Index(int i) const {
    if (!in_place() || i < merged_out_) return i;
    return i == merged_out_ ? 0 : i - 1;
  }
  const acl::ArgValue& Value(int i) const { return args_[Index(i)]; }

  const acl::OperatorInfo& op_;
  const acl::ArgValue* args_;
  Widen widen_;
  int merged_out_;
};

// The sizes as messages show them: "[2, 3]".
std::string SizesText(at::IntArrayRef sizes);

}  // namespace acltape::opapi
