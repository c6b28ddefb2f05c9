// Positions in several dims, and caches of keys and values in blocks.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

// A tensor and positions in its first dims, none twice.
struct Positioned {
  Tensor tensor, indices;
};

std::vector<Positioned> Positions(Source& source, at::ScalarType dtype) {
  const Tensor pairs = at::stack({source.Shuffled(5), source.Shuffled(5).remainder(4)}, -1);
  return {
      {source.Random({7}, dtype), source.Shuffled(7).slice(0, 0, 4).unsqueeze(-1)},
      {source.Random({6, 3}, dtype), source.Shuffled(6).view({2, 3, 1})},
      {source.Random({4, 5, 3}, dtype).transpose(0, 1), pairs},
      {source.Random({5, 4}, dtype), pairs.to(at::kInt)},
  };
}

// The element that a position selects.
Tensor At(const Tensor& tensor, const Tensor& position) {
  Tensor selected = tensor;
  for (int64_t i = 0; i < position.numel(); ++i) {
    selected = selected.select(0, position[i].item().toLong());
  }
  return selected;
}

Ints SelectedSizes(const Positioned& p) {
  Ints sizes(p.indices.sizes().begin(), p.indices.sizes().end() - 1);
  const int64_t depth = p.indices.size(-1);
  sizes.insert(sizes.end(), p.tensor.sizes().begin() + depth, p.tensor.sizes().end());
  return sizes;
}

Tensor Gathered(const In& in) {
  const Tensor flat = in[1].reshape({-1, in[1].size(-1)});
  Tensors parts;
  for (int64_t i = 0; i < flat.size(0); ++i) parts.push_back(At(in[0], flat[i]));
  return at::stack(parts).view(SelectedSizes({in[0], in[1]}));
}

Tensor ScatteredEntries(const In& in) {
  const Tensor result = in[0].clone(), flat = in[1].reshape({-1, in[1].size(-1)});
  Ints sizes = {flat.size(0)};
  sizes.insert(sizes.end(), in[0].sizes().begin() + in[1].size(-1), in[0].sizes().end());
  const Tensor updates = in[2].reshape(sizes);
  for (int64_t i = 0; i < flat.size(0); ++i) At(result, flat[i]).copy_(updates[i]);
  return result;
}

std::vector<Args> WithUpdates(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const Positioned& p : Positions(source, dtype)) {
    inputs.push_back({p.tensor, p.indices, source.Random(SelectedSizes(p), dtype)});
  }
  return inputs;
}

Rows InSeveralDims() {
  return {
      {"aclnnGatherNd",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Positioned& p : Positions(source, dtype)) {
           inputs.push_back({p.tensor, p.indices, false});
           inputs.push_back({p.tensor, p.indices - 4, true});
         }
         inputs.pop_back();  // a dim of 4 rows has none for -5
         inputs.pop_back();
         return inputs;
       },
       kAll,
       [](const In& in) {
         const Tensor wrapped = in[1].clone();
         for (int64_t i = 0; i < wrapped.size(-1); ++i) {
           wrapped.select(-1, i).remainder_(in[0].size(i));
         }
         const Args positive = {in[0], wrapped};
         return Gathered(In(positive));
       }},
      {"aclnnScatterNd", WithUpdates, kAll, ScatteredEntries},
      {"aclnnScatterNdUpdate", WithUpdates, kAll, ScatteredEntries},
      {"aclnnInplaceScatterUpdate",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({3, 2, 9, 4}, dtype), at::tensor({0, 7, 3}, at::kLong),
              source.Random({3, 2, 2, 4}, dtype), int64_t{-2}},
             {source.Random({4, 6, 5}, dtype), at::tensor({3, 1, 0, 4}, at::kInt).view({2, 2}),
              source.Random({2, 1, 5}, dtype), int64_t{1}}};
       },
       kAll,
       [](const In& in) {
         const Tensor data = in[0].clone();
         const int64_t axis = in.integer(3) < 0 ? in.integer(3) + data.dim() : in.integer(3);
         const bool named = in[1].dim() == 2;
         for (int64_t b = 0; b < in[2].size(0); ++b) {
           const int64_t entry = named ? in[1][b][0].item().toLong() : b;
           const int64_t first = (named ? in[1][b][1] : in[1][b]).item().toLong();
           for (int64_t i = 0; i < in[2].size(axis); ++i) {
             data.select(axis, first + i)[entry].copy_(in[2].select(axis, i)[b]);
           }
         }
         return data;
       }},
  };
}

