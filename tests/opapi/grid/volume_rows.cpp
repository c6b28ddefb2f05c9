// Pooling of volumes, and the forms of pooling that bring elements back to where they came from.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

struct Volume {
  Ints kernel, stride, padding, dilation;
  bool ceil;
};

const std::vector<Volume> kVolumes = {
    {{2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, false},
    {{3, 3, 2}, {2, 1, 2}, {1, 1, 0}, {1, 1, 1}, true},
    {{2}, {}, {}, {1}, false},
};

Tensors Volumes(Source& source, at::ScalarType dtype) {
  return {source.Random({2, 3, 5, 6, 7}, dtype), source.Random({3, 6, 4, 7}, dtype),
          source.Random({2, 5, 6, 7, 3}, dtype).permute({0, 4, 1, 2, 3}),
          source.Random({2, 3, 12, 5, 4}, dtype).slice(2, 1, 11, 2)};
}

Ints Triple(const Ints& values, const Ints& otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? Ints(3, values[0]) : values;
}

// The library's windows of the arguments (kernel, stride, padding, [dilation]) from `first` on.
struct Windows {
  Windows(const In& in, int first, bool dilated)
      : kernel(Triple(in.ints(first), {})),
        stride(Triple(in.ints(first + 1), kernel)),
        padding(Triple(in.ints(first + 2), {0, 0, 0})),
        dilation(dilated ? Triple(in.ints(first + 3), {1, 1, 1}) : Ints{1, 1, 1}) {}
  Ints kernel, stride, padding, dilation;
};

std::vector<Args> MaxVolumes(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const Tensor& volume : Volumes(source, dtype)) {
    for (const Volume& v : kVolumes) {
      inputs.push_back({volume, v.kernel, v.stride, v.padding, v.dilation, v.ceil});
    }
    inputs.push_back({volume, Ints{2, 1, 2}, Ints{1, 2, 1}, Ints{1, 0, 0}, Ints{2, 1, 2}, false});
  }
  return inputs;
}

std::tuple<Tensor, Tensor> MaxOf(const In& in, int self, int first) {
  const Windows w(in, first, true);
  return at::max_pool3d_with_indices(InFloat(in[self]), w.kernel, w.stride, w.padding, w.dilation,
                                     in.flag(first + 4));
}

c10::optional<int64_t> Divisor(int64_t value) {
  return value == 0 ? c10::optional<int64_t>() : c10::optional<int64_t>(value);
}

std::vector<Args> AverageVolumes(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const Tensor& volume : Volumes(source, dtype)) {
    for (const Volume& v : kVolumes) {
      for (int64_t divisor : {0, 3}) {
        inputs.push_back({volume, v.kernel, v.stride, v.padding, v.ceil, divisor == 0, divisor});
      }
    }
  }
  return inputs;
}

Tensor AverageOf(const In& in) {
  const Windows w(in, 1, false);
  return at::avg_pool3d(InFloat(in[0]), w.kernel, w.stride, w.padding, in.flag(4), in.flag(5),
                        Divisor(in.integer(6)));
}

Rows Windowed() {
  return {
      {"aclnnMaxPool3dWithArgmax", MaxVolumes, kFloats,
       [](const In& in) {
         const auto [out, indices] = MaxOf(in, 0, 1);
         return std::make_tuple(out.to(in[0].scalar_type()), indices.to(at::kInt));
       }},
      {"aclnnMaxPool3dWithArgmaxBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Args& forward : MaxVolumes(source, dtype)) {
           const auto [out, indices] = MaxOf(In(forward), 0, 1);
           inputs.push_back({source.Random(out.sizes(), dtype), forward[0], indices.to(at::kInt),
                             forward[1], forward[2], forward[3], forward[4], forward[5]});
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         const Windows w(in, 3, true);
         return at::max_pool3d_with_indices_backward(InFloat(in[0]), InFloat(in[1]), w.kernel,
                                                     w.stride, w.padding, w.dilation, in.flag(7),
                                                     in[2].to(at::kLong))
             .to(in[0].scalar_type());
       }},
      {"aclnnAvgPool3d", AverageVolumes, kFloats,
       [](const In& in) { return AverageOf(in).to(in[0].scalar_type()); }, kSummed},
      {"aclnnAvgPool3dBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Args& forward : AverageVolumes(source, dtype)) {
           const Tensor out = AverageOf(In(forward));
           Args args = {source.Random(out.sizes(), dtype)};
           args.insert(args.end(), forward.begin(), forward.end());
           inputs.push_back(args);
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         const Windows w(in, 2, false);
         return at::avg_pool3d_backward(InFloat(in[0]), InFloat(in[1]), w.kernel, w.stride,
                                        w.padding, in.flag(5), in.flag(6), Divisor(in.integer(7)))
             .to(in[0].scalar_type());
       },
       kSummed},
  };
}

