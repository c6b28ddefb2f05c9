#include "runtime/opapi/engine/kernel_table.h"

#include <string>
#include <vector>

namespace acltape::opapi {
namespace {

constexpr KernelRows (*kFamilies[])() = {
    UnaryRows,
    BinaryRows,
    CompareRows,
    PointwiseRows,
    ActivationRows,
    MatmulRows,
    ReduceRows,
    SortRows,
    NormRows,
    ConvolutionRows,
    PoolRows,
    IndexRows,
    ShapeRows,
    FillRows,
    LossRows,
    RandomRows,
    ForeachRows,
    OptimizerRows,
    TransformerRows,
    AttentionRows,
    InferAttentionRows,
    SelectionRows,
    UpsampleRows,
    SearchRows,
    RecurrentRows,
    BatchStatisticsRows,
    LinalgRows,
    QuantizeRows,
    GroupedMatmulRows,
    CtcLossRows,
    BlockSparseRows,
    Pool3dRows,
    QuantizedMatmulRows,
    DistanceRows,
    ScatterRows,
    FusedNormRows,
    QuantizedActivationRows,
    MlaPrologRows,
};

// Rows by operator index, made once and kept until the process ends.
std::vector<KernelRow>* g_table = nullptr;

}  // namespace

std::string BuildKernelTable(const OperatorTable& operators) {
  auto* table = new std::vector<KernelRow>(operators.count);
  for (auto family : kFamilies) {
    for (KernelRow& row : family()) {
      const acl::OperatorInfo* op = operators.find(row.name);
      if (op == nullptr) continue;
      if ((*table)[op->index].name != nullptr) {
        return std::string("There are two kernel rows of ") + row.name + ".";
      }
      (*table)[op->index] = std::move(row);
    }
  }
  g_table = table;
  return "";
}

const KernelRow* FindKernel(uint32_t op_index) {
  const KernelRow& row = (*g_table)[op_index];
  return row.name == nullptr ? nullptr : &row;
}

}  // namespace acltape::opapi
