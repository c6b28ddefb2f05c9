// Upsampling, sampling at grids and padding, with their gradients.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kSumOrder = {16, 1e-5, true, "libtorch sums in another order for other strides"};
const Tolerance kFewSums = {4, 1e-6, false, "sums of a few elements, rounded to float32"};

// Half and bfloat16 are computed in float32 and rounded once; the library adds up in them.
const Dtypes kWide = {at::kFloat, at::kDouble};

Ints Front(const Ints& sizes, int64_t count) {
  return {sizes.begin() + 2, sizes.begin() + 2 + count};
}

// Images of two sizes, one with transposed strides, and the sizes they become. `backward` puts the
// greater one first and the smaller one's sizes last.
Inputs Images(int64_t spatial, bool backward, bool aligned, int scales) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    const Ints from = {2, 3, 4, 5, 3}, into[] = {{0, 0, 8, 10, 6}, {0, 0, 3, 7, 5}};
    for (const Ints& to : into) {
      for (bool align : {false, true}) {
        if (align && !aligned) continue;
        Ints small(from.begin(), from.begin() + 2 + spatial), great = small;
        std::copy(to.begin() + 2, to.begin() + 2 + spatial, great.begin() + 2);
        const Ints& given = backward ? great : small;
        Ints turned = given;
        std::swap(turned[0], turned[1]);
        Args args = {
            align ? source.Random(turned, dtype).transpose(0, 1) : source.Random(given, dtype),
            Front(great, spatial)};
        if (backward) args.push_back(small);
        if (aligned) args.push_back(align);
        for (int i = 0; i < scales; ++i) args.push_back(0.0);
        inputs.push_back(args);
        if (scales == 0) continue;
        for (int i = 0; i < scales; ++i) args[args.size() - 1 - i] = -1.0;  // derived, too
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

const Dtypes kFloatsAndBytes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte};

Rows Upsamplings() {
  const c10::optional<double> none;
  return {
      {"aclnnUpsampleNearest1d", Images(1, false, false, 0), kFloats,
       [=](const In& in) { return at::upsample_nearest1d(in[0], in.ints(1), none); }},
      {"aclnnUpsampleNearest1dV2", Images(1, false, false, 1), kFloats,
       [=](const In& in) { return at::upsample_nearest1d(in[0], in.ints(1), none); }},
      {"aclnnUpsampleNearest2dV2", Images(2, false, false, 2), kFloats,
       [=](const In& in) { return at::upsample_nearest2d(in[0], in.ints(1), none, none); }},
      {"aclnnUpsampleNearest3d", Images(3, false, false, 3), kFloats,
       [=](const In& in) { return at::upsample_nearest3d(in[0], in.ints(1), none, none, none); }},
      {"aclnnUpsampleNearestExact2d", Images(2, false, false, 2), kFloatsAndBytes,
       [=](const In& in) { return at::_upsample_nearest_exact2d(in[0], in.ints(1), none, none); }},
      {"aclnnUpsampleLinear1d", Images(1, false, true, 1), kWide,
       [=](const In& in) { return at::upsample_linear1d(in[0], in.ints(1), in.flag(2), none); },
       kSumOrder},
      {"aclnnUpsampleBicubic2d", Images(2, false, true, 2), kWide,
       [=](const In& in) {
         return at::upsample_bicubic2d(in[0], in.ints(1), in.flag(2), none, none);
       },
       kSumOrder},
      {"aclnnUpsampleTrilinear3d", Images(3, false, true, 3), kWide,
       [=](const In& in) {
         return at::upsample_trilinear3d(in[0], in.ints(1), in.flag(2), none, none, none);
       },
       kSumOrder},
      {"aclnnUpsampleNearest1dBackward", Images(1, true, false, 1), kWide,
       [=](const In& in) {
         return at::upsample_nearest1d_backward(in[0], in.ints(1), in.ints(2), none);
       },
       kSumOrder},
      {"aclnnUpsampleNearest2dBackward", Images(2, true, false, 2), kWide,
       [=](const In& in) {
         return at::upsample_nearest2d_backward(in[0], in.ints(1), in.ints(2), none, none);
       },
       kSumOrder},
      {"aclnnUpsampleBilinear2dBackward", Images(2, true, true, 2), kWide,
       [=](const In& in) {
         return at::upsample_bilinear2d_backward(in[0], in.ints(1), in.ints(2), in.flag(3), none,
                                                 none);
       },
       kSumOrder},
      {"aclnnUpsampleBilinear2dBackwardV2", Images(2, true, true, 2), kWide,
       [=](const In& in) {
         return at::upsample_bilinear2d_backward(in[0], in.ints(1), in.ints(2), in.flag(3), none,
                                                 none);
       },
       kSumOrder},
      {"aclnnUpsampleBicubic2dBackward", Images(2, true, true, 2), kWide,
       [=](const In& in) {
         return at::upsample_bicubic2d_backward(in[0], in.ints(1), in.ints(2), in.flag(3), none,
                                                none);
       },
       kSumOrder},
  };
}

// (input, grid, mode, padding, align)
std::vector<Args> Grids(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (int64_t mode : {0, 1, 2}) {
    for (int64_t padding : {0, 1, 2}) {
      inputs.push_back({source.Random({2, 3, 5, 6}, dtype),
                        source.Random({2, 4, 7, 2}, dtype, -1.2, 1.2), mode, padding,
                        padding == 1});
    }
  }
  return inputs;
}

Rows Samplings() {
  return {
      {"aclnnAffineGrid",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({2, 2, 3}, dtype), Ints{2, 3, 4, 5}, false},
                                  {source.Random({2, 2, 3}, dtype), Ints{2, 3, 1, 5}, true},
                                  {source.Random({1, 3, 4}, dtype), Ints{1, 2, 3, 2, 4}, true}};
       },
       {at::kFloat, at::kDouble},
       [](const In& in) { return at::affine_grid_generator(in[0], in.ints(1), in.flag(2)); },
       kSumOrder},
      {"aclnnGridSampler2D",
       Grids,
       {at::kFloat, at::kDouble},
       [](const In& in) {
         return at::grid_sampler_2d(in[0], in[1], in.integer(2), in.integer(3), in.flag(4));
       },
       kSumOrder},
      {"aclnnGridSampler2DBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Args& args : Grids(source, dtype)) {
           Args with = {source.Random({2, 3, 4, 7}, dtype)};
           with.insert(with.end(), args.begin(), args.end());
           with.push_back(Ints{1, 1});
           inputs.push_back(with);
         }
         return inputs;
       },
       {at::kFloat, at::kDouble},
       [](const In& in) {
         return at::grid_sampler_2d_backward(in[0], in[1], in[2], in.integer(3), in.integer(4),
                                             in.flag(5), {true, true});
       },
       kSumOrder},
  };
}

