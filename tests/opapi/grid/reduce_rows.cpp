// Reductions, scans, sorting and selection.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

const Tolerance kReduced = {8, 1e-6, true, "libtorch splits sums by the strides of both sides"};

// A tensor, dims to reduce (empty: all), and whether they stay as dims of size 1; then `extra`.
Inputs OverDims(Args before = {}, Args extra = {}, bool empty_tensors = true) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Tensor& view : source.Views(dtype)) {
      if (!empty_tensors && view.numel() == 0) continue;
      std::vector<std::vector<int64_t>> dims = {{}};
      if (view.dim() > 0) dims.push_back({-1});
      if (view.dim() > 1) dims.push_back({0, view.dim() - 1});
      if (view.dim() > 2) dims.push_back({1});
      for (size_t i = 0; i < dims.size(); ++i) {
        Args args = {view};
        args.insert(args.end(), before.begin(), before.end());
        args.push_back(dims[i]);
        args.insert(args.end(), extra.begin(), extra.end());
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

// Like OverDims, with keepdim after the dims. keepdim is true for every second one.
Inputs OverDimsKeeping(Args before = {}, Args between = {}, bool with_dtype = false,
                       bool empty_tensors = true) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs = OverDims(before, between, empty_tensors)(source, dtype);
    bool keep = false;
    for (Args& args : inputs) {
      args.push_back(keep);
      keep = !keep;
      if (with_dtype) args.push_back(at::isIntegralType(dtype, true) ? at::kLong : dtype);
    }
    return inputs;
  };
}

// A tensor that has elements and one dim of it; then `extra`.
Inputs OverDim(Args extra = {}, bool keep = false, bool empty_tensors = false,
               bool expanded = true) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    bool keeping = false;
    for (const Tensor& view : source.Views(dtype)) {
      if (view.numel() == 0 && !empty_tensors) continue;
      if (Source::IsExpanded(view) && !expanded) continue;
      for (int64_t dim = -view.dim(); dim < std::max<int64_t>(view.dim(), 1); dim += 2) {
        Args args = {view, dim};
        if (keep) args.push_back(keeping = !keeping);
        args.insert(args.end(), extra.begin(), extra.end());
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

std::vector<int64_t> AllDims(const Tensor& tensor, std::vector<int64_t> dims) {
  if (dims.empty()) {
    for (int64_t i = 0; i < tensor.dim(); ++i) dims.push_back(i);
  }
  return dims;
}

// The divisor is the number of elements less the correction, and not below 0: the result is
// infinite there.
Inputs OverCorrections() {
  std::vector<Inputs> makers;
  for (const int64_t correction : {0, 1, 2, -3, 31}) {
    makers.push_back(OverDimsKeeping({}, {correction}, false, false));
  }
  return All(makers);
}

// An integer would be taken for the library's flag `unbiased`.
c10::optional<int64_t> Correction(const In& in) { return in.integer(2); }

// The library's any and all take one dim or none.
template <typename Whole, typename Dim>
Reference Truth(Whole whole, Dim along) {
  return [=](const In& in) {
    Tensor result = in[0].scalar_type() == at::kBool ? in[0] : in[0].ne(0);
    const bool keep = in.flag(2);
    if (in.ints(1).empty()) {
      result = whole(result);
      return keep ? result.reshape(std::vector<int64_t>(in[0].dim(), 1)) : result;
    }
    std::vector<int64_t> dims;
    for (int64_t dim : in.ints(1)) dims.push_back(dim < 0 ? dim + in[0].dim() : dim);
    std::sort(dims.rbegin(), dims.rend());
    for (int64_t dim : dims) result = along(result, dim, keep);
    return result;
  };
}

using Ints = std::vector<int64_t>;

const Tolerance kRounded = {16, 1e-5, false, "sums are rounded to float32, and once from double"};

// (self, dims, keepDims, noop): as OverDims, and without dims with the flag too. Without NaN and
// infinities unless `specials`.
Inputs OverDimsOrNone(bool empty_tensors, bool specials = false) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    bool keep = false;
    for (Args& args : OverDims({}, {}, false)(source, dtype)) {
      if (!specials && at::isFloatingType(dtype) &&
          !std::get<Tensor>(args[0]).isfinite().all().item<bool>()) {
        continue;
      }
      args.insert(args.end(), {keep = !keep, false});
      inputs.push_back(args);
      if (!std::get<Ints>(args[1]).empty()) continue;
      args.back() = true;
      inputs.push_back(args);
    }
    if (empty_tensors) inputs.push_back({source.Random({2, 0, 3}, dtype), Ints{0}, true, false});
    return inputs;
  };
}

