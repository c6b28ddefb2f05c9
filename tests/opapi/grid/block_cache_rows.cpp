// Caches in blocks, as vLLM's plug-in writes them: the references go element by element.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

Tensor Ints32(const Ints& values) { return at::tensor(values, at::kLong).to(at::kInt); }
int64_t At(const Tensor& numbers, int64_t i) { return numbers.flatten()[i].item().toLong(); }

// --- aclnnReshapeAndCacheBnsd: the tokens of a sequence come head by head.

Args HeadsOfSequences(Source& source, at::IntArrayRef cache, const Ints& lengths,
                      const Ints& slots) {
  int64_t tokens = 0;
  for (int64_t length : lengths) tokens += length;
  const Tensor like = source.Random(cache, at::kByte, 0, 200);
  return {source.Random({tokens * cache[1], cache[3]}, at::kByte, 0, 200), like, Ints32(slots),
          Ints32(lengths), like.clone()};
}

Tensor HeadsTokenByToken(const In& in) {
  const Tensor cache = in[4].clone();
  const int64_t heads = cache.size(1), block = cache.size(2);
  int64_t token = 0, row = 0;
  for (int64_t s = 0; s < in[3].numel(); ++s) {
    const int64_t length = At(in[3], s);
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t t = 0; t < length; ++t) {
        const int64_t slot = At(in[2], token + t);
        cache[slot / block][head][slot % block].copy_(in[0][row++]);
      }
    }
    token += length;
  }
  return cache;
}

// --- Runs of slots

std::vector<Args> RunsOfRows(Source& source, at::ScalarType dtype) {
  const Tensor lengths = Ints32({3, 1, 0, 2, 2, 1}), from = Ints32({0, 3, 4, -1, 5, 8});
  const Tensor to = Ints32({5, 0, 1, 2, -1, 11});
  return {{source.Random({9, 5}, dtype), source.Random({3, 4, 5}, dtype), lengths, from, to,
           int64_t{4}},
          {source.Random({9, 3, 2}, dtype).transpose(0, 0), source.Random({6, 2, 3, 2}, dtype),
           lengths, from, to, int64_t{3}},
          {source.Random({2, 9}, dtype).t(), source.Random({12, 2}, dtype), lengths, from, to,
           int64_t{8}},
          {source.Random({4, 5}, dtype), source.Random({3, 5}, dtype), Ints32({}), Ints32({}),
           Ints32({}), int64_t{1}}};
}

Tensor RunsRowByRow(const In& in) {
  const Tensor cache = in[1].clone();
  const Tensor rows = cache.view({-1, in[0].numel() / in[0].size(0)});
  for (int64_t run = 0; run < in[2].numel(); ++run) {
    const int64_t from = At(in[3], run), to = At(in[4], run);
    if (from < 0 || to < 0) continue;
    for (int64_t i = 0; i < At(in[2], run); ++i) rows[to + i].copy_(in[0][from + i].flatten());
  }
  return cache;
}

std::vector<Args> SlotsInOrder(Source&, at::ScalarType) {
  std::vector<Args> inputs;
  for (const Ints& slots : {Ints{4, 5, 6, 7, 8, 9, -1, -1, 10, 2, 1, 0, 1}, Ints{-1, -1}, Ints{0},
                            Ints{3, 4, 4, 5, 7, 8}, Ints{-1, 0, 1, -1, 2}}) {
    for (int64_t block : {1, 4, 128}) inputs.push_back({Ints32(slots), block});
  }
  return inputs;
}

// From the end: the run that begins at a slot is the one that begins at the next, if that joins it.
Args RunsFromTheEnd(const In& in) {
  const int64_t count = in[0].numel(), block = in.integer(1);
  const Tensor lengths = at::zeros({count}, at::kInt), from = at::zeros_like(lengths);
  const Tensor to = at::zeros_like(lengths);
  Ints length(count + 1, 0), starts;
  for (int64_t i = count; i-- > 0;) {
    const int64_t slot = At(in[0], i);
    if (slot < 0) continue;
    const bool joined = i + 1 < count && At(in[0], i + 1) == slot + 1 && (slot + 1) % block != 0;
    length[i] = 1 + (joined ? length[i + 1] : 0);
    if (joined && !starts.empty()) starts.pop_back();
    starts.push_back(i);
  }
  for (size_t run = 0; run < starts.size(); ++run) {
    const int64_t start = starts[starts.size() - 1 - run], place = static_cast<int64_t>(run);
    lengths[place].fill_(length[start]);
    from[place].fill_(start);
    to[place].fill_(At(in[0], start));
  }
  return {lengths, from, to};
}

