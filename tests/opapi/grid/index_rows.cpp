// Reading and writing at indices and masks.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

// Tensors with the dim along which they are indexed.
std::vector<std::pair<Tensor, int64_t>> Indexed(Source& source, at::ScalarType dtype) {
  return {
      {source.Random({7}, dtype), 0},
      {source.Random({5, 6}, dtype), 0},
      {source.Random({5, 6}, dtype), -1},
      {source.Random({6, 9}, dtype).t(), 1},
      {source.Random({12, 20}, dtype).slice(0, 1, 12, 3).slice(1, 3, 19, 2), 0},
      {source.Random({3, 4, 5}, dtype), 1},
      {source.Random({40, 33}, dtype), 0},
  };
}

// A tensor, a dim, `count` indices into it.
Inputs Rowwise(bool zero_dim) {
  return [zero_dim](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const auto& [tensor, dim] : Indexed(source, dtype)) {
      const int64_t size = tensor.size(dim);
      inputs.push_back({tensor, dim, source.Indices({4}, size)});
      inputs.push_back({tensor, dim, source.Indices({9}, size, at::kInt)});
      inputs.push_back({tensor, dim, source.Indices({0}, size)});
      if (zero_dim) inputs.push_back({tensor, dim, source.Indices({}, size)});
    }
    return inputs;
  };
}

