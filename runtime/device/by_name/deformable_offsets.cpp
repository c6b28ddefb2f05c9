// Elements of feature maps at places that are moved, as a deformable convolution reads them
// (DeformableOffsets), and the gradients for the maps and the moves (DeformableOffsetsGrad).
//
// The result has an element for each element of the kernel at each place of the convolution, so a
// plain convolution whose strides are the kernel's sizes does the rest. A sample between four
// elements counts each by its nearness; elements outside of the map count nothing. The rules are
// those of the reference in torch_npu's own test of npu_deformable_conv2d.
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

constexpr int64_t kMostRows = int64_t{1} << 24;  // float32 has all integers up to it

// Numbers along both axes.
struct HeightAndWidth {
  int64_t height, width;
};

struct DeformableSizes {
  int64_t images, channels, groups;
  HeightAndWidth map, out, kernel, strides, dilations, margin;  // margin: at the top, on the left
  bool channels_last;

  int64_t of_group() const { return channels / groups; }
  // Rows of a table of the maps: one for each element and group.
  int64_t rows() const { return images * map.height * map.width * groups; }
  std::vector<int64_t> samples() const {
    return {images, out.height, kernel.height, out.width, kernel.width, groups};
  }
  // Moves of samples: along x and along y, and weights.
  int64_t moves() const { return 3 * groups * kernel.height * kernel.width; }
};

// Dims of images of this size, or distances between their elements, as [n, h, w, c] or [n, c, h,
// w].
std::vector<int64_t> DimsOf(const DeformableSizes& sizes, const HeightAndWidth& size,
                            int64_t channels) {
  if (sizes.channels_last) return {sizes.images, size.height, size.width, channels};
  return {sizes.images, channels, size.height, size.width};
}

// Distances along n, h, w and c.
std::vector<int64_t> StridesOf(const DeformableSizes& sizes, const HeightAndWidth& size,
                               int64_t channels) {
  const int64_t pixels = size.height * size.width;
  if (sizes.channels_last) {
    return {pixels * channels, size.width * channels, channels, 1};
  }
  return {pixels * channels, size.width, 1, pixels};
}

HeightAndWidth ResultSize(const DeformableSizes& sizes) {
  return {sizes.out.height * sizes.kernel.height, sizes.out.width * sizes.kernel.width};
}

// Two of the four numbers of an attribute, and 1 for the images and the channels.
bool ReadSteps(const NamedCall& call, const char* attribute, bool channels_last, bool required,
               HeightAndWidth* steps) {
  std::vector<int64_t> numbers = IntegersOf(call, attribute);
  if (numbers.empty() && !required) numbers.assign(4, 1);
  if (numbers.size() != 4) return false;
  const size_t first = channels_last ? 1 : 2, channel = channels_last ? 3 : 1;
  *steps = {numbers[first], numbers[first + 1]};
  return numbers[0] == 1 && numbers[channel] == 1 && steps->height > 0 && steps->width > 0;
}