// Adaptive maxima: a gradient, the input and the indices of what the sizes give.
template <typename Pool>
Inputs AdaptiveGradients(Pool pool, std::vector<Ints> shapes) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Ints& shape : shapes) {
      const Tensor self = source.Random(shape, dtype);
      const Tensor indices = std::get<1>(pool(InFloat(self)));
      inputs.push_back({source.Random(indices.sizes(), dtype), self, indices});
      inputs.push_back({source.Random(indices.sizes(), dtype), self, indices.to(at::kInt)});
    }
    return inputs;
  };
}

// Maxima of windows that do not overlap, and where they came from.
template <typename Pool>
Inputs Unpooled(Pool pool, std::vector<Ints> shapes, Args extra) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Ints& shape : shapes) {
      const Tensor self = source.Random(shape, dtype);
      const auto [out, indices] = pool(InFloat(self));
      const Ints spatial(shape.end() - (extra.empty() ? 2 : 3), shape.end());
      Args args = {out.to(dtype), indices, spatial};
      args.insert(args.end(), extra.begin(), extra.end());
      inputs.push_back(args);
    }
    return inputs;
  };
}

// (gradOutput, self, indices, ...), without duplicates of an index in a plane
template <typename Pool>
Inputs Unpoolings(Pool pool, std::vector<Ints> shapes, Args extra) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (Args args : Unpooled(pool, shapes, extra)(source, dtype)) {
      const Tensor self = std::get<Tensor>(args[0]), indices = std::get<Tensor>(args[1]);
      const Ints& spatial = std::get<Ints>(args[2]);
      Ints sizes(self.sizes().begin(), self.sizes().end() - static_cast<int64_t>(spatial.size()));
      sizes.insert(sizes.end(), spatial.begin(), spatial.end());
      for (at::ScalarType index : {at::kLong, at::kInt}) {
        args[1] = indices.to(index);
        inputs.push_back(args);
        inputs.back().insert(inputs.back().begin(), source.Random(sizes, dtype));
      }
    }
    return inputs;
  };
}

// out[plane][i] = gradOutput[plane][indices[plane][i]]
Tensor FromTheirPlaces(const In& in) {
  const int64_t planes = in[1].dim() - static_cast<int64_t>(in.ints(3).size());
  const Tensor gradient = in[0].flatten(planes).flatten(0, planes - 1);
  const Tensor places = in[2].to(at::kLong).flatten(planes).flatten(0, planes - 1);
  Tensors rows;
  for (int64_t i = 0; i < places.size(0); ++i) {
    rows.push_back(gradient[i].index_select(0, places[i]));
  }
  return at::stack(rows).view(in[1].sizes());
}