// --- aclnnTransposeKvCacheByBlock

std::vector<Args> BlocksInParts(Source& source, at::ScalarType dtype) {
  const auto layers = [&](int64_t count, at::IntArrayRef sizes) {
    Tensors caches;
    for (int64_t i = 0; i < count; ++i) caches.push_back(source.Random(sizes, dtype));
    return caches;
  };
  return {{layers(2, {5, 3, 4, 16}), layers(2, {5, 3, 4, 16}), at::tensor({3, 0}, at::kLong),
           int64_t{3}, int64_t{4}, int64_t{16}, int64_t{2}, int64_t{2}},
          {layers(1, {4, 2, 6, 16}), layers(1, {4, 2, 6, 16}), at::tensor({1}, at::kLong),
           int64_t{2}, int64_t{6}, int64_t{16}, int64_t{3}, int64_t{1}},
          {layers(1, {2, 1, 1, 32}), layers(1, {3, 1, 1, 32}), at::tensor({1}, at::kLong),
           int64_t{1}, int64_t{1}, int64_t{32}, int64_t{1}, int64_t{1}},
          {layers(1, {2, 3, 2, 16}), layers(1, {2, 3, 2, 16}), at::empty({0}, at::kLong),
           int64_t{3}, int64_t{2}, int64_t{16}, int64_t{2}, int64_t{1}}};
}

Args BlocksHeadByHead(const In& in) {
  const int64_t rows = in.integer(3), heads = in.integer(4), width = in.integer(5);
  const int64_t each = heads / in.integer(6);
  Args results;
  for (int which : {0, 1}) {
    Tensors made;
    for (const Tensor& cache : in.list(which)) {
      made.push_back(cache.clone());
      for (int64_t i = 0; i < in[2].numel(); ++i) {
        const Tensor from = cache[At(in[2], i)].flatten(), to = made.back()[At(in[2], i)].flatten();
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t head = 0; head < heads; ++head) {
            const int64_t part = head / each, place = (part * rows + row) * each + head % each;
            to.narrow(0, (row * heads + head) * width, width)
                .copy_(from.narrow(0, place * width, width));
          }
        }
      }
    }
    results.emplace_back(made);
  }
  return results;
}

// --- aclnnScatterNdUpdateV2

std::vector<Args> RowsByIndex(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](const Tensor& var, const Tensor& indices, at::IntArrayRef updates) {
    for (at::ScalarType index : {at::kInt, at::kLong}) {
      inputs.push_back(
          {var, indices.to(index), source.Random(updates, dtype), var.strides().vec()});
    }
  };
  // The last index leaves the blocks, the one before it is above 0 by its strides only.
  const Tensor pairs =
      at::tensor({0, 1, 5, 3, -1, 3, 2, 0, 0, 1, -1, 9, 7, 0}, at::kLong).reshape({7, 2});
  add(source.Random({6, 8, 5}, dtype).slice(1, 0, 4), pairs, {7, 5});
  add(source.Random({6, 4, 1, 3}, dtype), pairs, {7, 1, 3});
  add(source.Random({9, 3}, dtype), at::tensor({8, 0, -1, 3, 9}, at::kLong).reshape({5, 1}),
      {5, 3});
  add(source.Random({4, 3, 2}, dtype), at::tensor({0, 1, 1, 3, 2, 0}, at::kLong).reshape({2, 1, 3}),
      {2, 1});
  add(source.Random({7}, dtype), at::tensor({3}, at::kLong), {1});
  add(source.Random({5, 2}, dtype), at::empty({0, 1}, at::kLong), {0, 2});
  add(source.Random({0, 2}, dtype), at::zeros({1, 1}, at::kLong), {1, 2});
  return inputs;
}

Tensor RowsOneByOne(const In& in) {
  const int64_t named = in[1].size(-1), rows = in[1].numel() / named;
  const Tensor var = in[0].clone(at::MemoryFormat::Contiguous);
  if (rows == 0 || var.numel() == 0) return var;
  const Tensor updates = in[2].reshape({rows, -1});
  for (int64_t row = 0; row < rows; ++row) {
    int64_t place = 0;
    for (int64_t dim = 0; dim < named; ++dim) {
      place += At(in[1], row * named + dim) * in.ints(3)[dim];
    }
    // Back to an index in each dim, by division. One that leaves a dim is outside.
    Tensor to = var;
    bool inside = place >= 0;
    for (int64_t dim = 0; dim < named && inside; ++dim) {
      const int64_t index = place / in.ints(3)[dim];
      place %= in.ints(3)[dim];
      inside = index < in[0].size(dim);
      if (inside) to = to[index];
    }
    if (inside) to.copy_(updates[row].reshape(to.sizes()));
  }
  return var;
}

