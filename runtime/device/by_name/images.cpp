// Images, as transformations of data sets prepare them: parts of another size (CropAndResizeV2),
// numbers with a mean and a deviation (NormalizeV2), and bytes as numbers from 0 to 1
// (ImgToTensor). Adapters give boxes, sizes and means in host memory.
//
// An image of the format NHWC has its channels last. One of any other format is [n, c, h, w]: so
// torch_npu gives it.
#include <cmath>
#include <cstring>

#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

struct ImageSizes {
  int64_t images, channels, height, width;
  bool channels_last;

  int64_t pixels() const { return height * width; }
  std::vector<int64_t> dims() const {
    if (channels_last) return {images, height, width, channels};
    return {images, channels, height, width};
  }
  // Distances along n, h, w and c.
  std::vector<int64_t> strides() const {
    const int64_t image = pixels() * channels;
    if (channels_last) return {image, width * channels, channels, 1};
    return {image, width, 1, pixels()};
  }
};

aclError ReadImages(const NamedCall& call, ImageSizes* sizes) {
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const bool last = call.inputs.descs[0]->format == ACL_FORMAT_NHWC;
  if (shape.size() != 4 || call.inputs.InBlocks(0)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: x has the shape %s, expected images of four dims in plain order",
                call.name, ShapeText(shape).c_str());
  }
  *sizes = {shape[0], shape[last ? 3 : 1], shape[last ? 1 : 2], shape[last ? 2 : 3], last};
  return ACL_SUCCESS;
}

aclError CheckImageTypes(const NamedCall& call, bool bytes_to_bytes) {
  const aclDataType from = call.inputs.descs[0]->type, to = call.outputs.descs[0]->type;
  const auto is_float = [](aclDataType type) { return type == ACL_FLOAT || type == ACL_FLOAT16; };
  if ((from == ACL_UINT8 || is_float(from)) &&
      (is_float(to) || (bytes_to_bytes && from == ACL_UINT8 && to == ACL_UINT8)) &&
      IntegerOf(call, "dtype", to) == to) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: x has the type %d, y has %d and dtype is %s; expected uint8, float32 or "
              "float16, and %s that dtype names",
              call.name, static_cast<int>(from), static_cast<int>(to), call.Text("dtype").c_str(),
              bytes_to_bytes ? "float32, float16, or uint8 of uint8," : "float32 or float16");
}

// The float32 numbers of an input that the host gives.
aclError ReadFloats(const NamedCall& call, int input, const char* name, size_t count,
                    std::vector<float>* numbers) {
  const aclTensorDesc& desc = *call.inputs.descs[input];
  if (desc.type != ACL_FLOAT || ElementsOf(desc.shape) != count) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: %s has the type %d and the shape %s, expected %zu numbers in float32",
                call.name, name, static_cast<int>(desc.type), ShapeText(desc.shape).c_str(), count);
  }
  numbers->resize(count);
  if (count == 0) return ACL_SUCCESS;
  const char* data = nullptr;
  ACLTAPE_RETURN_IF_FAILED(ReadBytes(call, input, name, count * sizeof(float), &data));
  std::memcpy(numbers->data(), data, count * sizeof(float));
  return ACL_SUCCESS;
}

struct Crops {
  std::vector<float> boxes;    // y0, x0, y1, x1 of each, in parts of the image less one pixel
  std::vector<int64_t> image;  // the sizes of one image
  int64_t height, width;
  bool nearest;
  double outside;  // the value of what lies outside of the image
};

