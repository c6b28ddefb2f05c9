// Attention over the blocks of scores that a mask names, against each score on its own in double
// precision; gradients against the library's automatic differentiation of that.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kUnbounded = std::numeric_limits<int32_t>::max();
const Tolerance kBlockwise = {4, 1e-5, false, "float32 and one rounding, against double precision"};
const Tolerance kBlockwiseGradient = {4, 1e-4, false,
                                      "float32 sums over many rows, against double precision"};

struct Problem {
  const char* layout;
  int64_t heads, key_heads, width;
  Ints block;  // empty: not given, so 128 of both
  Ints lengths, key_lengths;
  int64_t rows = 0, key_rows = 0;  // rows of each batch; 0: the sequences are packed
  bool given = true;               // the lengths are arguments
  bool mask_of_rows = false;       // the mask covers all rows, not only the longest sequence

  bool packed() const { return rows == 0; }
  int64_t batch() const { return static_cast<int64_t>(lengths.size()); }
};

// Only in the last problem is a length a multiple of its block.
const std::vector<Problem> kProblems = {
    {"BNSD", 4, 4, 128, {3, 128}, {5, 5}, {130, 130}, 5, 130, false},
    {"BNSD", 4, 2, 128, {8, 128}, {17}, {257}, 17, 257},
    {"BNSD", 2, 1, 128, {7, 128}, {13, 20}, {140, 0}, 20, 300, true, true},
    {"BNSD", 3, 3, 128, {4, 256}, {7, 9}, {100, 130}, 20, 300},
    {"TND", 4, 2, 128, {4, 128}, {5, 0, 9}, {130, 3, 300}},
    {"TND", 2, 2, 128, {}, {131, 2}, {129, 64}},
    {"TND", 6, 1, 128, {2, 128}, {6}, {128}},
    {"BNSD", 4, 2, 64, {16, 128}, {3, 19}, {129, 260}, 19, 260},
    {"TND", 2, 2, 64, {5, 128}, {8, 11}, {40, 129}},
    {"TND", 2, 1, 128, {2, 128}, {3}, {8}},
};

int64_t Longest(const Ints& lengths) { return *std::max_element(lengths.begin(), lengths.end()); }

int64_t Sum(const Ints& lengths) {
  int64_t sum = 0;
  for (int64_t length : lengths) sum += length;
  return sum;
}

Tensor InLayout(Source& source, at::ScalarType dtype, const Problem& p, int64_t heads,
                const Ints& lengths, int64_t rows) {
  if (p.packed()) return source.Random({Sum(lengths), heads, p.width}, dtype);
  return source.Random({p.batch(), heads, rows, p.width}, dtype);
}

Ints BlockOf(const Ints& given) { return given.empty() ? Ints{128, 128} : given; }

// About half of the blocks; the first block of queries of the first head has none.
Tensor BlockMask(Source& source, const Problem& p, at::ScalarType dtype) {
  const Ints block = BlockOf(p.block);
  const int64_t queries = p.mask_of_rows ? p.rows : Longest(p.lengths);
  const int64_t keys = p.mask_of_rows ? p.key_rows : Longest(p.key_lengths);
  const Tensor mask = source
                          .Random({p.batch(), p.heads, (queries + block[0] - 1) / block[0],
                                   (keys + block[1] - 1) / block[1]},
                                  at::kDouble, 0, 1)
                          .gt(0.4);
  mask[0][0][0].fill_(false);
  mask[0][1].fill_(true);
  return mask.to(dtype);
}

// The rows of a head in a sequence: [length, width].
Tensor RowsOf(const Tensor& tensor, bool packed, int64_t sequence, int64_t first, int64_t length,
              int64_t head) {
  return packed ? tensor.slice(0, first, first + length).select(1, head)
                : tensor[sequence][head].slice(0, 0, length);
}

