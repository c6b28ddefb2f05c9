// Images by the names of the operators, beside formulas that go from pixel to pixel.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct CropOptions {
  std::vector<float> boxes;
  std::vector<int> images;
  int64_t height, width;
  const char* method = "bilinear";
  float outside = 0;
};

// The place of a sample in an image; less than 0 where it lies outside of it.
double PlaceInImage(float first, float last, int64_t sample, int64_t samples, int64_t elements) {
  const double place = samples > 1
                           ? (first + (double{last} - first) * static_cast<double>(sample) /
                                          static_cast<double>(samples - 1)) *
                                 static_cast<double>(elements - 1)
                           : 0.5 * (double{first} + last) * static_cast<double>(elements - 1);
  return place > static_cast<double>(elements - 1) ? -1 : place;
}

// Crops of images [n, c, h, w], in doubles.
Tensor CroppedByFormula(const Tensor& images, const CropOptions& with) {
  const auto count = static_cast<int64_t>(with.images.size());
  Tensor crops =
      at::full({count, images.size(1), with.height, with.width}, double{with.outside}, at::kDouble);
  for (int64_t i = 0; i < count; ++i) {
    const float* box = &with.boxes[4 * i];
    for (int64_t row = 0; row < with.height; ++row) {
      for (int64_t column = 0; column < with.width; ++column) {
        const double y = PlaceInImage(box[0], box[2], row, with.height, images.size(2));
        const double x = PlaceInImage(box[1], box[3], column, with.width, images.size(3));
        if (y < 0 || x < 0) continue;
        const auto pixel = [&](double down, double across) {
          return images[with.images[i]]
              .select(1, static_cast<int64_t>(down))
              .select(1, static_cast<int64_t>(across));
        };
        const double top = std::floor(y), left = std::floor(x);
        const double bottom = std::ceil(y), right = std::ceil(x);
        const Tensor place = crops[i].select(1, row).select(1, column);
        if (std::string(with.method) == "nearest") {
          place.copy_(pixel(std::round(y), std::round(x)));
        } else {
          place.copy_((pixel(top, left) * (1 - (x - left)) + pixel(top, right) * (x - left)) *
                          (1 - (y - top)) +
                      (pixel(bottom, left) * (1 - (x - left)) + pixel(bottom, right) * (x - left)) *
                          (y - top));
        }
      }
    }
  }
  return crops;
}

Tensor Sizes(const CropOptions& with) { return at::tensor({with.height, with.width}).to(at::kInt); }

Tensor BoxRows(const CropOptions& with) { return at::tensor(with.boxes).view({-1, 4}); }

void ExpectCrops(const Tensor& images, const CropOptions& with, at::ScalarType type) {
  const Tensor wanted = CroppedByFormula(images.to(at::kDouble), with);
  const Tensor crops = at::full(wanted.sizes(), 77, type);
  NamedCall call("CropAndResizeV2");
  call.In(images).Host(BoxRows(with)).Host(at::tensor(with.images, at::kInt)).Host(Sizes(with));
  call.Out(crops).Set("method", with.method).Set("extrapolation_value", with.outside);
  ASSERT_EQ(call.RunOlder(), ACL_SUCCESS) << TakeMessage();
  const double tolerance = type == at::kByte ? 0.501 : type == at::kHalf ? 2e-2 : 1e-4;
  EXPECT_TRUE(at::allclose(crops.to(at::kDouble), wanted, 1e-5, tolerance)) << crops << wanted;
}

