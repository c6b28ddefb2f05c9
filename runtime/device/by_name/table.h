// Tables of the operators that a program calls by name. Each file of such operators has one, and
// operator_by_name.cpp looks in all of them.
#pragma once

#include <span>

#include "runtime/device/named_call.h"

namespace acltape::device {

struct NamedOperator {
  const char* name;
  aclError (*run)(const NamedCall&);
};

using NamedTable = std::span<const NamedOperator>;

// Parts of a tensor, and its elements in another order or shape.
NamedTable ViewsByName();
// Tensors of one value, and one-hot tensors.
NamedTable FillsByName();
// Functions of single elements, of one tensor or of two.
NamedTable ElementwiseByName();
// Extremes with their positions.
NamedTable ExtremesByName();
// Convolutions.
NamedTable ConvolutionsByName();
// Boxes of objects in images: their overlaps, and their places beside other boxes.
NamedTable BoxesByName();
// Regions of feature maps.
NamedTable RegionsByName();
// Regions of feature maps, whose parts have channels of their own.
NamedTable PositionSensitiveByName();
// Rotated boxes of objects in images.
NamedTable RotatedBoxesByName();
// Dropout with masks.
NamedTable TrainingByName();
// Losses, with their gradients.
NamedTable LossesByName();
// Tensors of one mean and one deviation.
NamedTable NormalisationsByName();
// Layers of gated recurrent units, and their gradients.
NamedTable RecurrentByName();
// Signs of numbers as bits.
NamedTable SignBitsByName();
// Boxes that no better box overlaps too far.
NamedTable SuppressionsByName();
// Feature maps at places that are moved.
NamedTable DeformableByName();
// Boxes of a grid that belong to true boxes.
NamedTable AssignmentsByName();
// Scales of quantised numbers.
NamedTable CalibrationByName();
// Images: parts of them, and their bytes as numbers.
NamedTable ImagesByName();
// Steps of optimisers.
NamedTable OptimisersByName();
// Attention with a mask that is added, and a dropout.
NamedTable AttentionScoresByName();
// Layers of attention with their projections.
NamedTable AttentionLayersByName();
// Projections of an attention, after a normalisation.
NamedTable AttentionProjectionsByName();
// Reductions over dims, and the two parts of a norm.
NamedTable ReductionsByName();
// The gradient of a layer norm.
NamedTable LayerNormGradientsByName();
// Dropout with a mask that is given.
NamedTable DropoutByName();
// The steps before an attention over compressed keys.
NamedTable LatentAttentionByName();
// Softmaxes and their gradients.
NamedTable SoftmaxesByName();
// Elements by indices, by masks, repeated and side by side.
NamedTable GathersByName();
// Sorted elements, extremes with their positions, and running sums.
NamedTable SearchesByName();
// Ranges of positions along a dim that get values.
NamedTable FilledRangesByName();
// Sums of parts of feature maps.
NamedTable StridedSumsByName();
// Gradients of extremes.
NamedTable ExtremeGradientsByName();
// Elements in order.
NamedTable SortsByName();
// Norms of layers.
NamedTable LayerNormsByName();
// Copies between views of two buffers.
NamedTable ViewCopiesByName();
// The status of results that saturate.
NamedTable FloatStatusByName();
// A softmax over masked scores, and its gradient.
NamedTable MaskedSoftmaxByName();
// Random parts of what a tensor marks.
NamedTable RandomSamplesByName();
// Losses over classes and over squared distances.
NamedTable LossesOfRowsByName();
// A tensor and a part of two others.
NamedTable MultiplyAddsByName();
// Elements at positions of several dims, and numbers at equal distances.
NamedTable IndexedByName();

}  // namespace acltape::device