// fn(self, dims, keep) in double, or self itself where it has neither dims nor asks for all
template <typename Fn>
Reference InDouble(Fn fn) {
  return [fn](const In& in) {
    if (in.ints(1).empty() && in.flag(3)) return in[0];
    return fn(in[0].to(at::kDouble), AllDims(in[0], in.ints(1)), in.flag(2))
        .to(in[0].scalar_type());
  };
}

// Images and volumes of several channels, one with other strides.
Inputs Pixels() {
  return [](Source& source, at::ScalarType dtype) {
    return std::vector<Args>{{source.Random({2, 3, 4, 5}, dtype)},
                             {source.Random({2, 3, 2, 3, 4}, dtype)},
                             {source.Random({5, 4, 3, 2}, dtype).permute({3, 2, 1, 0})},
                             {source.Random({0, 3, 2, 2}, dtype)}};
  };
}

// One number for each channel of each image, with the dims of the image.
Tensor OfPixels(const Tensor& images, const Tensor& channels) {
  Tensor result = channels;
  while (result.dim() < images.dim()) result = result.unsqueeze(-1);
  return result.to(images.scalar_type());
}

Rows Sums() {
  return {
      {"aclnnReduceSum", OverDimsKeeping({}, {}, true), kAll,
       [](const In& in) { return at::sum(in[0], in.ints(1), in.flag(2), in.dtype(3)); }, kReduced},
      {"aclnnReduceNansum", OverDimsKeeping({}, {}, true), kNumbers,
       [](const In& in) { return at::nansum(in[0], in.ints(1), in.flag(2), in.dtype(3)); },
       kReduced},
      {"aclnnMean", OverDimsKeeping({}, {}, true), kFloats,
       [](const In& in) { return at::mean(in[0], in.ints(1), in.flag(2), in.dtype(3)); }, kReduced},
      {"aclnnMeanV2", OverDimsOrNone(true), kFloats,
       InDouble([](const Tensor& x, const Ints& dims, bool keep) { return x.mean(dims, keep); }),
       kRounded},
      {"aclnnReduceLogSum", OverDimsOrNone(true), kFloats,
       InDouble(
           [](const Tensor& x, const Ints& dims, bool keep) { return x.sum(dims, keep).log(); }),
       kRounded, 0.5, 3},
      {"aclnnMaxV2", OverDimsOrNone(false), kNumbers,
       [](const In& in) {
         if (in.ints(1).empty() && in.flag(3)) return in[0];
         return at::amax(in[0], in.ints(1), in.flag(2));
       }},
      {"aclnnGlobalAveragePool", Pixels(), kFloats,
       [](const In& in) { return OfPixels(in[0], in[0].to(at::kDouble).flatten(2).mean(2)); },
       kRounded},
      {"aclnnGlobalMaxPool", Pixels(), kFloats,
       [](const In& in) { return OfPixels(in[0], in[0].flatten(2).amax(2)); }},
      {"aclnnAmax", OverDimsKeeping({}, {}, false, false), kAll,
       [](const In& in) { return at::amax(in[0], in.ints(1), in.flag(2)); }},
      {"aclnnAmin", OverDimsKeeping({}, {}, false, false), kAll,
       [](const In& in) { return at::amin(in[0], in.ints(1), in.flag(2)); }},
      {"aclnnAny", OverDimsKeeping(), kAll,
       Truth([](const Tensor& x) { return at::any(x); },
             [](const Tensor& x, int64_t dim, bool keep) { return at::any(x, dim, keep); })},
      {"aclnnAll", OverDimsKeeping(), kAll,
       Truth([](const Tensor& x) { return at::all(x); },
             [](const Tensor& x, int64_t dim, bool keep) { return at::all(x, dim, keep); })},
      {"aclnnNorm", OverDimsKeeping({at::Scalar(2)}, {}, false, false), kFloats,
       [](const In& in) {
         return at::norm(in[0], c10::optional<at::Scalar>(in.number(1)), in.ints(2), in.flag(3));
       },
       kReduced},
      {"aclnnLinalgVectorNorm",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (double order : {1.0, 2.0, 3.0, 0.0}) {
           for (Args args : OverDims({at::Scalar(order)}, {true}, false)(source, dtype)) {
             args.push_back(dtype);
             inputs.push_back(args);
           }
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         const auto dims =
             in.ints(2).empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(in.ints(2));
         return at::linalg_vector_norm(in[0], in.number(1), dims, in.flag(3), in.dtype(4));
       },
       kReduced},
      {"aclnnLogSumExp", OverDimsKeeping({}, {}, false, false), kFloats,
       [](const In& in) { return at::logsumexp(in[0], AllDims(in[0], in.ints(1)), in.flag(2)); },
       kReduced},
      {"aclnnVar", OverDimsKeeping({}, {true}, false, false), kFloats,
       [](const In& in) { return at::var(in[0], in.ints(1), in.flag(2), in.flag(3)); }, kReduced},
      {"aclnnVarCorrection", OverCorrections(), kFloats,
       [](const In& in) {
         return at::var(in[0], at::OptionalIntArrayRef(in.ints(1)), Correction(in), in.flag(3));
       },
       kReduced},
      {"aclnnStd", OverCorrections(), kFloats,
       [](const In& in) {
         return at::std(in[0], at::OptionalIntArrayRef(in.ints(1)), Correction(in), in.flag(3));
       },
       kReduced},
      {"aclnnVarMean", OverCorrections(), kFloats,
       [](const In& in) {
         return at::var_mean(in[0], at::OptionalIntArrayRef(in.ints(1)), Correction(in),
                             in.flag(3));
       },
       kReduced},
      {"aclnnStdMeanCorrection", OverCorrections(), kFloats,
       [](const In& in) {
         return at::std_mean(in[0], at::OptionalIntArrayRef(in.ints(1)), Correction(in),
                             in.flag(3));
       },
       kReduced},
      {"aclnnNanMedian", OneTensor(), kNumbers, [](const In& in) { return at::nanmedian(in[0]); }},
      {"aclnnMax", OneTensor(), kAll, [](const In& in) { return at::max(in[0]); }},
      {"aclnnMin", OneTensor(), kAll, [](const In& in) { return at::min(in[0]); }},
      {"aclnnMedian", OneTensor(), kNumbers, [](const In& in) { return at::median(in[0]); }},
      {"aclnnProd",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           inputs.push_back({view, at::isIntegralType(dtype, true) ? at::kLong : dtype});
         }
         return inputs;
       },
       kNumbers, [](const In& in) { return at::prod(in[0], in.dtype(1)); }, kReduced},
      {"aclnnProdDim",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs = OverDim({}, true)(source, dtype);
         for (Args& args : inputs) {
           args.push_back(at::isIntegralType(dtype, true) ? at::kLong : dtype);
         }
         return inputs;
       },
       kNumbers,
       [](const In& in) { return at::prod(in[0], in.integer(1), in.flag(2), in.dtype(3)); },
       kReduced},
  };
}