// The row of a token in a cache of [blocks, slots, heads, width], or of [blocks, pieces..., slots,
// width of a piece].
void PutRow(const Tensor& cache, const Tensor& row, int64_t slot, bool pieces) {
  if (slot < 0) return;
  const int64_t block = cache.size(pieces ? cache.dim() - 2 : 1);
  const Tensor place = cache[slot / block].select(pieces ? cache.dim() - 3 : 0, slot % block);
  place.copy_(row.reshape(place.sizes()));
}

Tensor Filled(const Tensor& cache, const Tensor& rows, const Tensor& slots, bool pieces) {
  const Tensor result = cache.clone();
  for (int64_t i = 0; i < slots.size(0); ++i) {
    PutRow(result, rows[i], slots[i].item().toLong(), pieces);
  }
  return result;
}

// The rows of the sequences, one at a time, in front of what the result holds.
Tensor Gathered(const In& in, int cache_index, int out_index) {
  const Tensor cache = in[cache_index], table = in[2], lengths = in[3];
  Tensor out = in[out_index].clone();
  const bool sums = in.flag(8);
  int64_t next = 0;
  for (int64_t i = 0; i < table.size(0); ++i) {
    const int64_t before = sums ? lengths[i].item<int64_t>() : 0;
    const int64_t length = lengths[sums ? i + 1 : i].item<int64_t>() - before;
    const auto starts = in.maybe(6);
    const int64_t first = starts ? (*starts)[i].item<int64_t>() / cache.size(1) : 0;
    for (int64_t j = 0; j < length; ++j) {
      const auto block = table[i][first + j / cache.size(1)].item<int64_t>();
      if (block < 0) continue;
      out[next++].copy_(cache[block][j % cache.size(1)].reshape(out.sizes().slice(1)));
    }
  }
  return out;
}

Rows Caches() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16, at::kChar};
  const auto slots = [] { return at::tensor({9, 0, -1, 5}, at::kInt); };
  return {
      {"aclnnScatterPaKvCache",
       [=](Source& source, at::ScalarType dtype) {
         const auto call = [&](const Ints& key_cache, const Ints& value_cache, const char* mode) {
           return Args{source.Random({4, 2, 8}, dtype),
                       source.Random(key_cache, dtype),
                       slots(),
                       source.Random({4, 2, 4}, dtype),
                       source.Random(value_cache, dtype),
                       Null{},
                       Null{},
                       Null{},
                       mode,
                       "None",
                       Null{},
                       Null{}};
         };
         return std::vector<Args>{call({3, 4, 2, 8}, {3, 4, 2, 4}, "Norm"),
                                  call({3, 4, 4, 4}, {3, 2, 4, 4}, "PA_NZ"),
                                  call({3, 2, 4, 4, 2}, {3, 2, 2, 4, 2}, "PA_NZ")};
       },
       dtypes,
       [](const In& in) {
         const bool pieces = std::string(in.text(8)) == "PA_NZ";
         return std::make_tuple(Filled(in[1], in[0], in[2], pieces),
                                Filled(in[4], in[3], in[2], pieces));
       }},
      {"aclnnGatherPaKvCache",
       [=](Source& source, at::ScalarType dtype) {
         // Three sequences in blocks of 4 rows; an entry below 0 holds no rows.
         const auto call = [&](const Tensor& lengths, const Arg& starts, bool sums, const Ints& key,
                               const Ints& value) {
           return Args{source.Random({5, 4, 2, 8}, dtype),
                       source.Random({5, 4, 2, 4}, dtype),
                       at::tensor({4, 1, 0, 2, 3, 1, 0, -1, 2}, at::kInt).view({3, 3}),
                       lengths,
                       source.Random(key, dtype),
                       source.Random(value, dtype),
                       starts,
                       "Norm",
                       sums};
         };
         return std::vector<Args>{
             call(at::tensor({9, 0, 3}, at::kInt), Null{}, false, {12, 2, 8}, {12, 2, 4}),
             call(at::tensor({0, 5, 6, 14}, at::kInt), at::tensor({4, 9, 0}, at::kInt), true,
                  {14, 16}, {14, 8})};
       },
       dtypes,
       [](const In& in) { return std::make_tuple(Gathered(in, 0, 4), Gathered(in, 1, 5)); }},
      {"aclnnScatterPaCache",
       [=](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({4, 2, 8}, dtype),
                                   source.Random({3, 4, 2, 8}, dtype), slots().to(at::kLong),
                                   Null{}, Null{}, Null{}, "Norm"}};
       },
       dtypes, [](const In& in) { return Filled(in[1], in[0], in[2], false); }},
  };
}

}  // namespace

Rows PositionRows() {
  Rows rows = InSeveralDims();
  for (Row& row : Caches()) rows.push_back(std::move(row));
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
