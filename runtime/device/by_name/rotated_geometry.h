// Geometry of rotated boxes, as formulas, which several operators by name share. A box is its
// centre, its size and its angle in degrees: (x, y, w, h, angle). It turns from the x axis to the y
// axis.
#pragma once

#include "runtime/device/by_name/arithmetic.h"

namespace acltape::device {

inline constexpr int64_t kRotatedNumbers = 5;

// Boxes along one dim, so that those along another dim make pairs with them.
struct RotatedBoxes {
  NamedArithmetic::Value x, y, width, height, cosine, sine;
};

// `numbers` are the five of each box.
RotatedBoxes RotatedBoxesOf(NamedArithmetic& in,
                            const NamedArithmetic::Value (&numbers)[kRotatedNumbers]);

// The area that each two boxes share, whatever the signs of their sizes.
NamedArithmetic::Value SharedArea(NamedArithmetic& in, const RotatedBoxes& a,
                                  const RotatedBoxes& b);

// a, and 1 where it is 0.
NamedArithmetic::Value DivisorOf(NamedArithmetic& in, const NamedArithmetic::Value& a);

// The rotated boxes that no box of a higher score overlaps too far.
aclError SuppressRotated(const NamedCall& call);

}  // namespace acltape::device