// --- aclnnCompressorMetadata

std::vector<Args> Compressions(Source& source, at::ScalarType dtype) {
  const Tensor cosine = source.Random({40, 6}, dtype), sine = source.Random({40, 6}, dtype);
  std::vector<Args> inputs;
  for (int64_t format : {1, 2}) {
    // Request 0 completes two rows, 1 none, 2 is not one, 3 leaves its table, 4 has no block.
    inputs.push_back({cosine, sine, Ints32({0, 5, 7, 9, 30, 36, 36}), Ints32({6, 0, -1, 3, 8, 9}),
                      Ints32({7, 3, 9, 9, 0, 0, 1, 2, 5, -1, 0, 0}).reshape({6, 2}), int64_t{2},
                      format, int64_t{4}, int64_t{5}});
    inputs.push_back({cosine, sine, Ints32({0, 50}), Ints32({0}),
                      Ints32({4, 2147483647, 1}).reshape({1, 3}), int64_t{8}, format, int64_t{2},
                      int64_t{1}});
  }
  return inputs;
}

Args CompressionsRowByRow(const In& in) {
  constexpr int64_t kRows = 9;
  const int64_t block = in.integer(5), format = in.integer(6), ratio = in.integer(7);
  const at::ScalarType dtype = in[0].scalar_type();
  const Tensor cosine = at::ones({kRows, 1, 1, in[0].size(1)}, dtype);
  const Tensor sine = at::zeros(cosine.sizes(), dtype);
  const Tensor slots = at::full(format == 2 ? Ints{kRows, 2} : Ints{kRows}, -1, at::kInt);
  if (format == 2) slots.select(1, 1).fill_(block - 1);
  int64_t row = 0;
  for (int64_t request = 0; request < in.integer(8); ++request) {
    const int64_t start = At(in[3], request);
    if (start < 0) continue;
    const int64_t length = At(in[2], request + 1) - At(in[2], request);
    for (int64_t token = start; token < start + length && row < kRows; ++token) {
      if ((token + 1) % ratio != 0) continue;
      const int64_t position = token / ratio, column = position / block, to = row++;
      if (column >= in[4].size(1) || position * ratio >= in[0].size(0)) continue;
      const int64_t id = At(in[4], request * in[4].size(1) + column), slot = id * block;
      if (id < 0 || (format == 1 && slot + position % block > 2147483647)) continue;
      cosine[to][0][0].copy_(in[0][position * ratio]);
      sine[to][0][0].copy_(in[1][position * ratio]);
      if (format == 1) slots[to].fill_(slot + position % block);
      if (format == 2) slots[to].copy_(at::tensor({id, position % block}, at::kLong));
    }
  }
  return {cosine, sine, slots};
}

}  // namespace

Rows BlockCacheRows() {
  const Dtypes halves = {at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnReshapeAndCacheBnsd",
       [](Source& source, at::ScalarType) {
         return std::vector<Args>{
             HeadsOfSequences(source, {5, 3, 4, 7}, {5, 0, 1, 3}, {2, 3, 4, 5, 6, 19, 0, 9, 8, -1}),
             HeadsOfSequences(source, {2, 1, 4, 32}, {4}, {4, 5, 6, 7}),
             HeadsOfSequences(source, {1, 2, 3, 1}, {1, 1}, {2, 0}),
             HeadsOfSequences(source, {1, 2, 3, 5}, {0, 0}, {-1, -1}),
             HeadsOfSequences(source, {1, 2, 3, 5}, {}, {})};
       },
       {at::kByte},
       HeadsTokenByToken},
      {"aclnnStoreKVBlock", RunsOfRows, {at::kChar, at::kHalf, at::kBFloat16}, RunsRowByRow},
      {"aclnnStoreKvBlockMetadata", SlotsInOrder, {at::kInt}, RunsFromTheEnd},
      {"aclnnTransposeKvCacheByBlock", BlocksInParts, halves, BlocksHeadByHead},
      {"aclnnScatterNdUpdateV2",
       RowsByIndex,
       {at::kFloat, at::kHalf, at::kBFloat16, at::kBool, at::kLong, at::kInt, at::kShort,
        at::kChar},
       RowsOneByOne},
      {"aclnnCompressorMetadata",
       Compressions,
       {at::kFloat, at::kHalf, at::kBFloat16},
       CompressionsRowByRow},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
