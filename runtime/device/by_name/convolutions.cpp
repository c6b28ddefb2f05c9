// Convolutions and their gradients by the name of the operator, as aclnnConvolution and
// aclnnConvolutionBackward.
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

// The numbers for the `spatial` dims at the end of a list for all dims of a tensor (N, C, ...).
aclError ReadSpatial(const NamedCall& call, const char* attribute, size_t spatial,
                     std::vector<int64_t>* values) {
  *values = IntegersOf(call, attribute);
  if (values->empty()) values->assign(spatial + 2, 1);
  const bool fits = values->size() == spatial + 2 && (*values)[0] == 1 && (*values)[1] == 1 &&
                    std::all_of(values->begin(), values->end(), [](int64_t x) { return x > 0; });
  if (!fits) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: %s is %s, expected 1, 1 and a positive number for each of %zu dims",
                call.name, attribute, ShapeText(*values).c_str(), spatial);
  }
  values->erase(values->begin(), values->begin() + 2);
  return ACL_SUCCESS;
}

// Two numbers for each dim, which must be equal and not negative.
aclError ReadMargins(const NamedCall& call, size_t spatial, std::vector<int64_t>* values) {
  std::vector<int64_t> pads = IntegersOf(call, "pads");
  if (pads.empty()) pads.assign(2 * spatial, 0);
  bool fits = pads.size() == 2 * spatial;
  for (size_t i = 0; fits && i < spatial; ++i) {
    fits = pads[2 * i] >= 0 && pads[2 * i] == pads[2 * i + 1];
    values->push_back(pads[2 * i]);
  }
  if (fits) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "aclop %s: pads is %s; the soft device takes two equal numbers for each of %zu dims",
              call.name, ShapeText(pads).c_str(), spatial);
}

// Refuses shapes without `spatial` dims after batch and channels, and other formats.
aclError CheckFormat(const NamedCall& call, const std::vector<int64_t>& x,
                     const std::vector<int64_t>& filter, size_t spatial, const char* format) {
  const std::string given = call.Text("data_format");
  if (x.size() == spatial + 2 && filter.size() == spatial + 2 &&
      (given.empty() || given == format)) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "aclop %s: the soft device takes x and filter of %zu dims in the format %s; they "
              "have the shapes %s and %s, and the format %s",
              call.name, spatial + 2, format, ShapeText(x).c_str(), ShapeText(filter).c_str(),
              given.c_str());
}

// How a filter goes over a tensor, for each spatial dim.
struct Steps {
  std::vector<int64_t> stride, padding, dilation;
};

aclError ReadSteps(const NamedCall& call, size_t spatial, Steps* steps) {
  ACLTAPE_RETURN_IF_FAILED(ReadSpatial(call, "strides", spatial, &steps->stride));
  ACLTAPE_RETURN_IF_FAILED(ReadSpatial(call, "dilations", spatial, &steps->dilation));
  return ReadMargins(call, spatial, &steps->padding);
}

// (x, filter, bias) with `spatial` dims after batch and channels.
aclError RunConvolution(const NamedCall& call, size_t spatial, const char* format) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  const bool biased = call.inputs.Has(2);
  if (biased) ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 2, "bias"));
  ACLTAPE_RETURN_IF_FAILED(
      CheckFormat(call, call.inputs.Shape(0), call.inputs.Shape(1), spatial, format));
  Steps steps;
  ACLTAPE_RETURN_IF_FAILED(ReadSteps(call, spatial, &steps));
  if (ElementsOf(call.outputs.Shape(0)) > 0) {
    OperatorArguments own;
    const auto input = [&](int i) { return own.Whole(call.inputs, i); };
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnConvolutionGetWorkspaceSize)>(
        call, "aclnnConvolution", input(0), input(1), biased ? input(2) : nullptr,
        own.Integers(steps.stride), own.Integers(steps.padding), own.Integers(steps.dilation),
        false, own.Integers(std::vector<int64_t>(spatial, 0)), IntegerOf(call, "groups", 1),
        own.Whole(call.outputs, 0), int8_t{0}));
  }
  return ClearPadding(call);
}

// Inputs of a transposed convolution, by their positions. The gradient of a convolution for its x
// is the transposed convolution of the gradient of its result.
struct Transposed {
  size_t spatial;
  const char* format;
  int x, filter;
  bool biased = false;     // the bias comes last
  bool depthwise = false;  // each channel has a filter of its own
};

