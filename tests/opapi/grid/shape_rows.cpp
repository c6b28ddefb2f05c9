// Copies, conversions, joins, paddings, and outputs that depend on no tensor.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

// Lists to join along a dim.
Inputs Joined(bool same_shapes) {
  return [same_shapes](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    const Tensor turned = source.Random({4, 3}, dtype).t();
    const Tensor sliced = source.Random({6, 9}, dtype).slice(0, 0, 6, 2).slice(1, 1, 9, 2);
    inputs.push_back({Tensors{source.Random({3, 4}, dtype), turned, sliced}, int64_t{0}});
    inputs.push_back({Tensors{source.Random({3, 4}, dtype), turned, sliced}, int64_t{-1}});
    inputs.push_back({Tensors{source.Random({7}, dtype)}, int64_t{0}});
    inputs.push_back(
        {Tensors{source.Random({2, 0, 3}, dtype), source.Random({2, 0, 3}, dtype)}, int64_t{1}});
    inputs.push_back(
        {Tensors{source.Random({2, 5}, dtype), source.Random({2, 5}, at::kFloat)}, int64_t{1}});
    inputs.push_back(
        {Tensors{source.Random({1, 5}, dtype).expand({2, 5}), source.Random({2, 5}, dtype)},
         int64_t{0}});
    if (!same_shapes) {
      inputs.push_back({Tensors{source.Random({0}, dtype), source.Random({3, 4}, dtype),
                                source.Random({1, 4}, dtype)},
                        int64_t{0}});
    }
    return inputs;
  };
}

// A tensor, then one of several argument lists that fit its rank.
Inputs Each(std::function<std::vector<Args>(const Tensor&)> tails) {
  return [tails](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Tensor& view : source.Views(dtype)) {
      for (const Args& tail : tails(view)) {
        inputs.push_back({view});
        inputs.back().insert(inputs.back().end(), tail.begin(), tail.end());
      }
    }
    return inputs;
  };
}

Ints Range(int64_t count, bool reversed) {
  Ints dims;
  for (int64_t i = 0; i < count; ++i) dims.push_back(reversed ? count - 1 - i : i - count);
  return dims;
}

