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
// A step of an optimiser, and dropout with masks.
NamedTable TrainingByName();
// Losses, with their gradients.
NamedTable LossesByName();
// Tensors of one mean and one deviation.
NamedTable NormalisationsByName();
// Layers of gated recurrent units, and their gradients.
NamedTable RecurrentByName();
// Signs of numbers as bits.
NamedTable SignBitsByName();

}  // namespace acltape::device
