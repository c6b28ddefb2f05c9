// Gradients of convolutions by their names, beside sums over all products in doubles.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Lengths = std::vector<int64_t>;

// A convolution of volumes; images are volumes of one plane.
struct ConvolvedForm {
  Lengths stride, padding, dilation;  // three each
  int64_t groups;
};

// Calls `visit` with the positions of x, of the filter and of the result of each product.
template <typename Visit>
void ForEachProduct(at::IntArrayRef x, at::IntArrayRef filter, at::IntArrayRef result,
                    const ConvolvedForm& form, Visit visit) {
  const int64_t in_group = filter[1], out_group = filter[0] / form.groups;
  const int64_t kernel = filter[2] * filter[3] * filter[4];
  const int64_t places = result[2] * result[3] * result[4];
  for (int64_t i = 0; i < x[0] * filter[0] * in_group * kernel * places; ++i) {
    const int64_t place = i % places, tap = i / places % kernel;
    const int64_t c = i / places / kernel % in_group,
                  o = i / places / kernel / in_group % filter[0];
    const int64_t n = i / places / kernel / in_group / filter[0];
    const Lengths to{place / result[4] / result[3], place / result[4] % result[3],
                     place % result[4]};
    const Lengths of{tap / filter[4] / filter[3], tap / filter[4] % filter[3], tap % filter[4]};
    Lengths from(3);
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      from[d] = to[d] * form.stride[d] - form.padding[d] + of[d] * form.dilation[d];
      inside = inside && from[d] >= 0 && from[d] < x[d + 2];
    }
    if (!inside) continue;
    visit(Lengths{n, o / out_group * in_group + c, from[0], from[1], from[2]},
          Lengths{o, c, of[0], of[1], of[2]}, Lengths{n, o, to[0], to[1], to[2]});
  }
}

int64_t PlaceIn(const Tensor& tensor, const Lengths& index) {
  int64_t place = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) place = place * tensor.size(d) + index[d];
  return place;
}

// The gradients for x and for the filter, of tensors of five dims.
std::pair<Tensor, Tensor> GradientsOf(const Tensor& x, const Tensor& filter, const Tensor& gradient,
                                      const ConvolvedForm& form) {
  const Tensor of_x = at::zeros(x.sizes(), at::kDouble);
  const Tensor of_filter = at::zeros(filter.sizes(), at::kDouble);
  const auto numbers = [](const Tensor& of) { return of.to(at::kDouble).contiguous(); };
  const Tensor xs = numbers(x), filters = numbers(filter), gradients = numbers(gradient);
  ForEachProduct(x.sizes(), filter.sizes(), gradient.sizes(), form,
                 [&](const Lengths& from, const Lengths& tap, const Lengths& to) {
                   const double g = gradients.data_ptr<double>()[PlaceIn(gradients, to)];
                   const int64_t i = PlaceIn(xs, from), k = PlaceIn(filters, tap);
                   of_x.data_ptr<double>()[i] += g * filters.data_ptr<double>()[k];
                   of_filter.data_ptr<double>()[k] += g * xs.data_ptr<double>()[i];
                 });
  return {of_x, of_filter};
}

Tensor ResultGradient(const Tensor& x, const Tensor& filter, const ConvolvedForm& form) {
  Lengths sizes{x.size(0), filter.size(0)};
  for (int d = 0; d < 3; ++d) {
    const int64_t room =
        x.size(d + 2) + 2 * form.padding[d] - form.dilation[d] * (filter.size(d + 2) - 1) - 1;
    sizes.push_back(room / form.stride[d] + 1);
  }
  return Random(sizes, x.scalar_type());
}