Rows Copies() {
  return {
      {"aclnnInplaceCopy",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& [a, b] : source.Pairs(dtype, dtype)) inputs.push_back({a, b});
         for (at::ScalarType other : kAll) {
           // The result for a number outside of the target's range is not defined.
           inputs.push_back({source.Random({5, 7}, dtype), source.Random({7}, other, 0, 2)});
           inputs.push_back({source.Random({6, 4}, dtype).t(), source.Random({4, 6}, other, 0, 2)});
         }
         return inputs;
       },
       kAll, [](const In& in) { return in[1].to(in[0].scalar_type()).expand(in[0].sizes()); }},
      {"aclnnCast",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (at::ScalarType to : kAll) {
           const double low = to == at::kByte ? 0 : -3;
           inputs.push_back({source.Random({}, dtype, low, 3), to});
           inputs.push_back({source.Random({5, 7, 9}, dtype, low, 3), to});
           inputs.push_back({source.Random({0, 3}, dtype), to});
           inputs.push_back({source.Random({11, 13}, dtype, low, 3).t(), to});
           inputs.push_back({source.Random({40}, dtype, low, 3).slice(0, 3, 38, 2), to});
         }
         for (at::ScalarType to : kFloats) inputs.push_back({source.Specials(dtype), to});
         inputs.push_back({source.Specials(dtype), at::kBool});
         return inputs;
       },
       kAll, [](const In& in) { return in[0].to(in.dtype(1)); }},
      {"aclnnPermute", Each([](const Tensor& x) {
         return std::vector<Args>{{Range(x.dim(), true)}, {Range(x.dim(), false)}};
       }),
       kAll, [](const In& in) { return in[0].permute(in.ints(1)).contiguous(); }},
      {"aclnnExpand", Each([](const Tensor& x) {
         Ints sizes = x.sizes().vec();
         sizes.insert(sizes.begin(), 2);
         return std::vector<Args>{{sizes}, {x.sizes().vec()}};
       }),
       kAll, [](const In& in) { return in[0].expand(in.ints(1)).contiguous(); }},
      {"aclnnSlice", Each([](const Tensor& x) {
         if (x.dim() == 0) return std::vector<Args>{};
         return std::vector<Args>{
             {int64_t{-1}, int64_t{0}, int64_t{1000}, int64_t{2}},
             {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{1}},
             {int64_t{0}, int64_t{0}, int64_t{2}, int64_t{1}},
         };
       }),
       kAll,
       [](const In& in) {
         return in[0].slice(in.integer(1), in.integer(2), in.integer(3), in.integer(4)).clone();
       }},
      {"aclnnSliceV2", Each([](const Tensor& x) {
         if (x.dim() < 2) return std::vector<Args>{};
         return std::vector<Args>{{Ints{1, 0}, Ints{100, 2}, Ints{0, 1}, Ints{2, 1}},
                                  {Ints{1, 0}, Ints{3, 2}, Ints{x.dim() - 1, 0}, Ints{1, 1}}};
       }),
       kAll,
       [](const In& in) {
         Tensor result = in[0];
         for (size_t i = 0; i < in.ints(3).size(); ++i) {
           result = result.slice(in.ints(3)[i], in.ints(1)[i], in.ints(2)[i], in.ints(4)[i]);
         }
         return result.clone();
       }},
      {"aclnnCat", Joined(false), kAll,
       [](const In& in) { return at::cat(in.list(0), in.integer(1)); }},
      {"aclnnStack", Joined(true), kAll,
       [](const In& in) { return at::stack(in.list(0), in.integer(1)); }},
      {"aclnnChunkCat",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t chunks : {1, 2, 3, 8}) {
           const std::vector<Tensor> tensors = {
               source.Random({7, 3}, dtype), source.Random({4}, dtype),
               source.Random({5, 6}, dtype).t(), source.Random({2, 2, 5}, dtype)};
           inputs.push_back({tensors, int64_t{0}, chunks});
           inputs.push_back(
               {std::vector<Tensor>{source.Random({2, 7, 3}, dtype), source.Random({2, 4}, dtype)},
                int64_t{1}, chunks});
         }
         return inputs;
       },
       kAll,
       // Written with pad, view and cat, where the kernel has the library's own function.
       [](const In& in) {
         const int64_t dim = in.integer(1), chunks = in.integer(2);
         std::vector<Tensor> parts;
         for (const Tensor& tensor : in.list(0)) {
           const int64_t each = (tensor.size(dim) + chunks - 1) / chunks;
           Ints filled = tensor.sizes().vec(), cut = tensor.sizes().slice(0, dim).vec();
           filled[static_cast<size_t>(dim)] = each * chunks;
           Tensor whole = at::zeros(filled, tensor.options());
           whole.narrow(dim, 0, tensor.size(dim)).copy_(tensor);
           cut.push_back(chunks);
           cut.push_back(-1);
           parts.push_back(whole.reshape(cut));
         }
         return at::cat(parts, dim + 1);
       }},
      {"aclnnSplitTensor",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({7, 4}, dtype), int64_t{3}, int64_t{0}},
             {source.Random({4, 6}, dtype).t(), int64_t{2}, int64_t{-1}},
         };
       },
       kAll, [](const In& in) { return in[0].split(in.integer(1), in.integer(2)); }},
      {"aclnnSplitWithSize",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({7, 4}, dtype), Ints{3, 0, 4}, int64_t{0}},
             {source.Random({4, 6}, dtype).t(), Ints{1, 3}, int64_t{-1}},
         };
       },
       kAll, [](const In& in) { return in[0].split_with_sizes(in.ints(1), in.integer(2)); }},
      {"aclnnRepeat", Each([](const Tensor& x) {
         Ints same(x.dim(), 2), more(x.dim() + 1, 1), none(x.dim(), 1);
         more[0] = 3;
         if (!none.empty()) none[0] = 0;
         return std::vector<Args>{{same}, {more}, {none}};
       }),
       kAll, [](const In& in) { return in[0].repeat(in.ints(1)); }},
      {"aclnnRepeatInterleaveIntWithDim",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({7, 4}, dtype), int64_t{3}, int64_t{0}, int64_t{21}},
             {source.Random({4, 6}, dtype).t(), int64_t{2}, int64_t{-1}, int64_t{8}},
         };
       },
       kAll,
       [](const In& in) { return at::repeat_interleave(in[0], in.integer(1), in.integer(2)); }},
      {"aclnnFlip", Each([](const Tensor& x) {
         if (x.dim() == 0) return std::vector<Args>{};
         return std::vector<Args>{{Ints{-1}}, {Range(x.dim(), true)}};
       }),
       kAll, [](const In& in) { return at::flip(in[0], in.ints(1)); }},
      {"aclnnRoll", Each([](const Tensor& x) {
         if (x.dim() == 0) return std::vector<Args>{};
         std::vector<Args> tails = {{Ints{2}, Ints{-1}}, {Ints{-1}, Ints{0}}, {Ints{5}, Ints{}}};
         if (x.dim() > 1) tails.push_back({Ints{1, -2}, Ints{0, x.dim() - 1}});
         return tails;
       }),
       kAll, [](const In& in) { return at::roll(in[0], in.ints(1), in.ints(2)); }},
      {"aclnnConstantPadNd", Each([](const Tensor& x) {
         if (x.dim() == 0) return std::vector<Args>{};
         Ints pads = {1, 2};
         if (x.dim() > 1) pads.insert(pads.end(), {0, 1});
         std::vector<Args> tails = {{pads, at::Scalar(3)}, {Ints{}, at::Scalar(1)}};
         if (x.dim() > 1 && x.size(-2) > 1) tails.push_back({Ints{1, 2, -1, 0}, at::Scalar(1)});
         return tails;
       }),
       kAll, [](const In& in) { return at::constant_pad_nd(in[0], in.ints(1), in.number(2)); }},
      {"aclnnReflectionPad1d",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({2, 7}, dtype), Ints{2, 3}},
                                  {source.Random({9, 4, 3}, dtype).transpose(0, 2), Ints{1, 0}}};
       },
       kFloats, [](const In& in) { return at::reflection_pad1d(in[0], in.ints(1)); }},
      {"aclnnReflectionPad2d",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({2, 7, 6}, dtype), Ints{2, 3, 1, 0}},
             {source.Random({2, 3, 5, 6}, dtype).transpose(2, 3), Ints{1, 0, 2, 2}}};
       },
       kFloats, [](const In& in) { return at::reflection_pad2d(in[0], in.ints(1)); }},
      {"aclnnChannelShuffle",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({2, 6, 3, 2}, dtype), int64_t{3}},
                                  {source.Random({5, 4, 2}, dtype).transpose(0, 2), int64_t{2}}};
       },
       kAll, [](const In& in) { return at::channel_shuffle(in[0], in.integer(1)); }},
      {"aclnnUnfoldGrad",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({4, 2, 3}, dtype), Ints{4, 6}, int64_t{1}, int64_t{3}, int64_t{2}},
             {source.Random({3, 6, 2}, dtype), Ints{4, 6}, int64_t{0}, int64_t{2}, int64_t{1}}};
       },
       kFloats,
       [](const In& in) {
         return at::unfold_backward(in[0], in.ints(1), in.integer(2), in.integer(3), in.integer(4));
       }},
      {"aclnnIm2col",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({2, 3, 7, 6}, dtype), Ints{3, 2}, Ints{1, 1}, Ints{1, 0}, Ints{2, 1}}};
       },
       kFloats,
       [](const In& in) {
         return at::im2col(in[0], in.ints(1), in.ints(2), in.ints(3), in.ints(4));
       }},
  };
}

