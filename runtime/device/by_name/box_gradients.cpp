// Gradients of the overlap of two boxes for the numbers of both. They follow the formulas of
// boxes.cpp backwards: first the gradients of the areas and lengths that the overlap is made of,
// then those of the corners. A corner of the intersection or of the enclosing box is a corner of
// one of the two boxes, which gets its gradient; equal corners get one half each.
#include <numbers>

#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/box_geometry.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// Two boxes along one axis, and the gradients of their ends.
struct Axis {
  Value a0, a1, b0, b1;
  Value of_a0, of_a1, of_b0, of_b1;
};

class OverlapGradient {
 public:
  explicit OverlapGradient(const NamedCall& call) : call_(call), in_(call) {}

  // (gradient, bboxes, gtboxes) to the gradients of both, whose shapes are theirs.
  aclError Check(int inputs) {
    ACLTAPE_RETURN_IF_FAILED(CheckGiven(call_, inputs, 2));
    ACLTAPE_RETURN_IF_FAILED(CheckPairsOfBoxes(call_, 1));
    const int64_t count = call_.inputs.Shape(1)[1];
    for (int i = 0; i < 2; ++i) {
      ACLTAPE_RETURN_IF_FAILED(CheckShape(call_, i, call_.inputs.Shape(1)));
    }
    bool fits = call_.Text("mode") != "iof";
    for (int i = 0; i < inputs; i += 3) {
      fits = fits && static_cast<int64_t>(ElementsOf(call_.inputs.Shape(i))) == count &&
             !call_.inputs.InBlocks(i);
    }
    if (fits) return ACL_SUCCESS;
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the gradient has the shape %s and the mode is \"%s\"; the soft device "
                "takes one number for each of %lld boxes, and the mode \"iou\"",
                call_.name, ShapeText(call_.inputs.Shape(0)).c_str(), call_.Text("mode").c_str(),
                static_cast<long long>(count));
  }

  void Read() {
    gradient_ = Numbers(0);
    a_ = ReadCorners(in_, call_, 1);
    b_ = ReadCorners(in_, call_, 2);
    x_ = {a_.x0, a_.x1, b_.x0, b_.x1, Zero(), Zero(), Zero(), Zero()};
    y_ = {a_.y0, a_.y1, b_.y0, b_.y1, Zero(), Zero(), Zero(), Zero()};
    inner_ = Intersection(in_, a_, b_);
    outer_ = Enclosure(in_, a_, b_);
    const Value width = Width(in_, inner_), height = Height(in_, inner_);
    inner_width_ = in_.AtLeast(width, 0);
    inner_height_ = in_.AtLeast(height, 0);
    inner_is_wide_ = in_.Positive(width);
    inner_is_high_ = in_.Positive(height);
    common_ = in_.Multiply(inner_width_, inner_height_);
    union_ = in_.Subtract(in_.Add(AreaOf(in_, a_), AreaOf(in_, b_)), common_);
  }

  // The overlap is common / union; `of_union` is what else depends on the union.
  void AddOverlap(const Value* of_union) {
    const Value share = in_.Divide(gradient_, union_);
    Value to_union = in_.Times(in_.Multiply(share, in_.Divide(common_, union_)), -1);
    if (of_union != nullptr) to_union = in_.Add(to_union, *of_union);
    const Value to_common = in_.Subtract(share, to_union);
    const Value across = in_.Multiply(in_.Multiply(to_common, inner_height_), inner_is_wide_);
    const Value along = in_.Multiply(in_.Multiply(to_common, inner_width_), inner_is_high_);
    AddInner(x_, across);
    AddInner(y_, along);
    AddArea(to_union);
  }

  // Adds the part of the enclosing area that neither box covers: 1 - union / outer.
  void AddGeneral() {
    const Value outer = AreaOf(in_, outer_);
    const Value of_union = in_.Divide(gradient_, outer);
    AddOverlap(&of_union);
    const Value to_outer = in_.Times(in_.Multiply(of_union, in_.Divide(union_, outer)), -1);
    AddOuter(x_, in_.Multiply(to_outer, Height(in_, outer_)));
    AddOuter(y_, in_.Multiply(to_outer, Width(in_, outer_)));
  }

  // Adds the distance of the centres over that of the enclosing corners.
  void AddDistance() {
    const auto square = [&](const Value& value) { return in_.Multiply(value, value); };
    const Value width = Width(in_, outer_), height = Height(in_, outer_);
    const Value corners = in_.Plus(in_.Add(square(width), square(height)), kLeastDivisor);
    const auto apart = [&](const Axis& axis) {
      return in_.Subtract(in_.Add(axis.a0, axis.a1), in_.Add(axis.b0, axis.b1));
    };
    const Value across = apart(x_), along = apart(y_);
    const Value distance = in_.Times(in_.Add(square(across), square(along)), 0.25);
    const Value to_distance = in_.Times(in_.Divide(gradient_, corners), -1);
    const Value to_corners =
        in_.Times(in_.Multiply(to_distance, in_.Divide(distance, corners)), -1);
    AddOuter(x_, in_.Multiply(to_corners, in_.Times(width, 2)));
    AddOuter(y_, in_.Multiply(to_corners, in_.Times(height, 2)));
    AddCentres(x_, in_.Times(in_.Multiply(to_distance, across), 0.5));
    AddCentres(y_, in_.Times(in_.Multiply(to_distance, along), 0.5));
  }

  // Adds the penalty for another ratio of width and height, whose weight counts as a constant.
  // Input 3 is the difference of the angles.
  void AddRatio() {
    const Value angles = Numbers(3);
    const double scale = 4 / (std::numbers::pi * std::numbers::pi);
    const Value v = in_.Times(in_.Multiply(angles, angles), scale);
    const Value overlap = in_.Divide(common_, union_);
    const Value alpha = in_.Divide(v, in_.Plus(in_.Subtract(v, overlap), 1));
    const Value to_angles =
        in_.Multiply(in_.Multiply(gradient_, alpha), in_.Times(angles, -2 * scale));
    AddAngle(b_, to_angles, x_.of_b0, x_.of_b1, y_.of_b0, y_.of_b1);
    AddAngle(a_, in_.Times(to_angles, -1), x_.of_a0, x_.of_a1, y_.of_a0, y_.of_a1);
  }

  aclError Write() {
    WriteBoxes(0, x_.of_a0, x_.of_a1, y_.of_a0, y_.of_a1);
    WriteBoxes(1, x_.of_b0, x_.of_b1, y_.of_b0, y_.of_b1);
    return in_.status();
  }

 private:
  Value Numbers(int input) {
    const int64_t count = call_.inputs.Shape(1)[1];
    return in_.Read(input, {1, count}, {count, 1});
  }
  Value Zero() { return in_.Times(gradient_, 0); }
  void Increase(Value& sum, const Value& by) { sum = in_.Add(sum, by); }
  void Decrease(Value& sum, const Value& by) { sum = in_.Subtract(sum, by); }

  // The gradient of the length of the intersection along an axis.
  void AddInner(Axis& axis, const Value& of_length) {
    const Value first = in_.Below(axis.a0, axis.b0), last = in_.Below(axis.a1, axis.b1);
    const Value to_b = in_.Multiply(of_length, first), to_a = in_.Multiply(of_length, last);
    Decrease(axis.of_b0, to_b);
    Decrease(axis.of_a0, in_.Subtract(of_length, to_b));
    Increase(axis.of_a1, to_a);
    Increase(axis.of_b1, in_.Subtract(of_length, to_a));
  }
  // The gradient of the length of the enclosing box along an axis.
  void AddOuter(Axis& axis, const Value& of_length) {
    const Value first = in_.Below(axis.a0, axis.b0), last = in_.Below(axis.a1, axis.b1);
    const Value to_a = in_.Multiply(of_length, first), to_b = in_.Multiply(of_length, last);
    Decrease(axis.of_a0, to_a);
    Decrease(axis.of_b0, in_.Subtract(of_length, to_a));
    Increase(axis.of_b1, to_b);
    Increase(axis.of_a1, in_.Subtract(of_length, to_b));
  }
  // The gradient of the areas of both boxes.
  void AddArea(const Value& of_area) {
    const Value a_width = in_.Multiply(of_area, Height(in_, a_));
    const Value a_height = in_.Multiply(of_area, Width(in_, a_));
    const Value b_width = in_.Multiply(of_area, Height(in_, b_));
    const Value b_height = in_.Multiply(of_area, Width(in_, b_));
    Decrease(x_.of_a0, a_width);
    Increase(x_.of_a1, a_width);
    Decrease(y_.of_a0, a_height);
    Increase(y_.of_a1, a_height);
    Decrease(x_.of_b0, b_width);
    Increase(x_.of_b1, b_width);
    Decrease(y_.of_b0, b_height);
    Increase(y_.of_b1, b_height);
  }
  void AddCentres(Axis& axis, const Value& of_end) {
    Increase(axis.of_a0, of_end);
    Increase(axis.of_a1, of_end);
    Decrease(axis.of_b0, of_end);
    Decrease(axis.of_b1, of_end);
  }
  // The gradient of atan(width / height).
  void AddAngle(const Boxes& of, const Value& of_angle, Value& x0, Value& x1, Value& y0,
                Value& y1) {
    const Value width = Width(in_, of), height = Height(in_, of);
    const Value squares =
        in_.Plus(in_.Add(in_.Multiply(width, width), in_.Multiply(height, height)), kLeastDivisor);
    const Value share = in_.Divide(of_angle, squares);
    const Value across = in_.Multiply(share, height), along = in_.Multiply(share, width);
    Decrease(x0, across);
    Increase(x1, across);
    Increase(y0, along);
    Decrease(y1, along);
  }

  void WriteBoxes(int output, const Value& x0, const Value& x1, const Value& y0, const Value& y1) {
    const int64_t count = call_.inputs.Shape(1)[1];
    const bool centred = FlagOf(call_, "trans", false);
    const auto centre = [&](const Value& first, const Value& last) {
      return centred ? in_.Add(first, last) : first;
    };
    const auto size = [&](const Value& first, const Value& last) {
      return centred ? in_.Times(in_.Subtract(last, first), 0.5) : last;
    };
    const Value rows[] = {centre(x0, x1), centre(y0, y1), size(x0, x1), size(y0, y1)};
    for (int i = 0; i < kBoxNumbers; ++i) in_.Write(rows[i], output, {count, 1}, i * count);
  }

  const NamedCall& call_;
  NamedArithmetic in_;
  Value gradient_;
  Boxes a_, b_, inner_, outer_;
  Axis x_, y_;
  Value inner_width_, inner_height_, inner_is_wide_, inner_is_high_, common_, union_;
};

// `add` adds the parts of the gradient.
template <typename Add>
aclError RunGradient(const NamedCall& call, int given, const Add& add) {
  OverlapGradient gradient(call);
  ACLTAPE_RETURN_IF_FAILED(gradient.Check(given));
  gradient.Read();
  add(gradient);
  return gradient.Write();
}

}  // namespace

aclError GeneralOverlapGradient(const NamedCall& call) {
  return RunGradient(call, 3, [](OverlapGradient& gradient) { gradient.AddGeneral(); });
}

aclError DistanceOverlapGradient(const NamedCall& call) {
  return RunGradient(call, 3, [](OverlapGradient& gradient) {
    gradient.AddOverlap(nullptr);
    gradient.AddDistance();
  });
}

aclError CompleteOverlapGradient(const NamedCall& call) {
  return RunGradient(call, 4, [](OverlapGradient& gradient) {
    gradient.AddOverlap(nullptr);
    gradient.AddDistance();
    gradient.AddRatio();
  });
}

}  // namespace acltape::device
