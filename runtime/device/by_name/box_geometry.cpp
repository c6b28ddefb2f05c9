#include "runtime/device/by_name/box_geometry.h"

#include "runtime/device/by_name/arguments.h"

namespace acltape::device {
namespace {

bool IsFloat(aclDataType type) {
  return type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
}

}  // namespace

aclError CheckBoxes(const NamedCall& call, int first, int count, size_t dim) {
  for (int i = first; i < first + count; ++i) {
    const std::vector<int64_t>& shape = call.inputs.Shape(i);
    const bool fits = shape.size() == 2 && shape[dim] == kBoxNumbers;
    if (fits && IsFloat(call.inputs.descs[i]->type) && !call.inputs.InBlocks(i)) continue;
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: input %d has the shape %s and the type %d; the soft device takes boxes "
                "of shape %s, in float32, float16 or bfloat16",
                call.name, i, ShapeText(shape).c_str(),
                static_cast<int>(call.inputs.descs[i]->type), dim == 0 ? "[4, n]" : "[n, 4]");
  }
  return ACL_SUCCESS;
}

aclError CheckOverlapMode(const NamedCall& call) {
  const std::string mode = call.Text("mode");
  if (mode.empty() || mode == "iou" || mode == "iof") return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: mode is \"%s\", expected \"iou\" or \"iof\"",
              call.name, mode.c_str());
}

aclError CheckPairsOfBoxes(const NamedCall& call, int first) {
  ACLTAPE_RETURN_IF_FAILED(CheckBoxes(call, first, 2, 0));
  ACLTAPE_RETURN_IF_FAILED(CheckOverlapMode(call));
  if (!FlagOf(call, "is_cross", true) && call.inputs.Shape(first) == call.inputs.Shape(first + 1)) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "aclop %s: the soft device compares each box with the one at its place (is_cross = "
              "false), of two tensors of one shape",
              call.name);
}

Boxes ReadCorners(NamedArithmetic& in, const NamedCall& call, int input) {
  const int64_t count = call.inputs.Shape(input)[1];
  const auto row = [&](int64_t i) { return in.Read(input, {1, count}, {count, 1}, i * count); };
  const Boxes given{row(0), row(1), row(2), row(3)};
  if (!FlagOf(call, "trans", false)) return given;
  const NamedArithmetic::Value half_width = in.Times(given.x1, 0.5);
  const NamedArithmetic::Value half_height = in.Times(given.y1, 0.5);
  return {in.Subtract(given.x0, half_width), in.Subtract(given.y0, half_height),
          in.Add(given.x0, half_width), in.Add(given.y0, half_height)};
}

Boxes Intersection(NamedArithmetic& in, const Boxes& a, const Boxes& b) {
  return {in.Greater(a.x0, b.x0), in.Greater(a.y0, b.y0), in.Less(a.x1, b.x1), in.Less(a.y1, b.y1)};
}

Boxes Enclosure(NamedArithmetic& in, const Boxes& a, const Boxes& b) {
  return {in.Less(a.x0, b.x0), in.Less(a.y0, b.y0), in.Greater(a.x1, b.x1), in.Greater(a.y1, b.y1)};
}

NamedArithmetic::Value Width(NamedArithmetic& in, const Boxes& boxes) {
  return in.Subtract(boxes.x1, boxes.x0);
}

NamedArithmetic::Value Height(NamedArithmetic& in, const Boxes& boxes) {
  return in.Subtract(boxes.y1, boxes.y0);
}

NamedArithmetic::Value AreaOf(NamedArithmetic& in, const Boxes& boxes) {
  return in.Multiply(in.Plus(Width(in, boxes), kLeastDivisor),
                     in.Plus(Height(in, boxes), kLeastDivisor));
}

}  // namespace acltape::device