Inputs Padded(int64_t spatial, bool backward) {
  return [=](Source& source, at::ScalarType dtype) {
    const Ints pad = {1, 2, 0, 1, 2, 0};
    Ints sizes = {2, 3}, padded = {2, 3};
    for (int64_t i = 0; i < spatial; ++i) {
      sizes.push_back(4 + i);
      const int64_t pair = spatial - 1 - i;
      padded.push_back(4 + i + pad[2 * pair] + pad[2 * pair + 1]);
    }
    const Ints used(pad.begin(), pad.begin() + 2 * spatial);
    const Tensor self = source.Random(sizes, dtype);
    std::vector<Args> inputs;
    if (backward) {
      inputs.push_back({source.Random(padded, dtype), self, used});
    } else {
      inputs.push_back({self, used});
    }
    return inputs;
  };
}

// The tensor with its last elements in front and its first ones after, dim by dim.
Tensor Repeated(const In& in) {
  Tensor x = in[0];
  const Ints& pad = in.ints(1);
  for (size_t pair = 0; pair < pad.size() / 2; ++pair) {
    const int64_t dim = x.dim() - 1 - static_cast<int64_t>(pair), size = x.size(dim);
    const int64_t before = pad[2 * pair], after = pad[2 * pair + 1];
    x = at::cat({x.narrow(dim, size - before, before), x, x.narrow(dim, 0, after)}, dim);
  }
  return x;
}

