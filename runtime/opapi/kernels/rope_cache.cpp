// Rotary positions of queries and keys, whose cosines and sines lie in a cache by position. Half
// and bfloat16 are computed in float32 and rounded once.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/whole.h"
#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Sections = std::vector<int64_t>;

// Says which columns of the cosines belong to which row of the positions (time, height, width, ...)
// where a token has several of them.
struct PositionSections {
  Sections sections;   // empty: a token has one position
  bool mixed = false;  // the rows take turns column by column

  // The row of the positions that each of `count` columns belongs to.
  Tensor Rows(int64_t count) const {
    std::vector<int64_t> rows(count, 0);
    int64_t column = 0;
    if (!mixed) {
      for (size_t row = 0; row < sections.size(); ++row) {
        for (int64_t i = 0; i < sections[row]; ++i) rows[column++] = static_cast<int64_t>(row);
      }
      return at::tensor(rows, at::kLong);
    }
    for (; column < std::min(count, 3 * sections[1]); ++column) rows[column] = column % 3;
    return at::tensor(rows, at::kLong);
  }
};

PositionSections ReadSections(const Call& call, const std::vector<Sections>& known,
                              int64_t rotary) {
  PositionSections result;
  const Sections given = call.Ints(4);
  // A first section of 0 says "none": torch_npu passes [0, 0, 0] where there is one position.
  if (given.empty() || given[0] == 0) return result;
  if (std::find(known.begin(), known.end(), given) == known.end()) {
    call.RejectArg(4, "is " + SizesText(given) + ", which the operator does not take");
  }
  int64_t columns = 0;
  for (int64_t section : given) columns += section;
  if (2 * columns != rotary) {
    call.RejectArg(4, "has a sum that is not half of the " + std::to_string(rotary) +
                          " columns of cosSinCache");
  }
  result.sections = given;
  return result;
}

// [tokens, heads * width] as [tokens, heads, width].
Tensor ReadHeadsToTurn(const Call& call, int i, int64_t head_size) {
  const Tensor tensor = call.View(i);
  call.ExpectRank(i, tensor, 2);
  if (tensor.numel() == 0) call.RejectArg(i, "is empty");
  ExpectDtypes(call, i, tensor, {at::kFloat, at::kHalf, at::kBFloat16});
  if (tensor.scalar_type() != call.View(1).scalar_type()) {
    call.RejectArg(i, "has another dtype than queryIn");
  }
  if (tensor.size(1) % head_size != 0) {
    call.RejectArg(i, "does not split into heads of " + std::to_string(head_size) + " columns");
  }
  return tensor.unflatten(1, {tensor.size(1) / head_size, head_size});
}

// `x` [tokens, heads, width] with its first columns turned by the angles [tokens, 1, columns / 2].
Tensor TurnedColumns(const Tensor& x, const Tensor& cosine, const Tensor& sine, bool halves) {
  const Tensor wide = x.to(at::kFloat);
  const int64_t half = cosine.size(-1);
  const Tensor turned = wide.narrow(-1, 0, 2 * half);
  const Tensor first = halves ? turned.narrow(-1, 0, half) : turned.slice(-1, 0, 2 * half, 2);
  const Tensor second = halves ? turned.narrow(-1, half, half) : turned.slice(-1, 1, 2 * half, 2);
  const Tensor a = first * cosine - second * sine, b = second * cosine + first * sine;
  const Tensor result = halves ? at::cat({a, b}, -1) : at::stack({a, b}, -1).flatten(-2);
  return at::cat({result, wide.narrow(-1, 2 * half, wide.size(-1) - 2 * half)}, -1);
}

