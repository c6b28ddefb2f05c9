// Suppression of boxes that overlap a better one too far, as formulas. Several operators by name
// share them.
#pragma once

#include "runtime/device/by_name/box_geometry.h"

namespace acltape::device {

// Boxes stand in a row, better ones first. `gone` has one number for each: 1 where the box is gone
// already, else 0. `taken` has rows for some of them, from box `first` on, and a column for each
// box from there on: 1 where the box of the row takes that of the column if it stays itself. Sets
// `gone` for all boxes that are taken; with the rows of all boxes it is complete.
void RemoveTaken(NamedArithmetic& in, const NamedArithmetic::Value& gone,
                 const NamedArithmetic::Value& taken, int64_t first);

constexpr int64_t kPickedNumbers = 5;  // x0, y0, x1, y1 and the area of a box

// The boxes that are picked from several rows of boxes, in the order of their scores.
struct PickedBoxes {
  NamedArithmetic::Value position;  // [rows, most]: in the row; 0 where none is left
  NamedArithmetic::Value found;     // [rows, most]: 1 where a box is left, else 0
  NamedArithmetic::Value boxes;     // [rows, most, kPickedNumbers]
};

// Picks the box of the highest score from each row, `most` times; of equal scores the first. A box
// that overlaps a picked one by more than `overlap` of their union is out from then on. All tensors
// have the shape [rows, n], and `overlap` has one number. `eligible` is 1 for the boxes that may be
// picked, else 0. rows * n is 2^24 at most, since positions are computed in float32.
PickedBoxes PickBoxes(NamedArithmetic& in, const Boxes& boxes,
                      const NamedArithmetic::Value& eligible, const NamedArithmetic::Value& scores,
                      const NamedArithmetic::Value& overlap, int64_t most);

constexpr int64_t kMostPositions = int64_t{1} << 24;

// Boxes of several classes in several images (BatchMultiClassNonMaxSuppression).
aclError SuppressByClass(const NamedCall& call);

}  // namespace acltape::device