// A tensor, a dim, an index of the tensor's rank, and a source where wanted.
Inputs Elementwise(bool with_source, Args extra = {}, bool unique = false) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const auto& [tensor, dim] : Indexed(source, dtype)) {
      for (at::ScalarType index_dtype : {at::kLong, at::kInt}) {
        std::vector<int64_t> sizes = tensor.sizes().vec();
        const int64_t axis = dim < 0 ? dim + tensor.dim() : dim;
        const int64_t bound = sizes[axis];
        Tensor index;
        if (unique) {
          std::vector<int64_t> ladder(sizes.size(), 1);
          ladder[axis] = bound;
          index = source.Shuffled(bound).reshape(ladder).expand(sizes).contiguous();
        } else {
          sizes[axis] = 3;
          index = source.Indices(sizes, bound);
        }
        Args args = {tensor, dim, index.to(index_dtype)};
        if (with_source) args.push_back(source.Random(index.sizes(), dtype));
        args.insert(args.end(), extra.begin(), extra.end());
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

Tensor Long(const Tensor& index) { return index.to(at::kLong); }

Tensor Scattered(const In& in, int64_t reduce) {
  const Tensor index = Long(in[2]);
  if (reduce == 1) return at::scatter(in[0], in.integer(1), index, in[3], "add");
  if (reduce == 2) return at::scatter(in[0], in.integer(1), index, in[3], "multiply");
  return at::scatter(in[0], in.integer(1), index, in[3]);
}

c10::List<c10::optional<Tensor>> IndexList(const Tensors& entries) {
  c10::List<c10::optional<Tensor>> list;
  for (const Tensor& entry : entries) {
    if (entry.numel() == 0) {
      list.push_back(c10::nullopt);
    } else {
      list.push_back(entry.scalar_type() == at::kInt ? Long(entry) : entry);
    }
  }
  return list;
}

Inputs IndexLists(bool put, bool accumulate) {
  return [=](Source& source, at::ScalarType dtype) {
    const Tensor all = at::empty({0}, at::kLong);
    const Tensor cube = source.Random({4, 5, 6}, dtype), flat = source.Random({30}, dtype);
    const Tensor turned = source.Random({6, 8}, dtype).t();
    const std::vector<std::pair<Tensor, Tensors>> cases = {
        {flat, {source.Shuffled(30).slice(0, 0, 7)}},
        {cube, {source.Shuffled(4).slice(0, 0, 3)}},
        {cube, {all, source.Shuffled(5).slice(0, 0, 4)}},
        {cube, {source.Shuffled(4), source.Shuffled(5).slice(0, 0, 4)}},
        {cube, {source.Shuffled(4), all, source.Shuffled(6).slice(0, 0, 4)}},
        {turned, {source.Shuffled(8).slice(0, 0, 2).reshape({2, 1}), source.Shuffled(6)}},
        {cube, {source.Shuffled(4).sub(4)}},
        {flat, {source.Random({30}, at::kBool)}},
        {cube, {source.Random({4, 5}, at::kBool)}},
        {cube, {all, source.Shuffled(5).slice(0, 0, 3), source.Shuffled(6).slice(0, 0, 3)}},
        {cube, {source.Shuffled(4).to(at::kInt), source.Shuffled(5).slice(0, 0, 4)}},
        {cube, {all, source.Shuffled(10).to(at::kInt).slice(0, 0, 8, 2).remainder(5)}},
        {flat, {source.Shuffled(30).slice(0, 0, 7).sub(30).to(at::kInt)}},
    };
    std::vector<Args> inputs;
    if (put && accumulate) {  // at an index that occurs twice
      inputs.push_back({cube, Tensors{at::tensor({1, 3, 1}, at::kLong)},
                        source.Random({3, 5, 6}, dtype), true, false});
    }
    for (const auto& [tensor, entries] : cases) {
      if (!put) {
        inputs.push_back({tensor, entries});
        continue;
      }
      const Tensor model = at::index(tensor, IndexList(entries));
      inputs.push_back({tensor, entries, source.Random(model.sizes(), dtype), accumulate, false});
      inputs.push_back({tensor, entries, source.Random({}, dtype), accumulate, false});
    }
    return inputs;
  };
}

// --- Bags of embeddings: (weight, indices, offsets, scaleGradByFreq, mode, sparse, factors?,
// includeLastOffset, paddingIdx).

const Tolerance kBagSums = {4, 1e-6, false, "the library sums in blocks, the test one by one"};

std::vector<Args> BagInputs(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (int64_t mode : {0, 1, 2}) {
    for (at::ScalarType index : {at::kLong, at::kInt}) {
      const auto starts = [&](std::vector<int64_t> offsets) {
        return at::tensor(offsets, at::kLong).to(index);
      };
      const Tensor table = source.Random({11, 8}, dtype),
                   turned = source.Random({8, 11}, dtype).t();
      const Tensor indices = source.Indices({7}, 11, index);
      // An empty bag in the middle and one at the end.
      const Tensor offsets = starts({0, 3, 3, 4, 7}), ends = starts({0, 2, 2, 7});
      inputs.push_back({table, indices, offsets, false, mode, false, Null{}, false, int64_t{-1}});
      inputs.push_back({turned, indices, ends, false, mode, false, Null{}, true, int64_t{-1}});
      inputs.push_back({table, source.Indices({14}, 11, index).slice(0, 0, 14, 2), offsets, false,
                        mode, false, Null{}, false, int64_t{3}});
      // No index at all.
      inputs.push_back({table, source.Indices({0}, 11, index), starts({0, 0}), false, mode, false,
                        Null{}, false, int64_t{-1}});
      if (mode == 0) {
        inputs.push_back({table, indices, offsets, false, mode, false, source.Random({7}, dtype),
                          false, int64_t{3}});
      }
    }
  }
  return inputs;
}

// Bag by bag and row by row, in float32.
Args BagsOneByOne(const In& in) {
  const int64_t mode = in.integer(4), padding = in.integer(8);
  const Tensor table = in[0].to(at::kDouble), indices = in[1].to(at::kLong);
  const Tensor offsets = in[2].to(at::kLong);
  const int64_t bags = offsets.size(0) - (in.flag(7) ? 1 : 0), width = table.size(1);
  const Tensor out = at::zeros({bags, width}, at::kDouble), bag_of = at::zeros_like(indices);
  const Tensor sizes = at::zeros({bags}, at::kLong);
  const Tensor rows = mode == 2 ? at::zeros({bags, width}, at::kLong) : at::zeros_like(sizes);
  for (int64_t bag = 0; bag < bags; ++bag) {
    const auto end = bag + 1 < offsets.size(0) ? offsets[bag + 1].item<int64_t>() : indices.size(0);
    int64_t count = 0;
    for (auto k = offsets[bag].item<int64_t>(); k < end; ++k) {
      bag_of[k].fill_(bag);
      const auto row = indices[k].item<int64_t>();
      if (row == padding) continue;
      const Tensor factor = in.maybe(6) ? in[6].to(at::kDouble)[k] : at::ones({}, at::kDouble);
      const Tensor greater = table[row].gt(out[bag]).logical_or(at::full({width}, count == 0));
      if (mode == 2) rows[bag].copy_(at::where(greater, at::full({width}, row), rows[bag]));
      out[bag].copy_(mode == 2 ? at::where(greater, table[row], out[bag])
                               : out[bag] + table[row] * factor);
      ++count;
    }
    if (mode == 1 && count > 0) out[bag].div_(count);
    sizes[bag].fill_(count);
  }
  const at::ScalarType index = in[1].scalar_type();
  return {out.to(in[0].scalar_type()), bag_of.to(index), sizes.to(index), rows.to(index)};
}

Rows Reading() {
  return {
      {"aclnnIndexSelect", Rowwise(true), kAll,
       [](const In& in) { return at::index_select(in[0], in.integer(1), in[2]); }},
      {"aclnnGatherV2",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs = Rowwise(false)(source, dtype);
         inputs.push_back({source.Random({5, 6}, dtype), int64_t{0}, source.Indices({2, 3}, 5)});
         return inputs;
       },
       kAll,
       [](const In& in) {
         const int64_t dim = in.integer(1) < 0 ? in.integer(1) + in[0].dim() : in.integer(1);
         std::vector<int64_t> sizes = in[0].sizes().vec();
         sizes.erase(sizes.begin() + dim);
         sizes.insert(sizes.begin() + dim, in[2].sizes().begin(), in[2].sizes().end());
         return at::index_select(in[0], dim, in[2].reshape(-1)).reshape(sizes);
       }},
      {"aclnnGatherV3",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (Args& args : Rowwise(false)(source, dtype)) {
           args.insert(args.end(), {int64_t{0}, static_cast<int64_t>(inputs.size() % 2)});
           inputs.push_back(args);
         }
         inputs.push_back({source.Random({5, 6}, dtype), int64_t{0}, source.Indices({2, 3}, 5),
                           int64_t{0}, int64_t{1}});
         return inputs;
       },
       kAll,
       [](const In& in) {
         const Tensor turned = in[0].movedim(in.integer(1), 0);
         Tensors taken;
         const Tensor flat = in[2].reshape(-1);
         for (int64_t i = 0; i < flat.numel(); ++i)
           taken.push_back(turned[flat[i].item<int64_t>()]);
         std::vector<int64_t> sizes = in[2].sizes().vec();
         sizes.insert(sizes.end(), turned.sizes().begin() + 1, turned.sizes().end());
         const Tensor rows =
             taken.empty() ? at::empty(sizes, in[0].options()) : at::stack(taken).reshape(sizes);
         const int64_t dim = in.integer(1) < 0 ? in.integer(1) + in[0].dim() : in.integer(1);
         std::vector<int64_t> from, to;
         for (int64_t i = 0; i < in[2].dim(); ++i) {
           from.push_back(i);
           to.push_back(dim + i);
         }
         return rows.movedim(from, to);
       }},
      {"aclnnEmbedding",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& sizes : std::vector<std::vector<int64_t>>{{}, {5}, {2, 7}, {0, 3}}) {
           for (at::ScalarType index : {at::kLong, at::kInt}) {
             inputs.push_back({source.Random({11, 8}, dtype), source.Indices(sizes, 11, index)});
             inputs.push_back(
                 {source.Random({8, 11}, dtype).t(), source.Indices(sizes, 11, index)});
           }
         }
         return inputs;
       },
       kAll, [](const In& in) { return at::embedding(in[0], in[1]); }},
      {"aclnnEmbeddingBag", BagInputs, kFloats, BagsOneByOne, kBagSums},
      {"aclnnEmbeddingDenseBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t padding : {-1, 2}) {
           for (bool scale : {false, true}) {
             inputs.push_back({source.Random({4, 3, 6}, dtype), source.Indices({4, 3}, 9),
                               int64_t{9}, padding, scale});
           }
           inputs.push_back(
               {source.Random({6}, dtype), source.Indices({}, 9), int64_t{9}, padding, false});
           inputs.push_back(
               {source.Random({0, 6}, dtype), source.Indices({0}, 9), int64_t{9}, padding, false});
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         return at::embedding_dense_backward(in[0], in[1], in.integer(2), in.integer(3),
                                             in.flag(4));
       }},
      {"aclnnGather", Elementwise(false), kAll,
       [](const In& in) { return at::gather(in[0], in.integer(1), Long(in[2])); }},
      {"aclnnTake",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& [tensor, dim] : Indexed(source, dtype)) {
           inputs.push_back({tensor, source.Indices({3, 4}, tensor.numel())});
         }
         return inputs;
       },
       kAll, [](const In& in) { return at::take(in[0], in[1]); }},
      {"aclnnIndex", IndexLists(false, false), kAll,
       [](const In& in) { return at::index(in[0], IndexList(in.list(1))); }},
      {"aclnnOneHot",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Indices({5}, 4), 4, at::ones({1}, dtype), at::zeros({1}, dtype), int64_t{-1}},
             {source.Indices({2, 3}, 4), 4, at::ones({1}, dtype), at::zeros({1}, dtype),
              int64_t{-1}},
         };
       },
       {at::kLong, at::kFloat},
       [](const In& in) { return at::one_hot(in[0], in.integer(1)).to(in[2].scalar_type()); }},
  };
}