Rows Positions() {
  return {
      {"aclnnArgMax", OverDim({}, true), kNumbers,
       [](const In& in) { return at::argmax(in[0], in.integer(1), in.flag(2)); }},
      {"aclnnArgMin", OverDim({}, true), kNumbers,
       [](const In& in) { return at::argmin(in[0], in.integer(1), in.flag(2)); }},
      {"aclnnMaxDim", OverDim({}, true), kAll,
       [](const In& in) { return at::max(in[0], in.integer(1), in.flag(2)); }},
      {"aclnnMinDim", OverDim({}, true), kAll,
       [](const In& in) { return at::min(in[0], in.integer(1), in.flag(2)); }},
      // libtorch's median of an expanded tensor is another one from call to call.
      {"aclnnMedianDim", OverDim({}, true, false, false), kNumbers,
       [](const In& in) { return at::median(in[0], in.integer(1), in.flag(2)); }},
      {"aclnnNanMedianDim", OverDim({}, true, false, false), kNumbers,
       [](const In& in) { return at::nanmedian(in[0], in.integer(1), in.flag(2)); }},
      {"aclnnTopk",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           if (view.numel() == 0) continue;
           const int64_t size = view.dim() == 0 ? 1 : view.size(-1);
           inputs.push_back({view, size, int64_t{-1}, true, true});
           inputs.push_back({view, (size + 1) / 2, int64_t{-1}, false, true});
           inputs.push_back({view, int64_t{0}, int64_t{-1}, true, true});
         }
         return inputs;
       },
       kNumbers,
       [](const In& in) {
         return at::topk(in[0], in.integer(1), in.integer(2), in.flag(3), in.flag(4));
       }},
      {"aclnnSort",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         bool flag = false;
         for (const Tensor& view : source.Views(dtype)) {
           flag = !flag;
           inputs.push_back({view, true, int64_t{-1}, flag});
           if (view.dim() > 1) inputs.push_back({view, true, int64_t{0}, !flag});
         }
         return inputs;
       },
       kAll,
       [](const In& in) {
         return at::sort(in[0], c10::optional<bool>(in.flag(1)), in.integer(2), in.flag(3));
       }},
      {"aclnnArgsort",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           inputs.push_back({view, int64_t{-1}, view.dim() > 1});
         }
         return inputs;
       },
       kNumbers, [](const In& in) { return at::argsort(in[0], in.integer(1), in.flag(2)); }},
      {"aclnnKthvalue",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         bool keep = false;
         for (const Tensor& view : source.Views(dtype)) {
           if (view.numel() == 0) continue;
           inputs.push_back({view, int64_t{1}, int64_t{-1}, keep = !keep});
         }
         return inputs;
       },
       kNumbers,
       [](const In& in) { return at::kthvalue(in[0], in.integer(1), in.integer(2), in.flag(3)); }},
      {"aclnnBucketize",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         bool right = false;
         for (const Tensor& view : source.Views(dtype)) {
           const Tensor sorted = std::get<0>(at::sort(source.Random({7}, dtype)));
           inputs.push_back({view, sorted, false, right = !right});
         }
         return inputs;
       },
       kNumbers, [](const In& in) { return at::bucketize(in[0], in[1], in.flag(2), in.flag(3)); }},
  };
}