aclError ReadCrops(const NamedCall& call, const ImageSizes& sizes, Crops* crops) {
  std::vector<int64_t> size;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 2, "box_index", &crops->image));
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 3, "crop_size", &size));
  const size_t count = crops->image.size();
  ACLTAPE_RETURN_IF_FAILED(ReadFloats(call, 1, "boxes", 4 * count, &crops->boxes));
  const std::string method = call.Text("method");
  constexpr int64_t kMost = int64_t{1} << 24;  // float32 has all integers up to it
  bool known = true;
  for (int64_t image : crops->image) known = known && image >= 0 && image < sizes.images;
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kMost || size[1] > kMost ||
      !known || (!method.empty() && method != "bilinear" && method != "nearest") ||
      sizes.pixels() == 0 || sizes.height > kMost / sizes.width) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: crop_size is %s, box_index %s, method \"%s\" and x has the shape %s; "
                "expected two positive numbers, numbers of images, bilinear or nearest, and images "
                "of 1 to %lld pixels",
                call.name, ShapeText(size).c_str(), ShapeText(crops->image).c_str(), method.c_str(),
                ShapeText(call.inputs.Shape(0)).c_str(), static_cast<long long>(kMost));
  }
  crops->height = size[0];
  crops->width = size[1];
  crops->nearest = method == "nearest";
  crops->outside = RealOf(call, "extrapolation_value", 0);
  return ACL_SUCCESS;
}

// Samples along one axis of a crop.
struct CropAxis {
  Value place;   // clamped to the image
  Value inside;  // 1 where the place lies in it
};

// `count` samples from the first to the last end of a box, or one in its middle.
CropAxis CropAlong(NamedArithmetic& in, const std::vector<int64_t>& shape, int64_t count,
                   float first, float last, int64_t elements) {
  const auto border = static_cast<float>(elements - 1);
  const float begin = count > 1 ? first * border : 0.5F * (first + last) * border;
  const float step = count > 1 ? (last - first) * border / static_cast<float>(count - 1) : 0;
  const Value place = in.Plus(in.Times(in.Counting(shape), step), begin);
  const Value before = in.Positive(in.Times(place, -1));
  const Value after = in.Positive(in.Plus(place, -border));
  return {in.AtMost(in.AtLeast(in.Finite(place, 0, 0, 0), 0), border),
          in.Multiply(in.Not(before), in.Not(after))};
}

// The nearest element, and of two the greater one.
Value NearestElement(NamedArithmetic& in, const Value& place) {
  const Value low = in.Floor(place);
  const Value beyond = in.Subtract(place, low);
  const Value less_than_half = in.Positive(in.Plus(in.Times(beyond, -1), 0.5));
  return in.Add(low, in.Not(less_than_half));
}

// Gives the part of `table`, which has a row of channels for each pixel of an image. [height *
// width, channels].
Value Cropped(NamedArithmetic& in, const ImageSizes& sizes, const Value& table, const Crops& crops,
              const CropAxis& rows, const CropAxis& columns) {
  const int64_t points = crops.height * crops.width;
  const auto pixels = [&](const Value& row, const Value& column) {
    const Value pixel = in.Add(in.Times(row, static_cast<double>(sizes.width)), column);
    return in.Rows(table, in.Indices(in.As(pixel, {points})));
  };
  if (crops.nearest)
    return pixels(NearestElement(in, rows.place), NearestElement(in, columns.place));
  const Value top = in.Floor(rows.place), bottom = in.Ceil(rows.place);
  const Value left = in.Floor(columns.place), right = in.Ceil(columns.place);
  const Value zero = in.Filled({crops.height, crops.width}, 0);
  const Value down = in.As(in.Add(in.Subtract(rows.place, top), zero), {points, 1});
  const Value across = in.As(in.Add(in.Subtract(columns.place, left), zero), {points, 1});
  const auto between = [&](const Value& from, const Value& to, const Value& part) {
    return in.Add(from, in.Multiply(in.Subtract(to, from), part));
  };
  return between(between(pixels(top, left), pixels(top, right), across),
                 between(pixels(bottom, left), pixels(bottom, right), across), down);
}