// `x` and `offsets` are the positions of both inputs.
aclError ReadDeformable(const NamedCall& call, int x, int offsets, DeformableSizes* sizes) {
  const std::string layout = call.Text("data_format");
  const std::vector<int64_t> kernel = IntegersOf(call, "ksize"), pads = IntegersOf(call, "pads");
  const std::vector<int64_t>& map = call.inputs.Shape(x);
  const std::vector<int64_t>& moves = call.inputs.Shape(offsets);
  const bool last = layout == "NHWC";
  sizes->channels_last = last;
  const bool steps = ReadSteps(call, "strides", last, true, &sizes->strides) &&
                     ReadSteps(call, "dilations", last, false, &sizes->dilations);
  if (!steps || (!last && !layout.empty() && layout != "NCHW") || kernel.size() != 2 ||
      kernel[0] < 1 || kernel[1] < 1 || pads.size() != 4 ||
      IntegerOf(call, "deformable_groups", 1) < 1 || !FlagOf(call, "modulated", true)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: data_format is \"%s\", ksize %s, strides %s, pads %s, dilations %s, "
                "deformable_groups %lld and modulated %s; expected NCHW or NHWC, two positive "
                "numbers, four in the order of the format (1 for n and c), four, four, a positive "
                "number, and true",
                call.name, layout.c_str(), ShapeText(kernel).c_str(),
                ShapeText(IntegersOf(call, "strides")).c_str(), ShapeText(pads).c_str(),
                ShapeText(IntegersOf(call, "dilations")).c_str(),
                static_cast<long long>(IntegerOf(call, "deformable_groups", 1)),
                FlagOf(call, "modulated", true) ? "true" : "false");
  }
  sizes->groups = IntegerOf(call, "deformable_groups", 1);
  sizes->kernel = {kernel[0], kernel[1]};
  sizes->margin = {pads[0], pads[2]};
  const size_t height = last ? 1 : 2, channel = last ? 3 : 1;
  const bool shapes = map.size() == 4 && moves.size() == 4 && map[0] == moves[0];
  if (shapes) {
    sizes->images = map[0];
    sizes->channels = map[channel];
    sizes->map = {map[height], map[height + 1]};
    sizes->out = {moves[height], moves[height + 1]};
  }
  if (!shapes || sizes->channels < 1 || sizes->channels % sizes->groups != 0 ||
      sizes->map.height < 1 || sizes->map.width < 1 || sizes->out.height < 1 ||
      sizes->out.width < 1 || moves[channel] != sizes->moves() || sizes->rows() > kMostRows) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: x has the shape %s and offsets %s; expected images of one number whose "
                "channels are a multiple of the %lld groups, 3 * groups * ksize[0] * ksize[1] "
                "channels of offsets, and %lld elements of all groups at most",
                call.name, ShapeText(map).c_str(), ShapeText(moves).c_str(),
                static_cast<long long>(sizes->groups), static_cast<long long>(kMostRows));
  }
  return ACL_SUCCESS;
}

aclError CheckDeformableTypes(const NamedCall& call, int inputs, int outputs) {
  const aclDataType type = call.inputs.descs[0]->type;
  bool fits = type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
  for (int i = 0; i < inputs; ++i) {
    fits = fits && call.inputs.descs[i]->type == type && !call.inputs.InBlocks(i);
  }
  for (int i = 0; i < outputs; ++i) fits = fits && call.outputs.descs[i]->type == type;
  if (fits) return ACL_SUCCESS;
  return Fail(
      ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
      "aclop %s: its tensors have the type %d and others, or lie in blocks; the soft device "
      "takes one type, float32, float16 or bfloat16, in plain order",
      call.name, static_cast<int>(type));
}

// The places of all samples along one axis.
struct SampledAxis {
  Value place, low;  // low: the element before it
};

// One of the four elements around each sample.
struct SampledCorner {
  Value index;   // int64, of a row of the table
  Value inside;  // [samples, 1]: 1 where the element lies in the map
  Value weight_of_height, weight_of_width;
  double sign_of_height, sign_of_width;  // those of the derivatives of these weights
};

class DeformedSamples {
 public:
  DeformedSamples(NamedArithmetic& in, const DeformableSizes& sizes, int offsets)
      : in_(in),
        sizes_(sizes),
        offsets_(offsets),
        y_(Axis(1, sizes.out.height, sizes.strides.height, sizes.kernel.height,
                sizes.dilations.height, sizes.margin.height, 1)),
        x_(Axis(0, sizes.out.width, sizes.strides.width, sizes.kernel.width, sizes.dilations.width,
                sizes.margin.width, 3)) {}

  int64_t count() const { return static_cast<int64_t>(ElementsOf(sizes_.samples())); }
  // The offsets of all samples: moves along x (0) and y (1), and weights (2).
  Value Moves(int part) {
    return in_.Read(offsets_, sizes_.samples(), MoveStrides(), MoveOffset(part));
  }
  void WriteMoves(const Value& value, int part, int output) {
    in_.Write(value, output, MoveStrides(), MoveOffset(part));
  }
  SampledCorner Corner(int down, int across) {
    const Value row = in_.Plus(y_.low, down), column = in_.Plus(x_.low, across);
    const Value inside =
        in_.Multiply(Inside(y_, row, sizes_.map.height), Inside(x_, column, sizes_.map.width));
    const Value images = in_.Times(in_.Counting({sizes_.images, 1, 1, 1, 1, 1}),
                                   static_cast<double>(sizes_.map.height));
    const Value pixel = in_.Add(in_.Times(in_.Add(Clamped(row, sizes_.map.height), images),
                                          static_cast<double>(sizes_.map.width)),
                                Clamped(column, sizes_.map.width));
    const Value index = in_.Add(in_.Times(pixel, static_cast<double>(sizes_.groups)),
                                in_.Counting({1, 1, 1, 1, 1, sizes_.groups}));
    return {in_.Indices(in_.As(index, {count()})),
            in_.As(inside, {count(), 1}),
            Weight(y_, down),
            Weight(x_, across),
            down == 1 ? 1.0 : -1.0,
            across == 1 ? 1.0 : -1.0};
  }

