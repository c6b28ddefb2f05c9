// Convolutions by the name of the operator, as aclnnConvolution.
#include "aclnnop/aclnn_convolution.h"
#include "runtime/device/by_name/arguments.h"
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

// Checks x at a position and the filter after it.
aclError CheckFormat(const NamedCall& call, int input, size_t spatial, const char* format) {
  const std::vector<int64_t>& x = call.inputs.Shape(input);
  const std::vector<int64_t>& filter = call.inputs.Shape(input + 1);
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

// (x, filter, bias) with `spatial` dims after batch and channels.
aclError RunConvolution(const NamedCall& call, size_t spatial, const char* format) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  const bool biased = call.inputs.Has(2);
  if (biased) ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 2, "bias"));
  ACLTAPE_RETURN_IF_FAILED(CheckFormat(call, 0, spatial, format));
  std::vector<int64_t> stride, padding, dilation;
  ACLTAPE_RETURN_IF_FAILED(ReadSpatial(call, "strides", spatial, &stride));
  ACLTAPE_RETURN_IF_FAILED(ReadSpatial(call, "dilations", spatial, &dilation));
  ACLTAPE_RETURN_IF_FAILED(ReadMargins(call, spatial, &padding));
  if (ElementsOf(call.outputs.Shape(0)) > 0) {
    OperatorArguments own;
    const auto input = [&](int i) { return own.Dense(call.inputs, i, call.inputs.Shape(i)); };
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnConvolutionGetWorkspaceSize)>(
        call, "aclnnConvolution", input(0), input(1), biased ? input(2) : nullptr,
        own.Integers(stride), own.Integers(padding), own.Integers(dilation), false,
        own.Integers(std::vector<int64_t>(spatial, 0)), IntegerOf(call, "groups", 1),
        own.Dense(call.outputs, 0, call.outputs.Shape(0)), int8_t{0}));
  }
  return ClearPadding(call);
}

// The number of elements that the result of a transposed convolution has beyond the least in each
// dim, as the shape of the output says.
aclError ReadExtra(const NamedCall& call, const std::vector<int64_t>& stride,
                   const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation,
                   std::vector<int64_t>* extra) {
  const std::vector<int64_t>& x = call.inputs.Shape(1);
  const std::vector<int64_t>& filter = call.inputs.Shape(2);
  const std::vector<int64_t>& out = call.outputs.Shape(0);
  for (size_t i = 0; i < stride.size() && out.size() == x.size(); ++i) {
    const int64_t least =
        (x[i + 2] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (filter[i + 2] - 1) + 1;
    extra->push_back(out[i + 2] - least);
    if (extra->back() < 0 || extra->back() >= std::max(stride[i], dilation[i])) break;
    if (i + 1 == stride.size()) return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: x of shape %s and a filter of shape %s give no result of shape %s",
              call.name, ShapeText(x).c_str(), ShapeText(filter).c_str(), ShapeText(out).c_str());
}

// (input_size, x, filter, bias): the result has the shape of the output, which is input_size.
aclError RunTransposed(const NamedCall& call, size_t spatial, const char* format) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 3, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 1, "x"));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 2, "filter"));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  const bool biased = call.inputs.Has(3);
  if (biased) ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 3, "bias"));
  std::vector<int64_t> size;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 0, "input_size", &size));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, size));
  ACLTAPE_RETURN_IF_FAILED(CheckFormat(call, 1, spatial, format));
  std::vector<int64_t> stride, padding, dilation, extra;
  ACLTAPE_RETURN_IF_FAILED(ReadSpatial(call, "strides", spatial, &stride));
  ACLTAPE_RETURN_IF_FAILED(ReadSpatial(call, "dilations", spatial, &dilation));
  ACLTAPE_RETURN_IF_FAILED(ReadMargins(call, spatial, &padding));
  if (ElementsOf(size) > 0) {
    ACLTAPE_RETURN_IF_FAILED(ReadExtra(call, stride, padding, dilation, &extra));
    OperatorArguments own;
    const auto input = [&](int i) { return own.Dense(call.inputs, i, call.inputs.Shape(i)); };
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnConvolutionGetWorkspaceSize)>(
        call, "aclnnConvolution", input(1), input(2), biased ? input(3) : nullptr,
        own.Integers(stride), own.Integers(padding), own.Integers(dilation), true,
        own.Integers(extra), IntegerOf(call, "groups", 1), own.Dense(call.outputs, 0, size),
        int8_t{0}));
  }
  return ClearPadding(call);
}

aclError ConvolveImages(const NamedCall& call) { return RunConvolution(call, 2, "NCHW"); }
aclError ConvolveVolumes(const NamedCall& call) { return RunConvolution(call, 3, "NCDHW"); }

aclError TransposeImages(const NamedCall& call) { return RunTransposed(call, 2, "NCHW"); }
aclError TransposeVolumes(const NamedCall& call) { return RunTransposed(call, 3, "NCDHW"); }

constexpr NamedOperator kConvolutions[] = {
    {"Conv2D", ConvolveImages},
    {"Conv3D", ConvolveVolumes},
    {"Conv2DTranspose", TransposeImages},
    {"Conv3DTranspose", TransposeVolumes},
};

}  // namespace

NamedTable ConvolutionsByName() { return kConvolutions; }

}  // namespace acltape::device
