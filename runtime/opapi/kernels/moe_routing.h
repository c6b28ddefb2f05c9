// The forms of routing operators, which plain and quantised ones share: their arguments, the places
// of the rows, and the counts of the experts.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "runtime/opapi/kernels/moe_rows.h"

namespace acltape::opapi {

// The first form, (x, rowIdx, expertIdx, activeNum, ..., expandedX, expandedRowIdx,
// expandedExpertIdx): rows are counted choice by choice, as rowIdx says.
class FirstRouting {
 public:
  // `outputs` is the position of expandedX.
  FirstRouting(const Call& call, const Operand& x, int outputs)
      : rows_(call.View(1)), experts_(call.View(2)) {
    ExpectExperts(call, 2, experts_, x);
    call.ExpectSizes(1, rows_, experts_.sizes());
    call.ExpectIndex(1, rows_);
    const int64_t k = experts_.size(1), active = call.Int(3);
    tokens_ = experts_.size(0);
    if (active < 0) call.RejectArg(3, "is negative");
    kept_ = std::min(active, tokens_) * k;
    call.ExpectSizes(outputs, call.Out(outputs), {kept_, x.sizes()[1]});
    where_ = call.Out(outputs + 1);
    sorted_ = call.Out(outputs + 2);
    for (int i : {1, 2}) ExpectVector(call, outputs + i, tokens_ * k);
  }

  // Writes where the rows go. Gives the token of each row that is kept.
  at::Tensor Route() const {
    const at::Tensor flat = experts_.to(at::kLong).flatten(), order = SortedPositions(flat);
    const at::Tensor from = rows_.to(at::kLong).flatten().index_select(0, order);
    sorted_.copy_(flat.index_select(0, order));
    where_.copy_(Inverse(from));
    const at::Tensor kept = from.narrow(0, 0, kept_);
    return kept_ == 0 ? kept : kept.remainder(tokens_);
  }

 private:
  at::Tensor rows_, experts_, where_, sorted_;
  int64_t tokens_ = 0, kept_ = 0;
};

// The second form, (x, expertIdx, ..., activeNum, expertCapacity, expertNum, dropPadMode,
// countOrCumsumFlag, beforeCapacityFlag, ..., expandedX, expandedRowIdx, countOrCumsum?,
// beforeCapacity?).
class SecondRouting {
 public:
  // `numbers` is the position of activeNum, `outputs` that of expandedX.
  SecondRouting(const Call& call, const Operand& x, int numbers, int outputs)
      : experts_(call.View(1)) {
    ExpectExperts(call, 1, experts_, x);
    const int64_t active = call.Int(numbers), pad = call.Int(numbers + 3);
    capacity_ = call.Int(numbers + 1);
    count_ = call.Int(numbers + 2);
    counting_ = call.Int(numbers + 4);
    for (int i : {0, 1, 2}) {
      if (call.Int(numbers + i) < 0) call.RejectArg(numbers + i, "is negative");
    }
    if (pad != 0 && pad != 1) call.RejectArg(numbers + 3, "must be 0 or 1");
    if (counting_ < 0 || counting_ > 2) {
      call.RejectArg(numbers + 4, "must be 0, 1 (sums) or 2 (counts)");
    }
    if (pad == 1 && (count_ == 0 || capacity_ == 0)) {
      call.RejectArg(numbers + (count_ == 0 ? 2 : 1), "is 0, but dropPadMode is 1");
    }
    if (pad == 0 && counting_ != 0 && count_ == 0) {
      call.RejectArg(numbers + 2, "is 0, but counts are asked for");
    }
    padded_ = pad == 1;
    const int64_t rows = experts_.numel(), width = x.sizes()[1];
    places_ = padded_ ? count_ * capacity_ : active > 0 ? std::min(active, rows) : rows;
    call.ExpectSizes(outputs, call.Out(outputs),
                     padded_ ? std::vector<int64_t>{count_, capacity_, width}
                             : std::vector<int64_t>{places_, width});
    where_ = call.Out(outputs + 1);
    ExpectVector(call, outputs + 1, rows);
    const auto counts_out = [&](int i, bool wanted) {
      if (!wanted) return at::Tensor();
      ExpectVector(call, i, count_);
      return call.Out(i);
    };
    sums_ = counts_out(outputs + 2, !padded_ && counting_ != 0);
    wishes_ = counts_out(outputs + 3, padded_ && call.Bool(numbers + 5));
  }

  int64_t experts() const { return count_; }
  int64_t places() const { return places_; }
  // The expert of each flat position.
  at::Tensor ExpertsOfRows() const { return experts_.to(at::kLong).flatten(); }

  // Writes where the rows go, and the counts that are asked for. Gives the flat position that each
  // place has its row from; -1: none.
  at::Tensor Route() const {
    const at::Tensor flat = ExpertsOfRows();
    if (wishes_.defined()) wishes_.copy_(CountTokens(flat, count_));
    if (sums_.defined()) {
      const at::Tensor counts = CountTokens(flat, count_);
      sums_.copy_(counting_ == 1 ? counts.cumsum(0) : counts);
    }
    const RowPlaces places =
        padded_ ? PlacesWithCapacity(flat, count_, capacity_) : PlacesInOrder(flat, places_);
    where_.copy_(places.where);
    return places.from;
  }
  // The rows of `x` at these positions; zeros where there is none.
  at::Tensor RowsAt(const at::Tensor& from, const at::Tensor& x) const {
    return RowsOrZeros(x, from.floor_divide(std::max<int64_t>(experts_.size(1), 1)));
  }

 private:
  at::Tensor experts_, where_, sums_, wishes_;
  int64_t capacity_ = 0, count_ = 0, counting_ = 0, places_ = 0;
  bool padded_ = false;
};

}  // namespace acltape::opapi