// (positions, queryIn, keyIn, cosSinCache, mropeSection?, headSize, isNeoxStyle, [cacheMode,]
// queryOut, keyOut)
std::unique_ptr<Kernel> BindRopeWithCache(const Call& call, const std::vector<Sections>& known,
                                          bool has_mode) {
  const int64_t head_size = call.Int(5);
  const Tensor positions = call.View(0), cache = call.View(3);
  const int64_t multiple = call.View(1).scalar_type() == at::kFloat ? 16 : 32;
  if (head_size < 1 || head_size % multiple != 0) {
    call.RejectArg(5, "must be a multiple of " + std::to_string(multiple));
  }
  const Tensor query = ReadHeadsToTurn(call, 1, head_size),
               key = ReadHeadsToTurn(call, 2, head_size);
  const int64_t tokens = query.size(0);
  if (key.size(0) != tokens) call.RejectArg(2, "has other rows than queryIn");

  call.ExpectRank(3, cache, 2);
  if (cache.numel() == 0) call.RejectArg(3, "is empty");
  if (cache.scalar_type() != query.scalar_type()) {
    call.RejectArg(3, "has another dtype than queryIn");
  }
  const int64_t rotary = cache.size(1);
  if (rotary > head_size || rotary % multiple != 0) {
    call.RejectArg(
        3, "must have a multiple of " + std::to_string(multiple) + " columns, at most headSize");
  }

  PositionSections sections = ReadSections(call, known, rotary);
  if (has_mode) {
    const int64_t mode = call.Int(7);
    if (mode != 0 && mode != 1)
      call.RejectArg(7, "must be 0 (one after the other) or 1 (in turns)");
    sections.mixed = mode == 1 && !sections.sections.empty();
    if (sections.mixed && sections.sections.size() != 3) {
      call.RejectArg(7, "must be 0 where mropeSection has 4 elements");
    }
  }
  ExpectDtypes(call, 0, positions, {at::kLong});
  if (sections.sections.empty()) {
    call.ExpectSizes(0, positions, {tokens});
  } else {
    call.ExpectSizes(0, positions, {static_cast<int64_t>(sections.sections.size()), tokens});
  }

  const int out = has_mode ? 8 : 7;
  const Tensor query_out = call.Out(out), key_out = call.Out(out + 1);
  for (int i : {0, 1}) {
    const Tensor& written = i == 0 ? query_out : key_out;
    call.ExpectSizes(out + i, written, call.View(1 + i).sizes());
    if (written.scalar_type() != query.scalar_type()) {
      call.RejectArg(out + i, "has another dtype than queryIn");
    }
  }
  const bool halves = call.Bool(6);
  return MakeKernel([=] {
    const Tensor places = Within(positions, cache.size(0), "positions");
    const Tensor angles =
        cache.to(at::kFloat).index_select(0, places.flatten()).view({-1, tokens, rotary});
    Tensor cosine = angles.narrow(-1, 0, rotary / 2),
           sine = angles.narrow(-1, rotary / 2, rotary / 2);
    if (!sections.sections.empty()) {
      const Tensor rows = sections.Rows(rotary / 2).view({1, 1, -1}).expand({1, tokens, -1});
      cosine = cosine.gather(0, rows);
      sine = sine.gather(0, rows);
    }
    cosine = cosine.squeeze(0).unsqueeze(1);
    sine = sine.squeeze(0).unsqueeze(1);
    const Tensor new_query = TurnedColumns(query, cosine, sine, halves);
    const Tensor new_key = TurnedColumns(key, cosine, sine, halves);
    query_out.copy_(new_query.flatten(1));
    key_out.copy_(new_key.flatten(1));
  });
}

}  // namespace

KernelRows RopeCacheRows() {
  const std::vector<Sections> first = {{16, 24, 24}, {24, 20, 20}, {8, 12, 12}, {16, 16, 16, 16}};
  std::vector<Sections> second = first;
  second.push_back({11, 11, 10});
  return {
      {"aclnnRopeWithSinCosCache",
       [first](const Call& call) { return BindRopeWithCache(call, first, /*has_mode=*/false); }},
      {"aclnnRopeWithSinCosCacheV2",
       [second](const Call& call) { return BindRopeWithCache(call, second, /*has_mode=*/true); }},
  };
}

}  // namespace acltape::opapi
