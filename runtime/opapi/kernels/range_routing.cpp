#include "runtime/opapi/kernels/range_routing.h"

#include <string>

#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/moe_rows.h"
#include "runtime/opapi/kernels/quantize.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int kScaleIn = 2, kOffsetIn = 3, kActiveRows = 4, kCapacity = 5, kExpertNumber = 6,
              kDropPad = 7;
constexpr int kCountType = 8, kCountFlag = 9, kQuantMode = 10, kExpertRange = 11, kIndexType = 12;
constexpr int kExpandedOut = 13, kWhereOut = 14, kCountsOut = 15, kScalesOut = 16;

// The numbers of tokens come in one of three ways: as running sums, as plain numbers, or as pairs
// of an expert and its number, for experts that have tokens.
enum class TokenCounts : int64_t { kSums, kNumbers, kPairs };

Tensor CountsAs(TokenCounts form, const Tensor& counts, int64_t first, const Tensor& model) {
  if (form == TokenCounts::kSums) return counts.cumsum(0);
  if (form == TokenCounts::kNumbers) return counts;
  const Tensor some = counts.nonzero().flatten();
  const Tensor pairs = at::zeros(model.sizes(), at::TensorOptions(at::kLong));
  pairs.narrow(0, 0, some.numel())
      .copy_(at::stack({some + first, counts.index_select(0, some)}, 1));
  return pairs;
}

// Where the rows go, and how many each expert of the range has.
class RangeRouting {
 public:
  RangeRouting(const Call& call, const Operand& x) : experts_(call.View(1)) {
    ExpectExperts(call, 1, experts_, x);
    ReadNumbers(call);
    ReadRange(call);
    const int64_t active = call.Int(kActiveRows), rows = experts_.numel(), width = x.sizes()[1];
    places_ = capacity_ > 0 ? count_ * capacity_ : active > 0 ? std::min(active, rows) : rows;
    call.ExpectSizes(kExpandedOut, call.Out(kExpandedOut),
                     capacity_ > 0 ? std::vector<int64_t>{count_, capacity_, width}
                                   : std::vector<int64_t>{places_, width});
    where_ = call.Out(kWhereOut);
    ExpectVector(call, kWhereOut, rows);
    if (!call.Bool(kCountFlag)) return;
    counts_ = call.Out(kCountsOut);
    call.ExpectSizes(kCountsOut, counts_,
                     form_ == TokenCounts::kPairs ? std::vector<int64_t>{count_, 2}
                                                  : std::vector<int64_t>{last_ - first_});
  }

  int64_t tokens() const { return experts_.size(0); }
  int64_t places() const { return places_; }
  int64_t chosen() const { return last_ - first_; }

  // Writes where the rows go, and the counts that are asked for. Gives the flat position that each
  // place has its row from; -1: none.
  Tensor Route() const {
    const Tensor flat = experts_.to(at::kLong).flatten();
    const Tensor outside = flat.lt(first_).logical_or(flat.ge(last_));
    if (counts_.defined()) {
      const Tensor mine = flat.masked_select(outside.logical_not()) - first_;
      counts_.copy_(CountsAs(form_, CountTokens(mine, chosen()), first_, counts_));
    }
    const Tensor known = flat.masked_fill(outside, count_);
    const auto routed = outside.numel() - outside.sum().item<int64_t>();
    return capacity_ > 0 ? WithCapacity(known) : InOrder(known, routed);
  }
  // The rows of `table`, one for each token, at the places; zeros where there is none.
  Tensor RowsAt(const Tensor& from, const Tensor& table) const {
    return RowsOrZeros(table, from.floor_divide(std::max<int64_t>(experts_.size(1), 1)));
  }
  // The expert of each place, counted from the first of the range; 0 where there is no row.
  Tensor ExpertsAt(const Tensor& from) const {
    const Tensor flat = experts_.to(at::kLong).flatten().unsqueeze(1);
    return (RowsOrZeros(flat, from).flatten() - first_).masked_fill(from.lt(0), 0);
  }