// A filter for each channel lies as [1, channels, ...]; all other operators take [channels, 1,
// ...], which is the same memory.
std::vector<int64_t> FilterShape(std::vector<int64_t> shape, bool depthwise) {
  if (depthwise && shape.size() > 1 && shape[0] == 1) std::swap(shape[0], shape[1]);
  return shape;
}

// The number of elements that the result of a transposed convolution has beyond the least in each
// dim, as the shape of the output says.
aclError ReadExtra(const NamedCall& call, const std::vector<int64_t>& x,
                   const std::vector<int64_t>& filter, const Steps& steps,
                   std::vector<int64_t>* extra) {
  const std::vector<int64_t>& out = call.outputs.Shape(0);
  for (size_t i = 0; i < steps.stride.size() && out.size() == x.size(); ++i) {
    const int64_t least = (x[i + 2] - 1) * steps.stride[i] - 2 * steps.padding[i] +
                          steps.dilation[i] * (filter[i + 2] - 1) + 1;
    extra->push_back(out[i + 2] - least);
    if (extra->back() < 0 || extra->back() >= std::max(steps.stride[i], steps.dilation[i])) break;
    if (i + 1 == steps.stride.size()) return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: x of shape %s and a filter of shape %s give no result of shape %s",
              call.name, ShapeText(x).c_str(), ShapeText(filter).c_str(), ShapeText(out).c_str());
}

// The input at position 0 has the sizes of the result.
aclError RunTransposed(const NamedCall& call, const Transposed& form) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 3, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, form.x, "x"));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, form.filter, "filter"));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  const bool biased = form.biased && call.inputs.Has(3);
  if (biased) ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 3, "bias"));
  std::vector<int64_t> size;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 0, "input_size", &size));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, size));
  const std::vector<int64_t>& x = call.inputs.Shape(form.x);
  const std::vector<int64_t> filter = FilterShape(call.inputs.Shape(form.filter), form.depthwise);
  ACLTAPE_RETURN_IF_FAILED(CheckFormat(call, x, filter, form.spatial, form.format));
  const int64_t groups = form.depthwise ? x[1] : IntegerOf(call, "groups", 1);
  if (form.depthwise && (filter[0] != x[1] || filter[1] != 1)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the filter has the shape %s; the soft device takes one for each of %lld "
                "channels",
                call.name, ShapeText(filter).c_str(), static_cast<long long>(x[1]));
  }
  Steps steps;
  std::vector<int64_t> extra;
  ACLTAPE_RETURN_IF_FAILED(ReadSteps(call, form.spatial, &steps));
  if (ElementsOf(size) > 0) {
    ACLTAPE_RETURN_IF_FAILED(ReadExtra(call, x, filter, steps, &extra));
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnConvolutionGetWorkspaceSize)>(
        call, "aclnnConvolution", own.Dense(call.inputs, form.x, x),
        own.Dense(call.inputs, form.filter, filter), biased ? own.Whole(call.inputs, 3) : nullptr,
        own.Integers(steps.stride), own.Integers(steps.padding), own.Integers(steps.dilation), true,
        own.Integers(extra), groups, own.Dense(call.outputs, 0, size), int8_t{0}));
  }
  return ClearPadding(call);
}

// Refuses a gradient that has not the shape of the result of a convolution.
aclError CheckGradient(const NamedCall& call, const std::vector<int64_t>& filter,
                       const Steps& steps, int64_t groups) {
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  const std::vector<int64_t>& gradient = call.inputs.Shape(2);
  bool fits = groups > 0 && filter[0] % groups == 0 && x[1] == filter[1] * groups;
  std::vector<int64_t> wanted{x[0], filter[0]};
  for (size_t i = 0; i < steps.stride.size(); ++i) {
    const int64_t room =
        x[i + 2] + 2 * steps.padding[i] - steps.dilation[i] * (filter[i + 2] - 1) - 1;
    fits = fits && filter[i + 2] > 0 && room >= 0;
    wanted.push_back(room / steps.stride[i] + 1);
  }
  if (fits && gradient == wanted) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: x of shape %s, a filter of shape %s and %lld groups give no result of "
              "shape %s",
              call.name, ShapeText(x).c_str(), ShapeText(filter).c_str(),
              static_cast<long long>(groups), ShapeText(gradient).c_str());
}