Rows Writing() {
  const at::Scalar two(2);
  const auto masks = [](bool tensor_value) {
    return [tensor_value](Source& source, at::ScalarType dtype) {
      std::vector<Args> inputs;
      for (const Tensor& view : source.Views(dtype)) {
        const Arg value = tensor_value ? Arg(source.Random({}, dtype)) : Arg(at::Scalar(1));
        inputs.push_back({view, source.Random(view.sizes(), at::kBool), value});
        if (view.dim() > 0) {
          inputs.push_back({view, source.Random({view.size(-1)}, at::kBool), value});
        }
      }
      const Arg whole = tensor_value ? Arg(source.Random({1}, dtype)) : Arg(at::Scalar(-INFINITY));
      if (tensor_value || at::isFloatingType(dtype)) {
        inputs.push_back({source.Random({4, 6}, dtype), source.Random({4, 6}, at::kByte), whole});
      }
      return inputs;
    };
  };
  return {
      {"aclnnScatter",
       All({Elementwise(true, {int64_t{0}}, true), Elementwise(true, {int64_t{1}}),
            Elementwise(true, {int64_t{2}})}),
       kAll, [](const In& in) { return Scattered(in, in.integer(4)); }},
      {"aclnnScatterAdd", Elementwise(true), kAll,
       [](const In& in) { return at::scatter_add(in[0], in.integer(1), Long(in[2]), in[3]); }},
      {"aclnnScatterValue",
       All({Elementwise(false, {two, int64_t{0}}), Elementwise(false, {two, int64_t{1}}),
            Elementwise(false, {two, int64_t{2}})}),
       kAll,
       [](const In& in) {
         const Tensor index = Long(in[2]);
         if (in.integer(4) == 0) return at::scatter(in[0], in.integer(1), index, in.number(3));
         return at::scatter(in[0], in.integer(1), index, in.number(3),
                            in.integer(4) == 1 ? "add" : "multiply");
       }},
      {"aclnnIndexAdd",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& [tensor, dim] : Indexed(source, dtype)) {
           std::vector<int64_t> sizes = tensor.sizes().vec();
           const int64_t axis = dim < 0 ? dim + tensor.dim() : dim;
           const Tensor index = source.Indices({3}, sizes[axis]);
           sizes[axis] = 3;
           inputs.push_back({tensor, dim, index, source.Random(sizes, dtype),
                             at::isFloatingType(dtype) ? at::Scalar(0.5) : at::Scalar(2)});
         }
         return inputs;
       },
       kNumbers,
       [](const In& in) {
         return at::index_add(in[0], in.integer(1), in[2], in[3], in.number(4));
       }},
      {"aclnnIndexFill",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& [tensor, dim] : Indexed(source, dtype)) {
           inputs.push_back({tensor, dim, source.Indices({3}, tensor.size(dim)), at::Scalar(1)});
         }
         return inputs;
       },
       kAll,
       [](const In& in) { return at::index_fill(in[0], in.integer(1), in[2], in.number(3)); }},
      {"aclnnIndexFillTensor",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& [tensor, dim] : Indexed(source, dtype)) {
           inputs.push_back({tensor, dim, std::vector<int64_t>{0, 2, 3}, at::Scalar(1)});
         }
         return inputs;
       },
       kAll,
       [](const In& in) {
         return at::index_fill(in[0], in.integer(1), at::tensor(in.ints(2), at::kLong),
                               in.number(3));
       }},
      {"aclnnInplaceIndexCopy",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& [tensor, dim] : Indexed(source, dtype)) {
           for (at::ScalarType index : {at::kLong, at::kInt}) {
             std::vector<int64_t> sizes = tensor.sizes().vec();
             const int64_t axis = dim < 0 ? dim + tensor.dim() : dim;
             const Tensor rows = source.Shuffled(sizes[axis]).slice(0, 0, 2).to(index);
             sizes[axis] = 2;
             inputs.push_back({tensor, dim, rows, source.Random(sizes, dtype)});
           }
         }
         return inputs;
       },
       kAll, [](const In& in) { return at::index_copy(in[0], in.integer(1), Long(in[2]), in[3]); }},
      {"aclnnInplacePut",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (bool accumulate : {false, true}) {
           inputs.push_back({source.Random({3, 4}, dtype), source.Shuffled(12).slice(0, 0, 5),
                             source.Random({5}, dtype), accumulate});
           inputs.push_back({source.Random({3, 4}, dtype).t(),
                             source.Shuffled(12).slice(0, 0, 4).reshape({2, 2}).to(at::kInt),
                             source.Random({2, 2}, dtype), accumulate});
         }
         return inputs;
       },
       kAll, [](const In& in) { return at::put(in[0], Long(in[1]), in[2], in.flag(3)); }},
      {"aclnnIndexPutImpl",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs = IndexLists(true, false)(source, dtype);
         for (Args& args : IndexLists(true, true)(source, dtype)) inputs.push_back(args);
         return inputs;
       },
       kAll,
       [](const In& in) { return at::index_put(in[0], IndexList(in.list(1)), in[2], in.flag(3)); }},
      {"aclnnInplaceMaskedFillScalar", masks(false), kAll,
       [](const In& in) { return at::masked_fill(in[0], in[1].to(at::kBool), in.number(2)); }},
      {"aclnnInplaceMaskedFillTensor", masks(true), kAll,
       [](const In& in) { return at::masked_fill(in[0], in[1].to(at::kBool), in[2].reshape({})); }},
      {"aclnnInplaceMaskedScatter",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& [tensor, dim] : Indexed(source, dtype)) {
           inputs.push_back({tensor, source.Random(tensor.sizes(), at::kBool),
                             source.Random({tensor.numel()}, dtype)});
         }
         return inputs;
       },
       kAll, [](const In& in) { return at::masked_scatter(in[0], in[1], in[2]); }},
  };
}

}  // namespace

Rows IndexRows() {
  Rows rows = Reading();
  for (Row& row : rows) row.inplace = false;
  for (Row& row : Writing()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace acltape::opapi::grid