 private:
  void ReadNumbers(const Call& call) {
    const int64_t pad = call.Int(kDropPad), type = call.Int(kCountType);
    const int64_t index_type = call.Int(kIndexType);
    if (pad != 0 && pad != 1) call.RejectArg(kDropPad, "must be 0 or 1");
    if (type < 0 || type > 2)
      call.RejectArg(kCountType, "must be 0 (sums), 1 (counts) or 2 (pairs)");
    if (index_type != 0 && index_type != 1) call.RejectArg(kIndexType, "must be 0 or 1");
    if (call.Int(kActiveRows) < -1) call.RejectArg(kActiveRows, "is less than -1");
    form_ = static_cast<TokenCounts>(type);
    scatter_ = index_type == 1;
    count_ = call.Int(kExpertNumber);
    const int64_t most = form_ == TokenCounts::kPairs ? 5120 : 10240;
    if (count_ < 1 || count_ > most) {
      call.RejectArg(kExpertNumber, "must be between 1 and " + std::to_string(most));
    }
    if (pad == 0) return;
    capacity_ = call.Int(kCapacity);
    if (capacity_ < 1 || capacity_ > tokens()) {
      call.RejectArg(kCapacity, "must be between 1 and the number of tokens");
    }
    if (scatter_) call.RejectArg(kIndexType, "must be 0 where dropPadMode is 1");
    if (form_ != TokenCounts::kNumbers && call.Bool(kCountFlag)) {
      call.RejectArg(kCountType, "must be 1 where dropPadMode is 1");
    }
  }

  void ReadRange(const Call& call) {
    std::vector<int64_t> range = call.Ints(kExpertRange);
    if (range.empty()) range = {0, count_};
    if (range.size() != 2 || range[0] < 0 || range[1] > count_ || range[0] >= range[1]) {
      call.RejectArg(kExpertRange, "must be a range of experts");
    }
    first_ = range[0];
    last_ = range[1];
    if (capacity_ > 0 && chosen() != count_) {
      call.RejectArg(kExpertRange, "must hold all experts where dropPadMode is 1");
    }
  }

  // The first `routed` rows in the order of their experts; those that are left out come last.
  Tensor InOrder(const Tensor& known, int64_t routed) const {
    const Tensor order = SortedPositions(known), first = order.narrow(0, 0, routed);
    const Tensor to = at::full({known.numel()}, -1, at::TensorOptions(at::kLong));
    if (scatter_) {
      to.narrow(0, 0, routed).copy_(first);
    } else {
      to.scatter_(0, first, at::arange(routed));
    }
    where_.copy_(to);
    const Tensor from = at::full({places_}, -1, at::TensorOptions(at::kLong));
    const int64_t kept = std::min(routed, places_);
    from.narrow(0, 0, kept).copy_(order.narrow(0, 0, kept));
    return from;
  }

  // Rows that are left out count as those of one more expert, whose places are not used.
  Tensor WithCapacity(const Tensor& known) const {
    const RowPlaces all = PlacesWithCapacity(known, count_ + 1, capacity_);
    where_.copy_(all.where.masked_fill(all.where.ge(places_), -1));
    return all.from.narrow(0, 0, places_);
  }

  Tensor experts_, where_, counts_;
  TokenCounts form_ = TokenCounts::kSums;
  bool scatter_ = false;
  int64_t count_ = 0, first_ = 0, last_ = 0, places_ = 0;
  int64_t capacity_ = 0;  // 0: the rows of an expert are as many as it gets
};