testing::AssertionResult NearSums(const Tensor& actual, const Tensor& wanted, double tolerance) {
  if (at::allclose(actual.to(at::kDouble), wanted.view(actual.sizes()), tolerance, tolerance)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << actual << " instead of " << wanted;
}

// Sets the attributes for the last `spatial` dims.
NamedCall& WithSteps(NamedCall& call, const ConvolvedForm& form, size_t spatial) {
  Lengths stride{1, 1}, pads, dilation{1, 1};
  for (size_t d = 3 - spatial; d < 3; ++d) {
    stride.push_back(form.stride[d]);
    dilation.push_back(form.dilation[d]);
    pads.insert(pads.end(), 2, form.padding[d]);
  }
  return call.Set("strides", stride).Set("pads", pads).Set("dilations", dilation);
}

// Without the plane that makes an image a volume.
Tensor Flat(const Tensor& of, size_t spatial) { return spatial == 2 ? of.squeeze(2) : of; }

void ExpectFormRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

void CheckGradients(const Tensor& x, const Tensor& filter, const ConvolvedForm& form,
                    size_t spatial, at::ScalarType of_filter) {
  const std::string prefix = spatial == 2 ? "Conv2DBackprop" : "Conv3DBackprop";
  const char* format = spatial == 2 ? "NCHW" : "NCDHW";
  const Tensor gradient = ResultGradient(x, filter, form);
  const auto [of_x, of_taps] = GradientsOf(x, filter, gradient, form);
  const double tolerance = x.scalar_type() == at::kFloat ? 1e-4 : 2e-2;
  const Tensor image = Flat(x, spatial), taps = Flat(filter, spatial);
  const Tensor result = Flat(gradient, spatial);
  const Tensor to_x = at::full(image.sizes(), 77, x.scalar_type());
  NamedCall input((prefix + "Input").c_str());
  input.Host(at::tensor(image.sizes(), at::kInt)).In(taps).In(result).Out(to_x);
  WithSteps(input, form, spatial).Set("groups", form.groups).Set("data_format", format);
  ASSERT_EQ(input.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(NearSums(to_x, of_x, tolerance)) << prefix;
  const Tensor to_filter = at::full(taps.sizes(), 77, of_filter);
  NamedCall weight((prefix + "Filter").c_str());
  weight.In(image).Host(at::tensor(taps.sizes(), at::kInt)).In(result).Out(to_filter);
  WithSteps(weight, form, spatial).Set("groups", form.groups).Set("data_format", format);
  ASSERT_EQ(weight.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(NearSums(to_filter, of_taps, of_filter == at::kFloat ? 1e-3 : tolerance)) << prefix;
}

TEST(ConvolutionsByName, GradientsForImagesAndTheirFilters) {
  at::manual_seed(11);
  const ConvolvedForm form{{1, 2, 1}, {0, 1, 2}, {1, 1, 3}, 2};
  CheckGradients(Random({2, 4, 1, 7, 8}), Random({6, 2, 1, 3, 2}), form, 2, at::kFloat);
  const ConvolvedForm plain{{1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1};
  CheckGradients(Random({1, 1, 1, 1, 1}), Random({1, 1, 1, 1, 1}), plain, 2, at::kFloat);
  // The stride leaves rows of the image out.
  const ConvolvedForm wide{{1, 3, 3}, {0, 0, 0}, {1, 1, 1}, 1};
  CheckGradients(Random({1, 2, 1, 7, 6}), Random({3, 2, 1, 2, 2}), wide, 2, at::kFloat);
}

TEST(ConvolutionsByName, GradientsForVolumesAndTheirFilters) {
  at::manual_seed(12);
  const ConvolvedForm form{{2, 1, 1}, {1, 0, 2}, {1, 2, 1}, 1};
  CheckGradients(Random({2, 3, 4, 5, 4}), Random({2, 3, 2, 2, 3}), form, 3, at::kFloat);
}

TEST(ConvolutionsByName, TheGradientOfAFilterIsFloat32ForShortFloats) {
  at::manual_seed(13);
  const ConvolvedForm form{{1, 1, 2}, {0, 1, 0}, {1, 1, 1}, 1};
  for (at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    CheckGradients(Random({1, 2, 1, 4, 5}, dtype), Random({3, 2, 1, 2, 2}, dtype), form, 2,
                   at::kFloat);
    CheckGradients(Random({1, 2, 1, 4, 5}, dtype), Random({3, 2, 1, 2, 2}, dtype), form, 2, dtype);
  }
}

TEST(ConvolutionsByName, EachChannelHasAFilterOfItsOwn) {
  at::manual_seed(14);
  const ConvolvedForm form{{1, 2, 1}, {0, 1, 1}, {1, 1, 2}, 3};
  const Tensor x = Random({2, 3, 1, 6, 7}), filter = Random({3, 1, 1, 3, 2});
  const Tensor gradient = ResultGradient(x, filter, form);
  const auto [of_x, of_taps] = GradientsOf(x, filter, gradient, form);
  const Tensor image = x.squeeze(2), taps = filter.squeeze(2).permute({1, 0, 2, 3}).contiguous();
  const Tensor to_x = at::full(image.sizes(), 77.0f);
  NamedCall input("DepthwiseConv2DBackpropInput");
  input.Host(at::tensor(image.sizes(), at::kInt)).In(taps).In(gradient.squeeze(2)).Out(to_x);
  WithSteps(input, form, 2).Set("data_format", "NCHW");
  ASSERT_EQ(input.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(NearSums(to_x, of_x, 1e-4));
  const Tensor to_filter = at::full({3, 1, 3, 2}, 77.0f);
  NamedCall weight("DepthwiseConv2DBackpropFilter");
  weight.In(image).Host(at::tensor(taps.sizes(), at::kInt)).In(gradient.squeeze(2)).Out(to_filter);
  WithSteps(weight, form, 2).Set("data_format", "NCHW");
  ASSERT_EQ(weight.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(NearSums(to_filter, of_taps, 1e-4));
  NamedCall more("DepthwiseConv2DBackpropInput");
  more.Host(at::tensor({1, 2, 4, 4}, at::kInt)).In(Random({2, 2, 2, 2})).In(Random({1, 2, 3, 3}));
  more.Out(at::empty({1, 2, 4, 4}));
  ExpectFormRefused(more, "takes one for each of 2 channels");
}

TEST(ConvolutionsByName, ACapturedGradientRunsAgainOverNewElements) {
  at::manual_seed(15);
  const ConvolvedForm form{{1, 1, 1}, {0, 1, 0}, {1, 1, 1}, 1};
  const Tensor x = Random({2, 2, 1, 4, 4}, at::kHalf), filter = at::zeros({3, 2, 1, 2, 2});
  const Tensor gradient = ResultGradient(x, filter, form), out = at::full({3, 2, 2, 2}, 77.0f);
  aclrtStream stream = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  {
    NamedCall call("Conv2DBackpropFilter");
    call.In(Flat(x, 2)).Host({3, 2, 2, 2}).In(Flat(gradient, 2)).Out(out);
    ASSERT_EQ(WithSteps(call, form, 2).Launch(stream), ACL_SUCCESS) << TakeMessage();
  }
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  EXPECT_TRUE(SameBits(out, at::full({3, 2, 2, 2}, 77.0f)));
  for (int run = 0; run < 2; ++run) {
    x.copy_(Random(x.sizes()));
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_TRUE(NearSums(out, GradientsOf(x, filter, gradient, form).second, 1e-3));
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST(ConvolutionsByName, GradientsOfNothingAndFormsThatAreRefused) {
  const Tensor filter = at::full({2, 3, 2, 2}, 77.0f);
  NamedCall none("Conv2DBackpropFilter");
  none.In(at::empty({0, 3, 4, 4})).Host({2, 3, 2, 2}).In(at::empty({0, 2, 3, 3})).Out(filter);
  ASSERT_EQ(none.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(filter, at::zeros({2, 3, 2, 2})));
  NamedCall no_images("Conv2DBackpropInput");
  no_images.Host({0, 3, 4, 4}).In(Random({2, 3, 2, 2})).In(at::empty({0, 2, 3, 3}));
  no_images.Out(at::empty({0, 3, 4, 4}));
  EXPECT_EQ(no_images.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor x = Random({1, 3, 4, 4});
  {
    NamedCall wrong("Conv2DBackpropFilter");
    wrong.In(x).Host({2, 3, 2, 2}).In(Random({1, 2, 4, 3})).Out(filter);
    ExpectFormRefused(wrong, "give no result of shape [1, 2, 4, 3]");
  }
  {
    NamedCall wrong("Conv2DBackpropFilter");
    wrong.In(x).Host({2, 3, 2, 2}).In(Random({1, 2, 3, 3})).Out(at::empty({2, 3, 2, 1}));
    ExpectFormRefused(wrong, "output 0 has the shape [2, 3, 2, 1], expected [2, 3, 2, 2]");
  }
  {
    NamedCall wrong("Conv2DBackpropFilter");
    wrong.In(x).Host({2, 3, 2, 2}).In(Random({1, 2, 3, 3})).Out(filter).Set("groups", int64_t{3});
    ExpectFormRefused(wrong, "3 groups give no result");
  }
  {
    NamedCall wrong("Conv2DBackpropFilter");
    wrong.In(x).Host({2, 3, 2, 2}).In(Random({1, 2, 3, 3}, at::kHalf)).Out(filter);
    ExpectFormRefused(wrong, "the soft device takes one type");
  }
  {
    NamedCall wrong("Conv3DBackpropFilter");
    wrong.In(x).Host({2, 3, 2, 2}).In(Random({1, 2, 3, 3})).Out(filter);
    ExpectFormRefused(wrong, "5 dims in the format NCDHW");
  }
  {
    NamedCall wrong("Conv2DBackpropInput");
    wrong.Host({1, 3, 4, 4}).In(Random({2, 3, 2, 2})).In(Random({1, 2, 1, 3}));
    wrong.Out(at::empty({1, 3, 4, 4}));
    ExpectFormRefused(wrong, "give no result of shape [1, 3, 4, 4]");
  }
}

}  // namespace
}  // namespace acltape::opapi
