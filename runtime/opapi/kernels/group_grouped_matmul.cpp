// Products of tokens with the experts of a group's ranks, which exchange the tokens before them or
// the results after them. The host knows how many go where. A product is computed in float32 and
// rounded once.
#include <ATen/ATen.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/group_kernel.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Rows of tokens, which lie by rank and then by expert, or by expert and then by rank.
struct RowCounts {
  std::vector<int64_t> each;  // by rank, then by expert of a rank
  int64_t ranks, experts;

  int64_t Of(int64_t rank, int64_t expert) const { return each[rank * experts + expert]; }
  int64_t all() const { return std::accumulate(each.begin(), each.end(), int64_t{0}); }
  std::vector<int64_t> ByRank() const {
    std::vector<int64_t> counts;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto first = each.begin() + rank * experts;
      counts.push_back(std::accumulate(first, first + experts, int64_t{0}));
    }
    return counts;
  }
  // For each row by expert, its place among the rows by rank.
  Tensor Places() const {
    std::vector<Tensor> places = {at::empty({0}, at::kLong)};
    for (int64_t expert = 0; expert < experts; ++expert) {
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const auto end = each.begin() + rank * experts + expert;
        const int64_t begin = std::accumulate(each.begin(), end, int64_t{0});
        places.push_back(at::arange(begin, begin + *end, at::kLong));
      }
    }
    return at::cat(places);
  }
};

// (gmmX, gmmWeight, sendCountsTensor?, recvCountsTensor?, mmX?, mmWeight?, group, [commMode,]
// epWorldSize, sendCounts, recvCounts, transGmmWeight, transMmWeight, ...).
struct GroupedProduct {
  Tensor x, weight;                // [rows, inner], [experts, inner, columns]
  Tensor shared_x, shared_weight;  // factors of an expert that each rank has; may be undefined
  RowCounts send, receive;

  int64_t columns() const { return weight.size(2); }

  // Rows by expert, each with the matrix of its expert.
  Tensor Multiply(const Tensor& rows, const RowCounts& counts) const {
    const Tensor product = at::empty({rows.size(0), columns()}, x.options());
    int64_t begin = 0;
    for (int64_t expert = 0; expert < counts.experts; ++expert) {
      int64_t count = 0;
      for (int64_t rank = 0; rank < counts.ranks; ++rank) count += counts.Of(rank, expert);
      product.narrow(0, begin, count)
          .copy_(at::matmul(rows.narrow(0, begin, count).to(at::kFloat),
                            weight[expert].to(at::kFloat)));
      begin += count;
    }
    return product;
  }
  void WriteShared(const Tensor& out) const {
    if (!out.defined()) return;
    out.copy_(at::matmul(shared_x.to(at::kFloat), shared_weight.to(at::kFloat)));
  }
};

RowCounts ReadCounts(const Call& call, int i, int64_t ranks, int64_t experts) {
  RowCounts counts{call.Ints(i), ranks, experts};
  if (static_cast<int64_t>(counts.each.size()) != ranks * experts) {
    call.RejectArg(i, "has " + std::to_string(counts.each.size()) + " elements, expected " +
                          std::to_string(ranks * experts) + ": " + std::to_string(experts) +
                          " experts on each of " + std::to_string(ranks) + " ranks");
  }
  for (const int64_t count : counts.each) {
    if (count < 0) call.RejectArg(i, "has a negative count");
  }
  return counts;
}

// `size` is the position of epWorldSize.
GroupedProduct ReadGroupedProduct(const Call& call, int size, const Group& group) {
  for (int i : {2, 3}) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given, which no device takes yet");
  }
  const int64_t ranks = group.ranks();
  if (call.Int(size) != ranks) {
    call.RejectArg(size, "is " + std::to_string(call.Int(size)) + ", and the group has " +
                             std::to_string(ranks) + " ranks");
  }
  GroupedProduct product{call.View(0), call.View(1), {}, {}, {}, {}};
  ExpectDtypes(call, 0, product.x, {at::kHalf, at::kBFloat16});
  ExpectDtypes(call, 1, product.weight, {product.x.scalar_type()});
  call.ExpectRank(0, product.x, 2);
  call.ExpectRank(1, product.weight, 3);
  if (call.Bool(size + 3)) product.weight = product.weight.transpose(1, 2);
  if (product.x.size(1) != product.weight.size(1)) {
    call.RejectCall("gmmX has rows of " + std::to_string(product.x.size(1)) +
                    ", and matrices of gmmWeight take " + std::to_string(product.weight.size(1)));
  }
  const int64_t experts = product.weight.size(0);
  product.send = ReadCounts(call, size + 1, ranks, experts);
  product.receive = ReadCounts(call, size + 2, ranks, experts);
  if (product.x.size(0) != product.send.all()) {
    call.RejectArg(0, "has " + std::to_string(product.x.size(0)) + " rows, and sendCounts count " +
                          std::to_string(product.send.all()));
  }
  if (call.IsAbsent(4) != call.IsAbsent(5)) {
    call.RejectArg(call.IsAbsent(4) ? 4 : 5, "is absent, and the other factor is not");
  }
  if (call.IsAbsent(4)) return product;
  product.shared_x = call.View(4);
  product.shared_weight = call.View(5);
  for (int i : {4, 5}) {
    ExpectDtypes(call, i, call.View(i), {product.x.scalar_type()});
    call.ExpectRank(i, call.View(i), 2);
  }
  if (call.Bool(size + 4)) product.shared_weight = product.shared_weight.t();
  if (product.shared_x.size(1) != product.shared_weight.size(0)) {
    call.RejectCall("mmX and mmWeight do not multiply");
  }
  return product;
}

