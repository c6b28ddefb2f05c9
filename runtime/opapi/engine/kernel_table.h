// The operators that have a kernel on the soft device: one row each, in tables by family
// (runtime/opapi/kernels/). To add an operator, add a row; nothing else names it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/engine/kernel.h"
#include "runtime/opapi/engine/kernel_library.h"

namespace acltape::opapi {

// Validates the call's arguments (throws RejectedCall) and binds them.
using Binder = std::function<std::unique_ptr<Kernel>(const Call&)>;

// The mark of a row that also serves the in-place form of its operator: the row of aclnnAdd then
// serves aclnnInplaceAdd, too. Its binder reads both alike (Call::in_place).
enum class AlsoInPlace { kMark };
inline constexpr AlsoInPlace kAlsoInPlace = AlsoInPlace::kMark;

struct KernelRow {
  KernelRow() = default;
  KernelRow(const char* name, Binder bind, Widen widen = Widen::kNever,
            std::vector<int> nullable = {})
      : name(name), bind(std::move(bind)), widen(widen), nullable(std::move(nullable)) {}
  KernelRow(const char* name, AlsoInPlace, Binder bind, Widen widen = Widen::kNever)
      : name(name), bind(std::move(bind)), widen(widen), also_in_place(true) {}

  const char* name = nullptr;  // "aclnnAdd"
  Binder bind;
  Widen widen = Widen::kNever;
  // Positions of pointer arguments that may be NULL though the operator table does not say so.
  std::vector<int> nullable;
  bool also_in_place = false;
};

using KernelRows = std::vector<KernelRow>;

// The families, each defined in the file of its name.
KernelRows UnaryRows();
KernelRows BinaryRows();
KernelRows CompareRows();
KernelRows PointwiseRows();
KernelRows ActivationRows();
KernelRows MatmulRows();
KernelRows GroupedMatmulRows();
KernelRows GroupMatmulRows();
KernelRows DispatchExpertsRows();
KernelRows CombineExpertsRows();
KernelRows GroupGroupedMatmulRows();
KernelRows GroupQuantizedMatmulRows();
KernelRows GroupBarrierRows();
KernelRows ReduceRows();
KernelRows SortRows();
KernelRows NormRows();
KernelRows ConvolutionRows();
KernelRows PoolRows();
KernelRows Pool3dRows();
KernelRows IndexRows();
KernelRows ShapeRows();
KernelRows FillRows();
KernelRows LossRows();
KernelRows CtcLossRows();
KernelRows RandomRows();
KernelRows ForeachRows();
KernelRows OptimizerRows();
KernelRows TransformerRows();
KernelRows AttentionRows();
KernelRows InferAttentionRows();
KernelRows BlockSparseRows();
KernelRows RopeCacheRows();
KernelRows RingAttentionRows();
KernelRows CompressedRowRows();
KernelRows SelectedAttentionRows();
KernelRows CompressedAttentionRows();
KernelRows SelectionRows();
KernelRows UpsampleRows();
KernelRows SearchRows();
KernelRows RecurrentRows();
KernelRows BatchStatisticsRows();
KernelRows LinalgRows();
KernelRows QuantizeRows();
KernelRows QuantizedMatmulRows();
KernelRows QuantizedActivationRows();
KernelRows DistanceRows();
KernelRows GatherCacheRows();
KernelRows ScatterRows();
KernelRows FusedNormRows();
KernelRows MlaPrologRows();
KernelRows GatedDeltaRows();
KernelRows ServingRows();
KernelRows BlockCacheRows();
KernelRows HyperConnectionRows();
KernelRows QuantizedExpertRows();
KernelRows QuantizedIndexerRows();
KernelRows SharedKvAttentionRows();
KernelRows CorePlanRows();
KernelRows TransformerBoostRows();
KernelRows TensorListRows();
KernelRows SignBitsRows();
KernelRows SplitActivationRows();
KernelRows SegmentSumRows();
KernelRows ExpertSliceRows();
KernelRows RoutingMapRows();
KernelRows ReRoutingRows();
KernelRows SinkhornRows();
KernelRows GroupNormGradientRows();
KernelRows QuantizedRoutingRows();
KernelRows SparseIndexRows();
KernelRows ModulateRows();
KernelRows DeformableAttentionRows();
KernelRows DeformableConvolutionRows();
KernelRows RegionRows();
KernelRows GroupQuantizeRows();
KernelRows FakeQuantizeRows();
KernelRows QuantizedScatterRows();
KernelRows QuantizedNormRows();
KernelRows GatedExpertRows();
KernelRows FinalizedExpertRows();
KernelRows FeedForwardRows();
KernelRows ScatterListRows();
KernelRows DrawnTokenRows();
KernelRows QuantizedRopeCacheRows();
KernelRows NormRopeCacheRows();
KernelRows RotatedQuantizeRows();
KernelRows BatchedProductRows();

// The row of an operator, and how the operator's arguments lie in it.
struct OperatorKernel {
  KernelRow row;
  int merged_out = Call::kOwnOutputs;  // see Call
};

// Sorts the rows of all families by operator; a row of an operator that the table lacks is left out
// (the grid test asks for every row by name). The result is empty, or names a mistake in a family's
// file: two rows of one operator, or a mark kAlsoInPlace on a row whose in-place form has other
// arguments.
std::string BuildKernelTable(const OperatorTable& operators);

// The kernel of an operator, by its index in the operator table; null when it has none.
const OperatorKernel* FindKernel(uint32_t op_index);

}  // namespace acltape::opapi