Rows BackToTheirPlaces() {
  const auto adapt2 = [](const Tensor& x) { return at::adaptive_max_pool2d(x, {3, 2}); };
  const auto adapt3 = [](const Tensor& x) { return at::adaptive_max_pool3d(x, {2, 3, 2}); };
  const auto pool2 = [](const Tensor& x) { return at::max_pool2d_with_indices(x, {2, 2}); };
  const auto pool3 = [](const Tensor& x) { return at::max_pool3d_with_indices(x, {2, 2, 2}); };
  return {
      {"aclnnAdaptiveMaxPool2dBackward", AdaptiveGradients(adapt2, {{2, 3, 7, 5}, {3, 6, 4}}),
       kFloats,
       [](const In& in) {
         return at::adaptive_max_pool2d_backward(InFloat(in[0]), InFloat(in[1]),
                                                 in[2].to(at::kLong))
             .to(in[0].scalar_type());
       }},
      {"aclnnAdaptiveMaxPool3d",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& volume : Volumes(source, dtype)) {
           for (const Ints& size : {Ints{1, 1, 1}, Ints{2, 3, 2}}) inputs.push_back({volume, size});
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         const auto result = at::adaptive_max_pool3d(InFloat(in[0]), in.ints(1));
         return std::make_tuple(std::get<0>(result).to(in[0].scalar_type()), std::get<1>(result));
       }},
      {"aclnnAdaptiveMaxPool3dBackward", AdaptiveGradients(adapt3, {{2, 3, 4, 7, 5}, {3, 5, 6, 4}}),
       kFloats,
       [](const In& in) {
         return at::adaptive_max_pool3d_backward(InFloat(in[0]), InFloat(in[1]),
                                                 in[2].to(at::kLong))
             .to(in[0].scalar_type());
       }},
      {"aclnnMaxUnpool2d", Unpooled(pool2, {{2, 3, 6, 8}, {3, 4, 6}}, {}), kFloats,
       [](const In& in) {
         return at::max_unpool2d(InFloat(in[0]), in[1], in.ints(2)).to(in[0].scalar_type());
       }},
      {"aclnnMaxUnpool2dBackward", Unpoolings(pool2, {{2, 3, 6, 8}, {3, 4, 6}}, {}), kFloats,
       FromTheirPlaces},
      {"aclnnMaxUnpool3dBackward",
       Unpoolings(pool3, {{2, 3, 4, 6, 8}, {3, 4, 4, 6}}, {Ints{2, 2, 2}, Ints{0, 0, 0}}), kFloats,
       FromTheirPlaces},
      {"aclnnMaxUnpool3d",
       Unpooled(pool3, {{2, 3, 4, 6, 8}, {3, 4, 4, 6}}, {Ints{2, 2, 2}, Ints{0, 0, 0}}), kFloats,
       [](const In& in) {
         return at::max_unpool3d(InFloat(in[0]), in[1], in.ints(2), in.ints(3), in.ints(4))
             .to(in[0].scalar_type());
       }},
  };
}

// (self, kernel, strides, autoPad, pads, dilations, ceilMode). The reference pads by hand and tries
// each window that starts in the image or in front of it.
Tensor MaxByHand(const In& in) {
  const Ints kernel = in.ints(1), stride = in.ints(2).empty() ? Ints{1, 1} : in.ints(2);
  Ints pads = in.ints(4);
  if (pads.empty()) pads = {0, 0, 0, 0};
  if (pads.size() == 2) pads = {pads[0], pads[1], pads[0], pads[1]};
  const Tensor x = in[0];
  const int64_t height = x.size(-2), width = x.size(-1);
  const auto first_last = [&](int64_t size, int64_t before, int64_t after, int64_t window,
                              int64_t step) {
    Ints starts;
    for (int64_t start = -before; start < size; start += step) {
      const int64_t end = start + window;
      if (end > size + after && in.integer(6) == 0) break;
      starts.push_back(start);
      if (end >= size + after) break;
    }
    return starts;
  };
  const Ints rows = first_last(height, pads[0], pads[2], kernel[0], stride[0]);
  const Ints columns = first_last(width, pads[1], pads[3], kernel[1], stride[1]);
  Tensors lines;
  for (int64_t top : rows) {
    Tensors line;
    for (int64_t left : columns) {
      const Tensor window = x.slice(-2, std::max<int64_t>(top, 0), top + kernel[0])
                                .slice(-1, std::max<int64_t>(left, 0), left + kernel[1]);
      line.push_back(window.amax(at::IntArrayRef({-2, -1})));
    }
    lines.push_back(at::stack(line, -1));
  }
  return at::stack(lines, -2);
}

Rows Bordered() {
  return {
      {"aclnnMaxPool",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& image : {source.Random({2, 3, 7, 9}, dtype),
                                     source.Random({3, 9, 6}, dtype).transpose(1, 2)}) {
           for (int64_t ceil : {0, 1}) {
             inputs.push_back({image, Ints{2, 3}, Ints{2, 2}, int64_t{0}, Ints{}, Ints{}, ceil});
             inputs.push_back(
                 {image, Ints{3, 3}, Ints{}, int64_t{0}, Ints{1, 1}, Ints{1, 1}, ceil});
             inputs.push_back(
                 {image, Ints{3, 4}, Ints{2, 3}, int64_t{0}, Ints{0, 2, 1, 1}, Ints{1}, ceil});
           }
         }
         return inputs;
       },
       kFloats, MaxByHand},
  };
}

}  // namespace

Rows VolumeRows() {
  Rows rows = Windowed();
  for (const Rows& more : {BackToTheirPlaces(), Bordered()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
