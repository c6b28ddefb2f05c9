// Labels of forms: the properties by which calls of one signature are aligned.
#pragma once

#include <string>
#include <vector>

#include "analyzer/diff/flow.h"

namespace acltape::analyzer::diff {

// The operator without overload and in-place marks: "aten::add" of "aten::add_.Tensor", "aclnnAdd"
// of "aclnnInplaceAdd".
std::string BaseOperator(const storage::Op& op);

FormLabel LabelForm(const Work& work, const WorkForm& form);

// The differences between two forms: "op aten::relu -> aten::gelu", "alpha 1 -> 2", "shape of self
// [4, 8] -> [8, 4]". `structural` differences mean another computation. `notes` are element types,
// memory order, and in-place or overloaded forms of one operator.
struct FormDifference {
  std::vector<std::string> structural;
  std::vector<std::string> notes;
};
FormDifference CompareForms(const Flow& a, int32_t a_form, const Flow& b, int32_t b_form);

}  // namespace acltape::analyzer::diff
