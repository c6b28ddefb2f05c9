// Geometry of boxes of objects in images, as formulas, which several operators by name share. A box
// is (x0, y0, x1, y1), the corners with the least and the greatest coordinates, or (x, y, w, h),
// its centre and size.
#pragma once

#include "runtime/device/by_name/arithmetic.h"

namespace acltape::device {

inline constexpr int kBoxNumbers = 4;
// A number that is added so that no divisor is 0.
inline constexpr double kLeastDivisor = 1e-16;

struct Boxes {
  NamedArithmetic::Value x0, y0, x1, y1;
};

// Refuses inputs, `count` of them from the first on, that are no boxes of floats in plain order
// with the four numbers of a box in dim `dim` of two.
aclError CheckBoxes(const NamedCall& call, int first, int count, size_t dim);
// Refuses another mode than "iou" and "iof".
aclError CheckOverlapMode(const NamedCall& call);
// Refuses two inputs, from the first on, that are not boxes of one shape [4, n], each of which is
// compared with the one at its place.
aclError CheckPairsOfBoxes(const NamedCall& call, int first);

// Boxes of shape [4, n], with corners. The attribute `trans` says that they are given by centre and
// size.
Boxes ReadCorners(NamedArithmetic& in, const NamedCall& call, int input);

Boxes Intersection(NamedArithmetic& in, const Boxes& a, const Boxes& b);
Boxes Enclosure(NamedArithmetic& in, const Boxes& a, const Boxes& b);
NamedArithmetic::Value Width(NamedArithmetic& in, const Boxes& boxes);
NamedArithmetic::Value Height(NamedArithmetic& in, const Boxes& boxes);
NamedArithmetic::Value AreaOf(NamedArithmetic& in, const Boxes& boxes);

// Gradients for both inputs of GIoU, DIoU and CIoU.
aclError GeneralOverlapGradient(const NamedCall& call);
aclError DistanceOverlapGradient(const NamedCall& call);
aclError CompleteOverlapGradient(const NamedCall& call);

}  // namespace acltape::device