// (x, filter_size, out_backprop) to the gradient for the filter. It is computed in float32, which
// is its type where x has another one.
aclError FilterGradient(const NamedCall& call, size_t spatial, const char* format, bool depthwise) {
  using Value = NamedArithmetic::Value;
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 3, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 0, "x"));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 2, "out_backprop"));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  std::vector<int64_t> size;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "filter_size", &size));
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  const std::vector<int64_t> filter = FilterShape(size, depthwise);
  ACLTAPE_RETURN_IF_FAILED(CheckFormat(call, x, filter, spatial, format));
  if (call.outputs.Shape(0) != filter) ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, size));
  ACLTAPE_RETURN_IF_FAILED(
      CheckSameType(call, call.inputs.descs[0]->type, call.inputs.descs[2]->type));
  Steps steps;
  ACLTAPE_RETURN_IF_FAILED(ReadSteps(call, spatial, &steps));
  const int64_t groups = depthwise ? x[1] : IntegerOf(call, "groups", 1);
  ACLTAPE_RETURN_IF_FAILED(CheckGradient(call, filter, steps, groups));
  NamedArithmetic in(call);
  const auto input = [&](int i) {
    return in.Read(i, call.inputs.Shape(i), RowMajorStrides(call.inputs.Shape(i)));
  };
  // The elements of the filter do not count.
  const Value unused = in.Filled(filter, 0);
  if (ElementsOf(filter) == 0) return ClearPadding(call);
  if (ElementsOf(x) == 0) {
    in.Write(unused, 0, RowMajorStrides(filter));
    return in.status() != ACL_SUCCESS ? in.status() : ClearPadding(call);
  }
  const Value moved = input(0), gradient = input(2), result = in.Space(filter);
  ACLTAPE_RETURN_IF_FAILED(in.status());
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnConvolutionBackwardGetWorkspaceSize)>(
      call, "aclnnConvolutionBackward", gradient.tensor, moved.tensor, unused.tensor, nullptr,
      own.Integers(steps.stride), own.Integers(steps.padding), own.Integers(steps.dilation), false,
      own.Integers(std::vector<int64_t>(spatial, 0)), static_cast<int>(groups),
      own.Booleans({false, true, false}), int8_t{0}, nullptr, result.tensor, nullptr));
  in.Write(result, 0, RowMajorStrides(filter));
  return in.status() != ACL_SUCCESS ? in.status() : ClearPadding(call);
}

aclError ConvolveImages(const NamedCall& call) { return RunConvolution(call, 2, "NCHW"); }
aclError ConvolveVolumes(const NamedCall& call) { return RunConvolution(call, 3, "NCDHW"); }

// (input_size, x, filter, bias)
aclError TransposeImages(const NamedCall& call) {
  return RunTransposed(call, {2, "NCHW", 1, 2, true});
}
aclError TransposeVolumes(const NamedCall& call) {
  return RunTransposed(call, {3, "NCDHW", 1, 2, true});
}

// (input_size, filter, out_backprop) to the gradient for x.
aclError ImagesGradient(const NamedCall& call) { return RunTransposed(call, {2, "NCHW", 2, 1}); }
aclError VolumesGradient(const NamedCall& call) { return RunTransposed(call, {3, "NCDHW", 2, 1}); }
aclError DepthwiseGradient(const NamedCall& call) {
  return RunTransposed(call, {2, "NCHW", 2, 1, false, true});
}

aclError ImageFilterGradient(const NamedCall& call) {
  return FilterGradient(call, 2, "NCHW", false);
}
aclError VolumeFilterGradient(const NamedCall& call) {
  return FilterGradient(call, 3, "NCDHW", false);
}
aclError DepthwiseFilterGradient(const NamedCall& call) {
  return FilterGradient(call, 2, "NCHW", true);
}

constexpr NamedOperator kConvolutions[] = {
    {"Conv2D", ConvolveImages},
    {"Conv3D", ConvolveVolumes},
    {"Conv2DTranspose", TransposeImages},
    {"Conv3DTranspose", TransposeVolumes},
    {"Conv2DBackpropInput", ImagesGradient},
    {"Conv3DBackpropInput", VolumesGradient},
    {"Conv2DBackpropFilter", ImageFilterGradient},
    {"Conv3DBackpropFilter", VolumeFilterGradient},
    {"DepthwiseConv2DBackpropInput", DepthwiseGradient},
    {"DepthwiseConv2DBackpropFilter", DepthwiseFilterGradient},
};

}  // namespace

NamedTable ConvolutionsByName() { return kConvolutions; }

}  // namespace acltape::device