TEST(ImagesByName, PartsOfImagesInOneSize) {
  at::manual_seed(12);
  const Tensor images = Random({3, 2, 7, 5});
  const CropOptions kOptions[] = {
      {{0, 0, 1, 1}, {1}, 7, 5},
      {{0.1f, 0.2f, 0.9f, 0.7f, 0.8f, 0.9f, 0.3f, 0.1f}, {2, 0}, 4, 6},
      {{-0.5f, 0.2f, 0.6f, 1.7f}, {0}, 5, 8, "bilinear", -3.5f},
      {{-0.5f, 0.2f, 0.6f, 1.7f}, {0}, 5, 8, "nearest", 2},
      {{0.23f, 0.11f, 0.87f, 0.71f}, {2}, 9, 4, "nearest"},
      {{0.1f, 0.3f, 0.6f, 0.4f}, {1}, 1, 1},
      {{0.1f, 0.3f, 0.6f, 0.4f}, {1}, 1, 3, "nearest"},
  };
  for (const CropOptions& with : kOptions) {
    ExpectCrops(images, with, at::kFloat);
    ExpectCrops(images.to(at::kHalf), with, at::kHalf);
  }
  const Tensor bytes = at::randint(0, 256, {2, 3, 6, 6}).to(at::kByte);
  ExpectCrops(bytes, {{0.1f, 0.2f, 0.9f, 0.7f}, {1}, 4, 7}, at::kByte);
  ExpectCrops(bytes, {{0.12f, 0.23f, 0.93f, 0.71f}, {1}, 4, 7, "nearest"}, at::kByte);
  ExpectCrops(bytes, {{0.1f, 0.2f, 0.9f, 0.7f}, {1}, 4, 7}, at::kFloat);
  ExpectCrops(Random({1, 1, 1, 1}), {{0, 0, 1, 1}, {0}, 2, 2}, at::kFloat);
}

// An image with the format NHWC, as the description of the tensor says.
NamedCall& InFormat(NamedCall& call, const std::vector<Tensor>& in, const Tensor& out) {
  call.In(in[0], ACL_FORMAT_NHWC);
  for (size_t i = 1; i < in.size(); ++i) call.Host(in[i]);
  return call.Out(out, ACL_FORMAT_NHWC);
}

TEST(ImagesByName, ChannelsMayBeTheLastDim) {
  const CropOptions with{{0.1f, 0.2f, 0.9f, 0.7f}, {1}, 4, 7};
  const Tensor images = Random({2, 3, 6, 5}), last = images.permute({0, 2, 3, 1}).contiguous();
  const Tensor crops = at::full({1, 4, 7, 3}, 77.0f);
  NamedCall crop("CropAndResizeV2");
  InFormat(crop, {last, BoxRows(with), at::tensor(with.images, at::kInt), Sizes(with)}, crops);
  ASSERT_EQ(crop.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::allclose(crops.permute({0, 3, 1, 2}).to(at::kDouble),
                           CroppedByFormula(images.to(at::kDouble), with), 1e-4, 1e-4));
  const Tensor mean = at::tensor({0.5f, -1.0f, 2.0f}), deviation = at::tensor({0.25f, 2.0f, 3.0f});
  const Tensor scaled = at::full_like(last, 77);
  NamedCall normalize("NormalizeV2");
  InFormat(normalize, {last, mean, deviation}, scaled);
  ASSERT_EQ(normalize.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::allclose(scaled, (last - mean) / deviation, 1e-6, 1e-6));
}