// Adds what lies beside the tensor to the elements that it repeats.
Tensor FoldedBack(const In& in) {
  Tensor sum = in[0].to(at::kDouble);
  const Ints& pad = in.ints(2);
  for (size_t pair = 0; pair < pad.size() / 2; ++pair) {
    const int64_t dim = sum.dim() - 1 - static_cast<int64_t>(pair), size = in[1].size(dim);
    const int64_t before = pad[2 * pair], after = pad[2 * pair + 1];
    const Tensor middle = sum.narrow(dim, before, size).clone();
    middle.narrow(dim, size - before, before).add_(sum.narrow(dim, 0, before));
    middle.narrow(dim, 0, after).add_(sum.narrow(dim, before + size, after));
    sum = middle;
  }
  return sum.to(in[1].scalar_type());
}

// A batch and a single image, the latter with other strides.
Inputs Repeats(int64_t spatial, bool backward) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs = Padded(spatial, backward)(source, dtype);
    Args single = inputs[0];
    for (size_t i = 0; i < single.size() - 1; ++i) {
      const Tensor batch = std::get<Tensor>(single[i]);
      const Ints sizes = batch.sizes().slice(1).vec();
      Ints turned = sizes;
      std::swap(turned[0], turned.back());
      single[i] = source.Random(turned, dtype).transpose(0, -1);
    }
    inputs.push_back(single);
    return inputs;
  };
}

Rows CircularPaddings() {
  const Dtypes moved = {at::kFloat, at::kHalf, at::kBFloat16, at::kChar, at::kInt};
  return {
      {"aclnnCircularPad2d", Repeats(2, false), moved, Repeated},
      {"aclnnCircularPad3d", Repeats(3, false), moved, Repeated},
      {"aclnnCircularPad2dBackward", Repeats(2, true), kFloats, FoldedBack, kFewSums},
      {"aclnnCircularPad3dBackward", Repeats(3, true), kFloats, FoldedBack, kFewSums},
  };
}

Rows Paddings() {
  const Dtypes wide = {at::kFloat, at::kDouble};
  return {
      {"aclnnReflectionPad3d", Padded(3, false), wide,
       [](const In& in) { return at::reflection_pad3d(in[0], in.ints(1)); }},
      {"aclnnReplicationPad1d", Padded(1, false), wide,
       [](const In& in) { return at::replication_pad1d(in[0], in.ints(1)); }},
      {"aclnnReplicationPad2d", Padded(2, false), wide,
       [](const In& in) { return at::replication_pad2d(in[0], in.ints(1)); }},
      {"aclnnReplicationPad3d", Padded(3, false), wide,
       [](const In& in) { return at::replication_pad3d(in[0], in.ints(1)); }},
      {"aclnnReflectionPad1dBackward", Padded(1, true), wide,
       [](const In& in) { return at::reflection_pad1d_backward(in[0], in[1], in.ints(2)); }},
      {"aclnnReflectionPad2dBackward", Padded(2, true), wide,
       [](const In& in) { return at::reflection_pad2d_backward(in[0], in[1], in.ints(2)); }},
      {"aclnnReflectionPad3dBackward", Padded(3, true), wide,
       [](const In& in) { return at::reflection_pad3d_backward(in[0], in[1], in.ints(2)); }},
      {"aclnnReplicationPad1dBackward", Padded(1, true), wide,
       [](const In& in) { return at::replication_pad1d_backward(in[0], in[1], in.ints(2)); }},
      {"aclnnReplicationPad2dBackward", Padded(2, true), wide,
       [](const In& in) { return at::replication_pad2d_backward(in[0], in[1], in.ints(2)); }},
      {"aclnnReplicationPad3dBackward", Padded(3, true), wide,
       [](const In& in) { return at::replication_pad3d_backward(in[0], in[1], in.ints(2)); }},
  };
}

}  // namespace

Rows VisionRows() {
  Rows rows = Upsamplings();
  for (const Rows& more : {Samplings(), Paddings(), CircularPaddings()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