// (self, dim, exclusive, reverse): the products with a triangle of ones, in double
Tensor SummedByHand(const In& in) {
  const Tensor x = in[0].dim() == 0 ? in[0].reshape({1}) : in[0];
  const Tensor last = x.to(at::kDouble).movedim(in.integer(1), -1);
  const int64_t size = last.size(-1), exclusive = in.flag(2) ? 1 : 0;
  const Tensor ones = at::ones({size, size}, at::kDouble);
  // Column j of the triangle has ones for the elements that sum j holds.
  const Tensor held = in.flag(3) ? ones.tril(-exclusive) : ones.triu(exclusive);
  return at::matmul(last, held)
      .movedim(-1, in.integer(1))
      .reshape(in[0].sizes())
      .to(in[0].scalar_type());
}

Rows Scans() {
  const auto with_dtype = [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs = OverDim({}, false, true)(source, dtype);
    for (Args& args : inputs) {
      args.push_back(at::isIntegralType(dtype, true) ? at::kLong : dtype);
    }
    return inputs;
  };
  return {
      {"aclnnCumsum", with_dtype, kAll,
       [](const In& in) { return at::cumsum(in[0], in.integer(1), in.dtype(2)); }, kReduced},
      {"aclnnCumsumV2",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         int number = 0;
         for (Args& args : OverDim({}, false, true)(source, dtype)) {
           const Tensor view = std::get<Tensor>(args[0]);
           if (at::isFloatingType(dtype) && !view.isfinite().all().item<bool>()) continue;
           args.insert(args.end(), {number % 2 == 1, number / 2 % 2 == 1});
           ++number;
           inputs.push_back(args);
         }
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong},
       SummedByHand,
       kRounded},
      {"aclnnInplaceCumprod",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs = OverDim({}, false, true)(source, dtype);
         for (Args& args : inputs) args[1] = at::Scalar(std::get<int64_t>(args[1]));
         return inputs;
       },
       {at::kFloat, at::kDouble},
       [](const In& in) { return at::cumprod(in[0], in.number(1).toLong()); },
       kReduced},
      {"aclnnCumprod",
       [with_dtype](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs = with_dtype(source, dtype);
         for (Args& args : inputs) args[1] = at::Scalar(std::get<int64_t>(args[1]));
         return inputs;
       },
       kNumbers, [](const In& in) { return at::cumprod(in[0], in.integer(1), in.dtype(2)); },
       kReduced},
  };
}

}  // namespace

Rows ReduceRows() {
  Rows rows;
  for (auto family : {Sums, Positions, Scans}) {
    for (Row& row : family()) {
      row.inplace = false;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace acltape::opapi::grid
