#include "runtime/opapi/engine/kernel_table.h"

#include <algorithm>
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
    GroupMatmulRows,
    DispatchExpertsRows,
    CombineExpertsRows,
    GroupGroupedMatmulRows,
    GroupQuantizedMatmulRows,
    GroupBarrierRows,
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
    RopeCacheRows,
    RingAttentionRows,
    CompressedRowRows,
    SelectedAttentionRows,
    CompressedAttentionRows,
    Pool3dRows,
    QuantizedMatmulRows,
    DistanceRows,
    GatherCacheRows,
    ScatterRows,
    FusedNormRows,
    QuantizedActivationRows,
    MlaPrologRows,
    GatedDeltaRows,
    ServingRows,
    BlockCacheRows,
    HyperConnectionRows,
    QuantizedExpertRows,
    QuantizedIndexerRows,
    SharedKvAttentionRows,
    CorePlanRows,
    TransformerBoostRows,
    TensorListRows,
    SignBitsRows,
    SplitActivationRows,
    SegmentSumRows,
    ExpertSliceRows,
    RoutingMapRows,
    ReRoutingRows,
    SinkhornRows,
    GroupNormGradientRows,
    QuantizedRoutingRows,
    SparseIndexRows,
    ModulateRows,
    DeformableAttentionRows,
    DeformableConvolutionRows,
    RegionRows,
    GroupQuantizeRows,
    FakeQuantizeRows,
    QuantizedScatterRows,
    QuantizedNormRows,
    GatedExpertRows,
    FinalizedExpertRows,
    FeedForwardRows,
    ScatterListRows,
    DrawnTokenRows,
    QuantizedRopeCacheRows,
    NormRopeCacheRows,
    RotatedQuantizeRows,
    BatchedProductRows,
};

using Table = std::vector<OperatorKernel>;

// Kernels by operator index, made once and kept until the process ends.
Table* g_table = nullptr;

// "aclnnInplaceAdd" of "aclnnAdd".
std::string InPlaceName(std::string_view name) {
  constexpr std::string_view kPrefix = "aclnn";
  return std::string(kPrefix) + "Inplace" + std::string(name.substr(kPrefix.size()));
}

// The position of the one output of `op` when `in_place` has the same arguments without it; else
// kOwnOutputs.
int MergedOut(const acl::OperatorInfo& op, const acl::OperatorInfo& in_place) {
  const auto* end = op.args + op.arg_count;
  const auto* out = std::find_if(
      op.args, end, [](const acl::ArgInfo& arg) { return arg.direction != acl::Direction::kIn; });
  if (out == end || in_place.arg_count + 1 != op.arg_count) return Call::kOwnOutputs;
  const auto position = static_cast<uint32_t>(out - op.args);
  for (uint32_t i = 0; i < in_place.arg_count; ++i) {
    const acl::ArgInfo& arg = op.args[i < position ? i : i + 1];
    if (arg.kind != in_place.args[i].kind || arg.direction != acl::Direction::kIn) {
      return Call::kOwnOutputs;
    }
  }
  return static_cast<int>(position);
}

// Adds a kernel of the operator. The result is empty, or names the mistake.
std::string Add(const acl::OperatorInfo& op, OperatorKernel kernel, Table* table) {
  OperatorKernel& place = (*table)[op.index];
  if (place.row.name != nullptr) {
    return "There are two kernel rows of " + std::string(op.name) + ".";
  }
  place = std::move(kernel);
  return "";
}

std::string AddRow(const OperatorTable& operators, KernelRow row, Table* table) {
  const acl::OperatorInfo* op = operators.find(row.name);
  if (op == nullptr) return "";
  if (row.also_in_place) {
    const acl::OperatorInfo* in_place = operators.find(InPlaceName(row.name));
    const int merged_out = in_place == nullptr ? Call::kOwnOutputs : MergedOut(*op, *in_place);
    if (merged_out == Call::kOwnOutputs) {
      return std::string(row.name) + " is marked kAlsoInPlace, but " + InPlaceName(row.name) +
             " does not have its arguments.";
    }
    const std::string wrong = Add(*in_place, {row, merged_out}, table);
    if (!wrong.empty()) return wrong;
  }
  return Add(*op, {std::move(row)}, table);
}

}  // namespace

std::string BuildKernelTable(const OperatorTable& operators) {
  auto* table = new Table(operators.count);
  for (auto family : kFamilies) {
    for (KernelRow& row : family()) {
      const std::string wrong = AddRow(operators, std::move(row), table);
      if (!wrong.empty()) return wrong;
    }
  }
  g_table = table;
  return "";
}

const OperatorKernel* FindKernel(uint32_t op_index) {
  const OperatorKernel& kernel = (*g_table)[op_index];
  return kernel.row.name == nullptr ? nullptr : &kernel;
}

}  // namespace acltape::opapi