// True for each score whose block does not take part.
Tensor LeftOut(const Tensor& mask, const Ints& block, int64_t queries, int64_t keys) {
  const Tensor left_out = at::zeros({queries, keys}, at::kBool);
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t b = 0; b * block[1] < keys; ++b) {
      const bool takes_part = mask[i / block[0]][b].item<double>() != 0;
      left_out[i].slice(0, b * block[1], (b + 1) * block[1]).fill_(!takes_part);
    }
  }
  return left_out;
}

struct Attended {
  Tensor out, lse;  // in the layout, in double precision
};

struct Meaning {
  Tensor mask;
  Ints block, lengths, key_lengths;
  bool packed;
  double scale;
};

Attended AttendEachHead(const Tensor& query, const Tensor& key, const Tensor& value,
                        const Meaning& m) {
  Attended result = {at::zeros_like(query), at::zeros_like(query.detach().select(-1, 0))};
  const int64_t heads = query.size(1), sharing = heads / key.size(1);
  int64_t first = 0, first_key = 0;
  for (size_t s = 0; s < m.lengths.size(); ++s) {
    const auto sequence = static_cast<int64_t>(s);
    const int64_t queries = m.lengths[s], keys = m.key_lengths[s];
    for (int64_t head = 0; head < heads; ++head) {
      const auto of = [&](const Tensor& t) {
        return RowsOf(t, m.packed, sequence, first, queries, head);
      };
      const auto of_keys = [&](const Tensor& t) {
        return RowsOf(t, m.packed, sequence, first_key, keys, head / sharing);
      };
      const Tensor left_out = LeftOut(m.mask[sequence][head], m.block, queries, keys);
      const Tensor scores = at::matmul(of(query), of_keys(key).t()) * m.scale;
      const Tensor sees_none = left_out.all(-1);
      // A finite number keeps the gradients of rows without scores finite.
      const Tensor weights = at::softmax(scores.masked_fill(left_out, -1e300), -1);
      of(result.out)
          .copy_(at::matmul(weights.masked_fill(sees_none.unsqueeze(-1), 0), of_keys(value)));
      const Tensor masked = scores.detach().masked_fill(left_out, -INFINITY);
      const Tensor lse = RowsOf(result.lse.unsqueeze(-1), m.packed, sequence, first, queries, head);
      if (keys == 0) {
        lse.fill_(-INFINITY);
      } else {
        lse.copy_(at::logsumexp(masked, -1, /*keepdim=*/true));
      }
    }
    first += queries;
    first_key += keys;
  }
  result.lse = result.lse.unsqueeze(-1);
  return result;
}

// The shape and the lengths follow from the mask's position in both directions.
Meaning MeaningOf(const In& in, const Tensor& query, const Tensor& key, int mask, int layout,
                  int scale) {
  const auto lengths = [&](int i, const Tensor& tensor) {
    const Ints& given = in.ints(i);
    return given.empty() ? Ints(tensor.size(0), tensor.size(2)) : given;
  };
  return {in[mask],
          BlockOf(in.ints(mask + 2)),
          lengths(mask + 3, query),
          lengths(mask + 4, key),
          in.text(layout) == std::string("TND"),
          in.real(scale)};
}

double Scale(const Problem& p) { return 1 / std::sqrt(static_cast<double>(p.width)); }

// A mask's dtype; the operators read all of them alike.
at::ScalarType MaskDtype(size_t problem) {
  constexpr at::ScalarType kDtypes[] = {at::kChar, at::kBool, at::kByte};
  return kDtypes[problem % 3];
}

Args Lengths(const Problem& p) {
  if (!p.given) return {Ints{}, Ints{}};
  return {p.lengths, p.key_lengths};
}

