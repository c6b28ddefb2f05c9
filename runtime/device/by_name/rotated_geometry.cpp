#include "runtime/device/by_name/rotated_geometry.h"

#include <numbers>

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

constexpr double kRoundingOfArea = 4e-6;

// A corner of each box in the frame of each other box, whose centre is the origin and whose sides
// lie along the axes.
struct RotatedCorner {
  Value x, y;
};

RotatedCorner CornerInFrame(NamedArithmetic& in, const RotatedBoxes& a, const RotatedBoxes& b,
                            double right, double up) {
  const Value along = in.Times(in.Abs(a.width), right / 2);
  const Value across = in.Times(in.Abs(a.height), up / 2);
  const Value x = in.Add(in.Subtract(in.Multiply(along, a.cosine), in.Multiply(across, a.sine)),
                         in.Subtract(a.x, b.x));
  const Value y = in.Add(in.Add(in.Multiply(along, a.sine), in.Multiply(across, a.cosine)),
                         in.Subtract(a.y, b.y));
  return {in.Add(in.Multiply(x, b.cosine), in.Multiply(y, b.sine)),
          in.Subtract(in.Multiply(y, b.cosine), in.Multiply(x, b.sine))};
}

// -border <= a <= border
Value Clamped(NamedArithmetic& in, const Value& a, const Value& border) {
  return in.Less(in.Greater(a, in.Times(border, -1)), border);
}

// The area between the x axis and a side from one corner to the next, in so far as it lies within
// the box of the frame: the side's heights are clamped to the box, and its ends to the columns that
// the box has. It changes sign with the direction of the side.
Value AreaBelowSide(NamedArithmetic& in, const RotatedCorner& from, const RotatedCorner& to,
                    const Value& half_width, const Value& half_height) {
  const Value first = Clamped(in, from.x, half_width), last = Clamped(in, to.x, half_width);
  const Value run = DivisorOf(in, in.Subtract(to.x, from.x)), rise = in.Subtract(to.y, from.y);
  const auto height_at = [&](const Value& x) {
    const Value part = in.AtMost(in.AtLeast(in.Divide(in.Subtract(x, from.x), run), 0), 1);
    return in.Add(from.y, in.Multiply(part, rise));
  };
  const Value a = height_at(first), b = height_at(last);
  const Value low = Clamped(in, a, half_height), high = Clamped(in, b, half_height);
  // The mean of the clamped heights between a and b: the part before the box, in it, and after it.
  const Value inside = in.Times(in.Multiply(in.Subtract(high, low), in.Add(low, high)), 0.5);
  const Value outside =
      in.Add(in.Multiply(in.Subtract(low, a), low), in.Multiply(in.Subtract(b, high), high));
  const Value mean = in.Divide(in.Add(inside, outside), DivisorOf(in, in.Subtract(b, a)));
  const Value bounded = in.Less(in.Greater(mean, in.Less(low, high)), in.Greater(low, high));
  return in.Multiply(in.Subtract(last, first), bounded);
}

}  // namespace

RotatedBoxes RotatedBoxesOf(NamedArithmetic& in, const Value (&numbers)[kRotatedNumbers]) {
  const Value angle = in.Times(numbers[4], std::numbers::pi / 180);
  return {numbers[0], numbers[1], numbers[2], numbers[3], in.Cos(angle), in.Sin(angle)};
}

Value DivisorOf(NamedArithmetic& in, const Value& a) {
  return in.Add(a, in.Plus(in.Times(in.Positive(in.Abs(a)), -1), 1));
}

Value SharedArea(NamedArithmetic& in, const RotatedBoxes& a, const RotatedBoxes& b) {
  const RotatedCorner corners[] = {CornerInFrame(in, a, b, -1, -1), CornerInFrame(in, a, b, 1, -1),
                                   CornerInFrame(in, a, b, 1, 1), CornerInFrame(in, a, b, -1, 1)};
  const Value half_width = in.Times(in.Abs(b.width), 0.5);
  const Value half_height = in.Times(in.Abs(b.height), 0.5);
  Value sum = AreaBelowSide(in, corners[3], corners[0], half_width, half_height);
  for (int i = 0; i < 3; ++i) {
    sum = in.Add(sum, AreaBelowSide(in, corners[i], corners[i + 1], half_width, half_height));
  }
  // Terms of this size leave so much by their rounding where the boxes share nothing.
  const Value rounding = in.Times(in.Multiply(half_width, half_height), kRoundingOfArea);
  const Value area = in.Abs(sum);
  return in.Multiply(area, in.Positive(in.Subtract(area, rounding)));
}

}  // namespace acltape::device