 private:
  // Distances of the moves of one part along the dims of the samples.
  std::vector<int64_t> MoveStrides() const {
    const std::vector<int64_t> along = StridesOf(sizes_, sizes_.out, sizes_.moves());
    const int64_t of_kernel = sizes_.kernel.height * sizes_.kernel.width;
    return {along[0], along[1], sizes_.kernel.width * along[3],
            along[2], along[3], of_kernel * along[3]};
  }
  int64_t MoveOffset(int part) const {
    return part * (sizes_.moves() / 3) * StridesOf(sizes_, sizes_.out, sizes_.moves())[3];
  }
  // `dim` is that of the convolution's places among the dims of the samples; that of the kernel's
  // elements comes after it.
  SampledAxis Axis(int part, int64_t places, int64_t stride, int64_t elements, int64_t dilation,
                   int64_t margin, size_t dim) {
    std::vector<int64_t> of_places(6, 1), of_elements(6, 1);
    of_places[dim] = places;
    of_elements[dim + 1] = elements;
    const Value begins = in_.Times(in_.Counting(of_places), static_cast<double>(stride));
    const Value steps = in_.Times(in_.Counting(of_elements), static_cast<double>(dilation));
    const Value plain = in_.Plus(in_.Add(begins, steps), -static_cast<double>(margin));
    const Value place = in_.Add(Moves(part), plain);
    return {place, in_.Floor(place)};
  }
  // 1 where an element lies in the map. A sample at -1 or before it has none.
  Value Inside(const SampledAxis& axis, const Value& element, int64_t elements) {
    const Value after_begin = in_.Positive(in_.Plus(axis.place, 1));
    const Value not_before = in_.Positive(in_.Plus(element, 1));
    const Value before_end =
        in_.Positive(in_.Plus(in_.Times(element, -1), static_cast<double>(elements)));
    return in_.Multiply(in_.Multiply(after_begin, not_before), before_end);
  }
  // An index that is there in any case, also of a place that is no number.
  Value Clamped(const Value& element, int64_t elements) {
    return in_.AtMost(in_.AtLeast(in_.Finite(element, 0, 0, 0), 0),
                      static_cast<double>(elements - 1));
  }
  Value Weight(const SampledAxis& axis, int beyond) {
    const Value part = in_.Subtract(axis.place, axis.low);
    return beyond == 1 ? part : in_.Plus(in_.Times(part, -1), 1);
  }

  NamedArithmetic& in_;
  const DeformableSizes& sizes_;
  int offsets_;
  SampledAxis y_, x_;
};

// The maps as a table: a row of channels for each element and group.
Value TableOfMaps(NamedArithmetic& in, const DeformableSizes& sizes, int x) {
  return in.As(in.Copied(x, {sizes.images, sizes.map.height, sizes.map.width, sizes.channels},
                         StridesOf(sizes, sizes.map, sizes.channels)),
               {sizes.rows(), sizes.of_group()});
}

// The elements at a corner of all samples, and 0 where it lies outside of the map.
Value ElementsAt(NamedArithmetic& in, const Value& table, const SampledCorner& corner) {
  return in.Where(corner.inside, in.Rows(table, corner.index), in.Filled({1, 1}, 0));
}

