// The lowering rules: one row per aten operator and case.
//
// `calls` is a small pattern language. It lists aclnn calls with their arguments in the order of
// the operator table:
//
//   aclnnAddmm(self, mat1, mat2, beta, alpha, out, 0)
//   aclnnInplaceCopy(out, self); aclnnInplaceMaskedFillScalar(out, mask, value)
//
//   calls      = call { ";" call }
//   call       = operator "(" [ expression { "," expression } ] ")"
//   expression = number | "true" | "false" | "none" | "'" text "'" | name
//              | function "(" [ expression { "," expression } ] ")"
//
// A name is an argument of the recorded call by its schema name, or a result: "out", or "out0",
// "out1" and so on. An argument that the call does not have is none. Functions are rows of the
// tables in bind.cpp (dtype, list, or, num, flat, ...), attention_functions.cpp,
// composed_functions.cpp, matrix_functions.cpp and view_functions.cpp.
//
// `when` restricts a row to some calls. If there are several conditions, as in "+dim,dim!=1", all
// must hold. Rows of one operator are tried in order:
//   ""            always
//   "+dim"        argument dim is present (not none)
//   "-dim"        it is absent
//   "dim=1"       it has this value; "dim!=1" it has another
//   "dtype self=out"   both tensors have one element type
//   "type self=float16"   the tensor, or the first one of the list, has this element type
//   "rank self=3"      the tensor has this number of dimensions
//   "each"        self is a list of tensors: the calls are made for each of its elements, and names
//                 of lists mean their elements; an empty list has none
//   "device"      the leaf ran on a device, through an adapter whose choice of operator is followed
//
// A mark says that the row also serves the in-place form of its operator, whose name has a "_":
//   kAlsoInPlace    the same arguments for the in-place operator, without out: "neg" with
//                   aclnnNeg(self, out) lowers "neg_" to aclnnInplaceNeg(self)
//   kAlsoIntoSelf   the same calls with self for out: "abs" with aclnnAbs(self, out) lowers "abs_"
//                   to aclnnAbs(self, self); a copy of self into itself is left out
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace acltape::analyzer::lowering {

enum class InPlace : uint8_t { kNo, kByOperator, kIntoSelf };
inline constexpr InPlace kAlsoInPlace = InPlace::kByOperator;
inline constexpr InPlace kAlsoIntoSelf = InPlace::kIntoSelf;

struct LoweringRule {
  std::string_view aten;  // "add.Tensor" for namespace aten; "npu::rms" for another one
  std::string_view when;
  std::string_view calls;
  InPlace in_place = InPlace::kNo;
};

// Cases in which the vendor's framework adapter picks an operator with another meaning.
struct DivergenceRule {
  std::string_view aten;
  std::string_view when;
  std::string_view rule;
  std::string_view message;
};

const std::vector<DivergenceRule>& DivergenceRules();

// The rows, one function per file. compiled_rules.h puts them together.
const std::vector<LoweringRule>& MathRules();
const std::vector<LoweringRule>& LayerRules();
const std::vector<LoweringRule>& DataRules();
const std::vector<LoweringRule>& ListRules();
const std::vector<LoweringRule>& SpatialRules();
const std::vector<LoweringRule>& AdapterRules();

}  // namespace acltape::analyzer::lowering