Inputs Diagonals() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Tensor& matrix : source.Matrices(dtype)) {
      for (int64_t diagonal : {0, 1, -2}) inputs.push_back({matrix, diagonal});
    }
    return inputs;
  };
}

Inputs Targets(Args extra = {}) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Tensor& view : source.Views(dtype)) {
      inputs.push_back({view});
      inputs.back().insert(inputs.back().end(), extra.begin(), extra.end());
    }
    return inputs;
  };
}

Rows Fills() {
  return {
      {"aclnnDiag", Each([](const Tensor& view) {
         std::vector<Args> tails = {{int64_t{0}}, {int64_t{1}}, {int64_t{-2}}};
         if (view.dim() > 1 && view.size(1) > 8) tails.push_back({int64_t{8}});
         return view.dim() == 1 || view.dim() == 2 ? tails : std::vector<Args>();
       }),
       kAll,
       [](const In& in) {
         const int64_t diagonal = in.integer(1);
         if (in[0].dim() == 2) return in[0].diagonal(diagonal).clone();
         const int64_t size = in[0].numel() + std::abs(diagonal);
         const Tensor result = at::zeros({size, size}, in[0].options());
         result.diagonal(diagonal).copy_(in[0]);
         return result;
       }},
      {"aclnnDiagFlat", Each([](const Tensor& view) {
         const std::vector<Args> tails = {{int64_t{0}}, {int64_t{3}}, {int64_t{-1}}};
         return view.numel() < 200 ? tails : std::vector<Args>();
       }),
       kAll,
       [](const In& in) {
         const int64_t size = in[0].numel() + std::abs(in.integer(1));
         const Tensor result = at::zeros({size, size}, in[0].options());
         result.diagonal(in.integer(1)).copy_(in[0].reshape(-1));
         return result;
       }},
      {"aclnnFlatten", Each([](const Tensor& view) {
         std::vector<Args> tails;
         for (int64_t axis = -view.dim(); axis < std::max<int64_t>(view.dim(), 1); ++axis) {
           tails.push_back({axis});
         }
         return tails;
       }),
       kAll,
       [](const In& in) {
         const int64_t axis = in.integer(1) < 0 ? in.integer(1) + in[0].dim() : in.integer(1);
         int64_t rows = 1, columns = 1;
         for (int64_t i = 0; i < in[0].dim(); ++i) (i < axis ? rows : columns) *= in[0].size(i);
         return in[0].contiguous().view({rows, columns});
       }},
      {"aclnnTriu", Diagonals(), kAll, [](const In& in) { return at::triu(in[0], in.integer(1)); }},
      {"aclnnTril", Diagonals(), kAll, [](const In& in) { return at::tril(in[0], in.integer(1)); }},
      {"aclnnInplaceZero", Targets(), kAll, [](const In& in) { return at::zeros_like(in[0]); }},
      {"aclnnInplaceOne", Targets(), kAll, [](const In& in) { return at::ones_like(in[0]); }},
      {"aclnnInplaceFillScalar", Targets({at::Scalar(2.5)}), kAll,
       [](const In& in) { return at::full_like(in[0], in.number(1)); }},
      {"aclnnInplaceFillTensor",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           inputs.push_back({view, source.Random({}, dtype)});
         }
         inputs.push_back({source.Random({4, 3}, dtype), at::full({1}, 3, at::kLong)});
         return inputs;
       },
       kAll,
       [](const In& in) { return in[1].to(in[0].scalar_type()).expand(in[0].sizes()).clone(); }},
      {"aclnnInplaceFillDiagonal",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({4, 4}, dtype), at::Scalar(2), false},
                                  {source.Random({9, 3}, dtype), at::Scalar(2), true},
                                  {source.Random({3, 7}, dtype).t(), at::Scalar(2), false}};
       },
       kAll, [](const In& in) { return in[0].clone().fill_diagonal_(in.number(1), in.flag(2)); }},
  };
}