// The rows are copied, and so are their scales.
std::unique_ptr<Kernel> BindPlainRouting(const Call& call, const Operand& x,
                                         const RangeRouting& routing) {
  const Tensor given = x.view();
  ExpectDtypes(call, 0, given, {at::kFloat, at::kHalf, at::kBFloat16, at::kChar});
  if (!call.IsAbsent(kOffsetIn)) call.RejectArg(kOffsetIn, "is given, but quantMode is -1");
  Tensor scale;
  if (!call.IsAbsent(kScaleIn)) {
    scale = call.View(kScaleIn);
    call.ExpectSizes(kScaleIn, scale, {routing.tokens()});
  }
  const Tensor out = call.Out(kExpandedOut), scales = call.OptionalOut(kScalesOut);
  ExpectDtypes(call, kExpandedOut, out, {given.scalar_type()});
  if (scales.defined()) call.ExpectSizes(kScalesOut, scales, {routing.places()});
  return MakeKernel([=] {
    const Tensor from = routing.Route();
    out.copy_(routing.RowsAt(from, given).view(out.sizes()));
    if (!scales.defined()) return;
    // Without scales the result means nothing; zeros make it the same in each run.
    const Tensor none = at::zeros({routing.places()}, scales.options());
    scales.copy_(scale.defined() ? routing.RowsAt(from, scale.unsqueeze(1)).flatten() : none);
  });
}

// All rows have one scale and one offset.
std::unique_ptr<Kernel> BindStaticRouting(const Call& call, const Operand& x,
                                          const RangeRouting& routing) {
  for (const int i : {kScaleIn, kOffsetIn}) {
    if (call.IsAbsent(i)) call.RejectArg(i, "is absent, but quantMode is 0");
    ExpectDtypes(call, i, call.View(i), {at::kFloat});
    call.ExpectSizes(i, call.View(i), {1});
  }
  const Tensor scale = call.View(kScaleIn), offset = call.View(kOffsetIn),
               out = call.Out(kExpandedOut);
  const Tensor scales = call.OptionalOut(kScalesOut);
  return MakeKernel([=] {
    const Tensor from = routing.Route();
    const Tensor each = routing.RowsAt(from, x.view().to(at::kFloat)) * scale + offset;
    const Tensor bytes = each.round().clamp(-128, 127).masked_fill(from.lt(0).unsqueeze(1), 0);
    out.copy_(bytes.view(out.sizes()));
    if (scales.defined()) Tensor(scales).zero_();
  });
}

// Each row has a scale of its own, after the factors of its expert, if there are any.
std::unique_ptr<Kernel> BindDynamicRouting(const Call& call, const Operand& x,
                                           const RangeRouting& routing) {
  const int64_t width = x.sizes()[1];
  if (width == 0) call.RejectArg(0, "has rows without elements");
  if (!call.IsAbsent(kOffsetIn)) call.RejectArg(kOffsetIn, "is given, but quantMode is 1");
  Tensor factors;
  if (!call.IsAbsent(kScaleIn)) {
    factors = call.View(kScaleIn);
    ExpectDtypes(call, kScaleIn, factors, {at::kFloat});
    call.ExpectSizes(kScaleIn, factors, {routing.chosen(), width});
  }
  const Tensor out = call.Out(kExpandedOut), scales = call.OptionalOut(kScalesOut);
  if (scales.defined()) {
    ExpectDtypes(call, kScalesOut, scales, {at::kFloat});
    call.ExpectSizes(kScalesOut, scales, {routing.places()});
  }
  return MakeKernel([=] {
    const Tensor from = routing.Route();
    Tensor each = routing.RowsAt(from, x.view().to(at::kFloat));
    if (factors.defined()) each = each * factors.index_select(0, routing.ExpertsAt(from));
    const ScaledRows rows = ScaleRows(each);
    out.copy_(rows.values.view(out.sizes()));
    if (scales.defined()) scales.copy_(rows.scale);
  });
}

}  // namespace

std::unique_ptr<Kernel> BindRangeRouting(const Call& call) {
  const Operand x = call.In(0);
  const RangeRouting routing(call, x);
  const int64_t mode = call.Int(kQuantMode);
  if (mode == -1) return BindPlainRouting(call, x, routing);
  if (mode != 0 && mode != 1) {
    call.RejectArg(kQuantMode, "must be -1 (none), 0 (static) or 1 (dynamic)");
  }
  ExpectDtypes(call, 0, x.view(), {at::kFloat, at::kHalf, at::kBFloat16});
  ExpectInt8(call, kExpandedOut, call.Out(kExpandedOut));
  return mode == 0 ? BindStaticRouting(call, x, routing) : BindDynamicRouting(call, x, routing);
}

}  // namespace acltape::opapi