TEST(ImagesByName, EachChannelHasAMeanAndADeviation) {
  const Tensor mean = at::tensor({0.485f, 0.456f, 0.406f}).view({1, 3, 1, 1});
  const Tensor deviation = at::tensor({0.229f, 0.224f, 0.225f}).view({1, 3, 1, 1});
  const Tensor bytes = at::randint(0, 256, {2, 3, 4, 5}).to(at::kByte);
  for (const Tensor& images : {Random({2, 3, 4, 5}), Random({2, 3, 4, 5}).to(at::kHalf), bytes}) {
    for (at::ScalarType type : {at::kFloat, at::kHalf}) {
      const Tensor out = at::full({2, 3, 4, 5}, 77, type);
      NamedCall call("NormalizeV2");
      call.In(images).Host(mean).Host(deviation).Out(out);
      call.Set("dtype", int64_t{type == at::kHalf});
      ASSERT_EQ(call.RunOlder(), ACL_SUCCESS) << TakeMessage();
      const Tensor wanted = (images.to(at::kFloat) - mean) / deviation;
      EXPECT_TRUE(at::allclose(out.to(at::kFloat), wanted, type == at::kHalf ? 2e-3 : 1e-6, 1e-3));
    }
  }
  // In place, as image_normalize_ calls it.
  const Tensor images = Random({1, 3, 2, 2}), wanted = (images - mean) / deviation;
  NamedCall call("NormalizeV2");
  ASSERT_EQ(call.In(images).Host(mean).Host(deviation).Out(images).Run(), ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(at::allclose(images, wanted, 1e-6, 1e-6));
  NamedCall none("NormalizeV2");
  const Tensor empty = at::empty({0, 3, 2, 2});
  EXPECT_EQ(none.In(empty).Host(mean).Host(deviation).Out(empty).Run(), ACL_SUCCESS);
}

TEST(ImagesByName, BytesBecomeNumbersFrom0To1) {
  const Tensor bytes = at::arange(256, at::kByte).view({2, 4, 4, 8});
  const Tensor out = at::full({2, 4, 4, 8}, 77.0f);
  NamedCall call("ImgToTensor");
  ASSERT_EQ(call.In(bytes).Out(out).RunOlder(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::equal(out, bytes.to(at::kFloat) / 255));
  NamedCall none("ImgToTensor");
  EXPECT_EQ(none.In(at::empty({0, 3, 2, 2}, at::kByte)).Out(at::empty({0, 3, 2, 2})).Run(),
            ACL_SUCCESS);
}

TEST(ImagesByName, FormsThatAreRefused) {
  const Tensor images = at::zeros({2, 3, 4, 4}), bytes = images.to(at::kByte);
  const auto said = [](NamedCall& call) {
    TakeMessage();
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    return TakeMessage();
  };
  const auto crop = [&](const Tensor& x, const Tensor& boxes, int image, const Tensor& out,
                        const char* name, const char* value) {
    NamedCall call("CropAndResizeV2");
    call.In(x).Host(boxes).Host(at::tensor({image}, at::kInt));
    call.Host(at::tensor({5, 6}, at::kInt)).Out(out);
    return said(call.Set(name, value));
  };
  const Tensor box = at::zeros({1, 4}), out = at::zeros({1, 3, 5, 6});
  EXPECT_NE(crop(images, box, 0, out, "method", "bicubic").find("method \"bicubic\""),
            std::string::npos);
  EXPECT_NE(crop(images, box, 2, out, "x", "").find("box_index [2]"), std::string::npos);
  EXPECT_NE(crop(images, at::zeros({2, 4}), 0, out, "x", "").find("expected 4 numbers"),
            std::string::npos);
  EXPECT_NE(crop(images, box, 0, at::zeros({1, 3, 6, 5}), "x", "").find("output 0 has the shape"),
            std::string::npos);
  EXPECT_NE(crop(images, box, 0, out.to(at::kByte), "x", "").find("uint8 of uint8"),
            std::string::npos);
  EXPECT_NE(crop(images, box, 0, out, "dtype", "1").find("dtype is 1"), std::string::npos);
  EXPECT_NE(crop(at::zeros({3, 4, 4}), box, 0, out, "x", "").find("of four dims"),
            std::string::npos);
  NamedCall on_device("CropAndResizeV2");
  on_device.In(images).In(box).Host(at::tensor({0}, at::kInt)).Host(at::tensor({5, 6}, at::kInt));
  EXPECT_NE(said(on_device.Out(out)).find("boxes is known on the device alone"), std::string::npos);
  NamedCall normalize("NormalizeV2");
  normalize.In(images).Host(at::zeros({2})).Host(at::zeros({3})).Out(images);
  EXPECT_NE(said(normalize).find("mean has the type 0 and the shape [2]"), std::string::npos);
  NamedCall to_bytes("NormalizeV2");
  to_bytes.In(bytes).Host(at::zeros({3})).Host(at::zeros({3})).Out(bytes);
  EXPECT_NE(said(to_bytes).find("float32 or float16 that dtype names"), std::string::npos);
  NamedCall numbers("ImgToTensor");
  EXPECT_NE(said(numbers.In(images).Out(images)).find("in uint8"), std::string::npos);
  NamedCall shape("ImgToTensor");
  EXPECT_NE(said(shape.In(bytes).Out(at::zeros({2, 3, 4, 5}))).find("output 0 has the shape"),
            std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