// Operators that take no tensor.
Rows Ranges() {
  return {
      {"aclnnArange",
       [](Source&, at::ScalarType) {
         return std::vector<Args>{
             {at::Scalar(0), at::Scalar(10), at::Scalar(1)},
             {at::Scalar(3), at::Scalar(-8), at::Scalar(-2)},
             {at::Scalar(0.5), at::Scalar(9.1), at::Scalar(0.3)},
             {at::Scalar(5), at::Scalar(5), at::Scalar(1)},
             {at::Scalar(0), at::Scalar(1000), at::Scalar(1)},
         };
       },
       {at::kFloat},
       [](const In& in) { return at::arange(in.number(0), in.number(1), in.number(2)); }},
      {"aclnnRange",
       [](Source&, at::ScalarType) {
         return std::vector<Args>{{at::Scalar(0.0), at::Scalar(10.0), at::Scalar(2.0)},
                                  {at::Scalar(1.0), at::Scalar(0.0), at::Scalar(-0.25)}};
       },
       {at::kFloat},
       [](const In& in) { return at::range(in.number(0), in.number(1), in.number(2)); }},
      {"aclnnLinspace",
       [](Source&, at::ScalarType) {
         return std::vector<Args>{
             {at::Scalar(0), at::Scalar(10), int64_t{7}},
             {at::Scalar(-1.5), at::Scalar(1.5), int64_t{100}},
             {at::Scalar(2), at::Scalar(2), int64_t{1}},
         };
       },
       {at::kFloat},
       [](const In& in) { return at::linspace(in.number(0), in.number(1), in.integer(2)); }},
      {"aclnnLogSpace",
       [](Source&, at::ScalarType) {
         return std::vector<Args>{
             {at::Scalar(0), at::Scalar(3), int64_t{7}, 10.0},
             {at::Scalar(-1.5), at::Scalar(1.5), int64_t{100}, 2.0},
             {at::Scalar(2), at::Scalar(2), int64_t{1}, 10.0},
         };
       },
       {at::kFloat},
       [](const In& in) {
         return at::logspace(in.number(0), in.number(1), in.integer(2), in.real(3));
       }},
      {"aclnnEye",
       [](Source&, at::ScalarType) {
         return std::vector<Args>{
             {int64_t{4}, int64_t{4}}, {int64_t{3}, int64_t{7}}, {int64_t{0}, int64_t{2}}};
       },
       {at::kFloat},
       [](const In& in) { return at::eye(in.integer(0), in.integer(1)); }},
  };
}

}  // namespace

Rows ShapeRows() {
  Rows rows;
  for (auto family : {Copies, Ranges}) {
    for (Row& row : family()) {
      row.inplace = false;
      rows.push_back(std::move(row));
    }
  }
  for (Row& row : Fills()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace acltape::opapi::grid