Tensor ReadRows(const Call& call, int i, const GroupedProduct& product, at::IntArrayRef sizes) {
  const Tensor out = call.Out(i);
  ExpectDtypes(call, i, out, {product.x.scalar_type()});
  call.ExpectSizes(i, out, sizes);
  return out;
}

// The result of the expert that each rank has; undefined where there is none.
Tensor ReadShared(const Call& call, int i, const GroupedProduct& product) {
  if (!product.shared_x.defined()) return {};
  return ReadRows(call, i, product, {product.shared_x.size(0), product.shared_weight.size(1)});
}

struct RowsRun {
  std::unique_ptr<RowExchange> exchange;
  Tensor out, in;
};

// Begins the exchange of rows that lie by rank.
SoftExchange Exchange(const GroupedProduct& product, const Tensor& rows, RowsRun* run) {
  run->out = rows.contiguous();
  run->in = at::empty({product.receive.all(), rows.size(1)}, rows.options());
  run->exchange = std::make_unique<RowExchange>(product.send.ByRank(), product.receive.ByRank(),
                                                rows.size(1) * rows.element_size());
  return run->exchange->Of(run->out, run->in);
}

// (..., permuteOutFlag, gmmY, mmY?, permuteOut?): the tokens that come are multiplied, and given as
// permuteOut too.
std::unique_ptr<Kernel> BindAllToAllGrouped(const Call& call, int size) {
  Group group(call, 6);
  const GroupedProduct product = ReadGroupedProduct(call, size, group);
  const int64_t rows = product.receive.all();
  const Tensor out = ReadRows(call, size + 6, product, {rows, product.columns()});
  const Tensor shared = ReadShared(call, size + 7, product);
  Tensor came;
  if (!call.IsAbsent(size + 8)) {
    came = ReadRows(call, size + 8, product, {rows, product.x.size(1)});
  } else if (call.Bool(size + 5) && rows > 0) {
    call.RejectArg(size + 8, "is absent, and permuteOutFlag asks for it");
  }
  const auto run = std::make_shared<RowsRun>();
  return MakeGroupKernel(
      std::move(group), [product, run] { return Exchange(product, product.x, run.get()); },
      [=] {
        const Tensor by_expert = run->in.index_select(0, product.receive.Places());
        out.copy_(product.Multiply(by_expert, product.receive));
        if (came.defined()) came.copy_(by_expert);
        product.WriteShared(shared);
        *run = RowsRun();
      });
}

// (..., y, mmY?): the tokens are multiplied, and the results go.
std::unique_ptr<Kernel> BindGroupedAllToAll(const Call& call, int size) {
  Group group(call, 6);
  const GroupedProduct product = ReadGroupedProduct(call, size, group);
  const Tensor out = ReadRows(call, size + 5, product, {product.receive.all(), product.columns()});
  const Tensor shared = ReadShared(call, size + 6, product);
  const auto run = std::make_shared<RowsRun>();
  const auto before = [product, run] {
    const Tensor by_expert = product.Multiply(product.x, product.send);
    const Tensor by_rank = at::empty_like(by_expert);
    by_rank.index_copy_(0, product.send.Places(), by_expert);
    return Exchange(product, by_rank, run.get());
  };
  return MakeGroupKernel(std::move(group), before, [=] {
    out.copy_(run->in);
    product.WriteShared(shared);
    *run = RowsRun();
  });
}

}  // namespace

KernelRows GroupGroupedMatmulRows() {
  constexpr Widen kNever = Widen::kNever;
  return {
      {"aclnnAlltoAllvGroupedMatMul",
       [](const Call& call) { return BindAllToAllGrouped(call, 7); }},
      {"aclnnAlltoAllvGroupedMatMulV2",
       [](const Call& call) { return BindAllToAllGrouped(call, 8); },
       kNever,
       {7}},
      {"aclnnGroupedMatMulAlltoAllv",
       [](const Call& call) { return BindGroupedAllToAll(call, 7); }},
      {"aclnnGroupedMatMulAlltoAllvV2",
       [](const Call& call) { return BindGroupedAllToAll(call, 8); },
       kNever,
       {7}},
  };
}

}  // namespace acltape::opapi