// (x, boxes [k, 4], box_index [k], crop_size [2]): a part of an image for each box, in one size.
// The rules are those of TensorFlow's crop_and_resize. Bytes are rounded to the nearest, and to the
// even one of two: nothing says how the product's image unit rounds them.
aclError CropAndResize(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 4, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 0, "x"));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "y"));
  ImageSizes sizes{};
  Crops crops{};
  ACLTAPE_RETURN_IF_FAILED(ReadImages(call, &sizes));
  ACLTAPE_RETURN_IF_FAILED(CheckImageTypes(call, true));
  ACLTAPE_RETURN_IF_FAILED(ReadCrops(call, sizes, &crops));
  const ImageSizes result{static_cast<int64_t>(crops.image.size()), sizes.channels, crops.height,
                          crops.width, sizes.channels_last};
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, result.dims()));
  if (ElementsOf(result.dims()) == 0) return ClearPadding(call);
  NamedArithmetic in(call);
  const std::vector<int64_t> from = sizes.strides(), to = result.strides();
  const int64_t points = crops.height * crops.width;
  for (size_t i = 0; i < crops.image.size(); ++i) {
    const float* box = &crops.boxes[4 * i];
    const Value table = in.As(in.Copied(0, {sizes.height, sizes.width, sizes.channels},
                                        {from[1], from[2], from[3]}, crops.image[i] * from[0]),
                              {sizes.pixels(), sizes.channels});
    const CropAxis rows =
        CropAlong(in, {crops.height, 1}, crops.height, box[0], box[2], sizes.height);
    const CropAxis columns =
        CropAlong(in, {1, crops.width}, crops.width, box[1], box[3], sizes.width);
    const Value inside = in.As(in.Multiply(rows.inside, columns.inside), {points, 1});
    Value crop = in.Where(inside, Cropped(in, sizes, table, crops, rows, columns),
                          in.Filled({1, 1}, crops.outside));
    if (call.outputs.descs[0]->type == ACL_UINT8) {
      crop = in.AtMost(in.AtLeast(in.Round(crop), 0), 255);
    }
    in.Write(in.As(crop, {crops.height, crops.width, sizes.channels}), 0, {to[1], to[2], to[3]},
             static_cast<int64_t>(i) * to[0]);
  }
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

// (x, mean, variance): (x - mean) / variance in each channel. The input `variance` is a deviation:
// the operator is described as torchvision's normalize, which divides by it.
aclError NormalizeImages(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 3, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 0, "x"));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "y"));
  ImageSizes sizes{};
  ACLTAPE_RETURN_IF_FAILED(ReadImages(call, &sizes));
  ACLTAPE_RETURN_IF_FAILED(CheckImageTypes(call, false));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, sizes.dims()));
  const auto channels = static_cast<size_t>(sizes.channels);
  std::vector<float> means, deviations;
  ACLTAPE_RETURN_IF_FAILED(ReadFloats(call, 1, "mean", channels, &means));
  ACLTAPE_RETURN_IF_FAILED(ReadFloats(call, 2, "variance", channels, &deviations));
  if (ElementsOf(sizes.dims()) == 0) return ClearPadding(call);
  NamedArithmetic in(call);
  const std::vector<int64_t> along = sizes.strides(), strides{along[0], along[1], along[2]};
  const std::vector<int64_t> shape{sizes.images, sizes.height, sizes.width};
  for (size_t i = 0; i < channels; ++i) {
    const int64_t begin = static_cast<int64_t>(i) * along[3];
    const Value channel = in.Read(0, shape, strides, begin);
    in.Write(in.Over(in.Plus(channel, -means[i]), deviations[i]), 0, strides, begin);
  }
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

// Bytes, divided by 255.
aclError ImageToNumbers(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  if (shape.size() != 4 || call.inputs.descs[0]->type != ACL_UINT8 ||
      call.outputs.descs[0]->type != ACL_FLOAT ||
      (call.inputs.descs[0]->format == ACL_FORMAT_NHWC) !=
          (call.outputs.descs[0]->format == ACL_FORMAT_NHWC)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: x has the shape %s and the type %d, and y the type %d; expected images "
                "of four dims in uint8, and float32 in the same format",
                call.name, ShapeText(shape).c_str(), static_cast<int>(call.inputs.descs[0]->type),
                static_cast<int>(call.outputs.descs[0]->type));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  NamedArithmetic in(call);
  if (ElementsOf(shape) > 0) in.Write(in.Over(in.Read(0, shape, strides), 255), 0, strides);
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kImages[] = {
    {"CropAndResizeV2", CropAndResize},
    {"NormalizeV2", NormalizeImages},
    {"ImgToTensor", ImageToNumbers},
};

}  // namespace

NamedTable ImagesByName() { return kImages; }

}  // namespace acltape::device
