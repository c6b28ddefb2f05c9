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

// (x, filter, bias) with `spatial` dims after batch and channels.
aclError RunConvolution(const NamedCall& call, size_t spatial, const char* format) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  const bool biased = call.inputs.Has(2);
  if (biased) ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 2, "bias"));
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  const std::vector<int64_t>& filter = call.inputs.Shape(1);
  const std::string given_format = call.Text("data_format");
  if (x.size() != spatial + 2 || filter.size() != spatial + 2 ||
      (!given_format.empty() && given_format != format)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the soft device takes x and filter of %zu dims in the format %s; they "
                "have the shapes %s and %s, and the format %s",
                call.name, spatial + 2, format, ShapeText(x).c_str(), ShapeText(filter).c_str(),
                given_format.c_str());
  }
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

aclError ConvolveImages(const NamedCall& call) { return RunConvolution(call, 2, "NCHW"); }
aclError ConvolveVolumes(const NamedCall& call) { return RunConvolution(call, 3, "NCDHW"); }

constexpr NamedOperator kConvolutions[] = {
    {"Conv2D", ConvolveImages},
    {"Conv3D", ConvolveVolumes},
};

}  // namespace

NamedTable ConvolutionsByName() { return kConvolutions; }

}  // namespace acltape::device