// (query, key, value, blockSparseMask, attenMask, blockShape, lengths, keyLengths, blockTable,
// [three scales], layout, keyLayout, keyHeads, maskType, scale, innerPrecise, blockSize, pre, next,
// lseFlag)
Inputs BlockSparse(int version) {
  return [version](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (size_t k = 0; k < kProblems.size(); ++k) {
      const Problem& p = kProblems[k];
      for (const int64_t lse : {1, 0}) {
        const auto keys = [&] {
          return InLayout(source, dtype, p, p.key_heads, p.key_lengths, p.key_rows);
        };
        Args args = {InLayout(source, dtype, p, p.heads, p.lengths, p.rows),
                     keys(),
                     keys(),
                     BlockMask(source, p, MaskDtype(k)),
                     Null{},
                     p.block};
        for (const Arg& lengths : Lengths(p)) args.push_back(lengths);
        for (int i = 0; i < (version == 1 ? 1 : 4); ++i) args.push_back(Null{});
        args.insert(args.end(), {p.layout, p.layout, p.key_heads, int64_t{0}, Scale(p),
                                 dtype == at::kHalf ? lse : int64_t{0}, int64_t{0}, kUnbounded,
                                 kUnbounded, lse});
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

Reference BlockSparseReference(int version) {
  const int layout = version == 1 ? 9 : 12;
  return [layout](const In& in) {
    const auto wide = [&](int i) { return in[i].to(at::kDouble); };
    const Attended result = AttendEachHead(wide(0), wide(1), wide(2),
                                           MeaningOf(in, in[0], in[1], 3, layout, layout + 4));
    return std::make_tuple(result.out.to(in[0].scalar_type()),
                           in.flag(layout + 9) ? result.lse.to(at::kFloat) : Tensor());
  };
}

// (dout, query, key, value, attentionOut, softmaxLse, blockSparseMask, attenMask, blockShape,
// lengths, keyLengths, layout, keyLayout, keyHeads, maskType, scale, pre, next)
Inputs BlockSparseGradients() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (size_t k = 0; k < kProblems.size(); ++k) {
      const Problem& p = kProblems[k];
      if (p.width != 128) continue;
      const Tensor query = InLayout(source, dtype, p, p.heads, p.lengths, p.rows);
      const auto keys = [&] {
        return InLayout(source, dtype, p, p.key_heads, p.key_lengths, p.key_rows);
      };
      const Tensor key = keys(), value = keys(), mask = BlockMask(source, p, MaskDtype(k));
      const Attended forward =
          AttendEachHead(query.to(at::kDouble), key.to(at::kDouble), value.to(at::kDouble),
                         {mask, BlockOf(p.block), p.lengths, p.key_lengths, p.packed(), Scale(p)});
      Args args = {
          source.Random(query.sizes(), dtype), query, key,    value,  forward.out.to(dtype),
          forward.lse.to(at::kFloat),          mask,  Null{}, p.block};
      for (const Arg& lengths : Lengths(p)) args.push_back(lengths);
      args.insert(args.end(),
                  {p.layout, p.layout, p.key_heads, int64_t{0}, Scale(p), kUnbounded, kUnbounded});
      inputs.push_back(args);
    }
    return inputs;
  };
}

std::tuple<Tensor, Tensor, Tensor> GradientReference(const In& in) {
  const at::AutoGradMode enabled(true);
  const auto leaf = [&](int i) { return in[i].to(at::kDouble).detach().requires_grad_(); };
  const Tensor query = leaf(1), key = leaf(2), value = leaf(3);
  AttendEachHead(query, key, value, MeaningOf(in, query, key, 6, 11, 15))
      .out.backward(in[0].to(at::kDouble));
  const auto gradient = [&](const Tensor& of) { return of.grad().to(in[1].scalar_type()); };
  return {gradient(query), gradient(key), gradient(value)};
}

}  // namespace

Rows BlockSparseRows() {
  const Dtypes dtypes = {at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnBlockSparseAttention", BlockSparse(1), dtypes, BlockSparseReference(1), kBlockwise},
      {"aclnnBlockSparseAttentionV2", BlockSparse(2), dtypes, BlockSparseReference(2), kBlockwise},
      {"aclnnBlockSparseAttentionGrad", BlockSparseGradients(), dtypes, GradientReference,
       kBlockwiseGradient},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