// (x, offsets) to [n, h * ksize[0], w * ksize[1], c], or with the channels first.
aclError MoveSamples(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  DeformableSizes sizes{};
  ACLTAPE_RETURN_IF_FAILED(ReadDeformable(call, 0, 1, &sizes));
  ACLTAPE_RETURN_IF_FAILED(CheckDeformableTypes(call, 2, 1));
  const HeightAndWidth result = ResultSize(sizes);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, DimsOf(sizes, result, sizes.channels)));
  if (sizes.images == 0) return ClearPadding(call);
  NamedArithmetic in(call);
  DeformedSamples samples(in, sizes, 1);
  const Value table = TableOfMaps(in, sizes, 0), scale = samples.Moves(2);
  Value sum = in.Filled({samples.count(), sizes.of_group()}, 0);
  for (int down : {0, 1}) {
    for (int across : {0, 1}) {
      const SampledCorner corner = samples.Corner(down, across);
      const Value weight =
          in.Multiply(in.Multiply(corner.weight_of_height, corner.weight_of_width), scale);
      sum = in.Add(sum,
                   in.Multiply(ElementsAt(in, table, corner), in.As(weight, {samples.count(), 1})));
    }
  }
  in.Write(in.As(sum, {sizes.images, result.height, result.width, sizes.channels}), 0,
           StridesOf(sizes, result, sizes.channels));
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

// (grad, x, offsets) to the gradients of x and of the offsets.
aclError MoveSamplesGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 2));
  DeformableSizes sizes{};
  ACLTAPE_RETURN_IF_FAILED(ReadDeformable(call, 1, 2, &sizes));
  ACLTAPE_RETURN_IF_FAILED(CheckDeformableTypes(call, 3, 2));
  const HeightAndWidth result = ResultSize(sizes);
  const std::vector<int64_t> shape = DimsOf(sizes, result, sizes.channels);
  if (call.inputs.Shape(0) != shape) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: grad has the shape %s, expected %s", call.name,
                ShapeText(call.inputs.Shape(0)).c_str(), ShapeText(shape).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, call.inputs.Shape(1)));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 1, call.inputs.Shape(2)));
  if (sizes.images == 0) return ClearPadding(call);
  NamedArithmetic in(call);
  DeformedSamples samples(in, sizes, 2);
  const int64_t count = samples.count();
  const Value gradient =
      in.As(in.Copied(0, {sizes.images, result.height, result.width, sizes.channels},
                      StridesOf(sizes, result, sizes.channels)),
            {count, sizes.of_group()});
  const Value table = TableOfMaps(in, sizes, 1), scale = samples.Moves(2);
  Value of_map = in.Filled(table.shape, 0);
  Value of_x = in.Filled(sizes.samples(), 0), of_y = of_x, of_scale = of_x;
  for (int down : {0, 1}) {
    for (int across : {0, 1}) {
      const SampledCorner corner = samples.Corner(down, across);
      const Value &h = corner.weight_of_height, &w = corner.weight_of_width;
      const Value weight = in.Multiply(h, w);
      const Value dot =
          in.As(in.Sum(in.Multiply(gradient, ElementsAt(in, table, corner)), {1}), sizes.samples());
      of_scale = in.Add(of_scale, in.Multiply(dot, weight));
      of_y = in.Add(of_y, in.Times(in.Multiply(dot, w), corner.sign_of_height));
      of_x = in.Add(of_x, in.Times(in.Multiply(dot, h), corner.sign_of_width));
      const Value share = in.Multiply(gradient, in.As(in.Multiply(weight, scale), {count, 1}));
      of_map =
          in.AddToRows(of_map, corner.index, in.Where(corner.inside, share, in.Filled({1, 1}, 0)));
    }
  }
  in.Write(in.As(of_map, {sizes.images, sizes.map.height, sizes.map.width, sizes.channels}), 0,
           StridesOf(sizes, sizes.map, sizes.channels));
  samples.WriteMoves(in.Multiply(of_x, scale), 0, 1);
  samples.WriteMoves(in.Multiply(of_y, scale), 1, 1);
  samples.WriteMoves(of_scale, 2, 1);
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kDeformable[] = {
    {"DeformableOffsets", MoveSamples},
    {"DeformableOffsetsGrad", MoveSamplesGradient},
};

}  // namespace

NamedTable DeformableByName() { return kDeformable; }

}  // namespace acltape::device
