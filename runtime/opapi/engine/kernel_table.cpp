#include "runtime/opapi/engine/kernel_table.h"

#include <cstdlib>
#include <string_view>

namespace acltape::opapi {
namespace {

constexpr KernelRows (*kFamilies[])() = {
    UnaryRows,          BinaryRows,
    CompareRows,        PointwiseRows,
    ActivationRows,     MatmulRows,
    ReduceRows,         SortRows,
    NormRows,           ConvolutionRows,
    PoolRows,           IndexRows,
    ShapeRows,          FillRows,
    LossRows,           RandomRows,
    ForeachRows,        OptimizerRows,
    TransformerRows,    AttentionRows,
    InferAttentionRows, SelectionRows,
    UpsampleRows,       SearchRows,
    RecurrentRows,      BatchStatisticsRows,
    LinalgRows,         QuantizeRows,
};

// Rows by operator index; rows of unknown operators are a mistake in a family's file.
std::vector<KernelRow> BuildTable() {
  std::vector<KernelRow> table(acl::OperatorCount());
  for (auto family : kFamilies) {
    for (KernelRow& row : family()) {
      const acl::OperatorInfo* op = acl::FindOperator(row.name);
      if (op == nullptr || table[op->index].name != nullptr) {
        std::fprintf(stderr, "libopapi: the kernel row of %s is unknown or double.\n", row.name);
        std::abort();
      }
      table[op->index] = std::move(row);
    }
  }
  return table;
}

}  // namespace

const KernelRow* FindKernel(uint32_t op_index) {
  static const std::vector<KernelRow>* table = new std::vector<KernelRow>(BuildTable());
  const KernelRow& row = (*table)[op_index];
  return row.name == nullptr ? nullptr : &row;
}

}  // namespace acltape::opapi

// Whether the soft device has a kernel for the operator ("aclnnAdd").
extern "C" ACL_FUNC_VISIBILITY int SoftOperatorHasKernel(const char* name) {
  const acltape::acl::OperatorInfo* op =
      name == nullptr ? nullptr : acltape::acl::FindOperator(name);
  return op != nullptr && acltape::opapi::FindKernel(op->index) != nullptr;
}
