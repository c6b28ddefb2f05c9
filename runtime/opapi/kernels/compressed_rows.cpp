// Compression of keys and values for native sparse attention: each window of rows becomes one row,
// the sum of its rows times their weights. Computed in float32 and rounded once at the end.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/table_rows.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Sums = std::vector<int64_t>;

// Windows of `size` rows, each `stride` rows after the one before.
struct Windows {
  int64_t size = 0, stride = 0;

  int64_t Count(int64_t rows) const { return rows < size ? 0 : (rows - size) / stride + 1; }
};

struct WindowLimits {
  int64_t size, stride, heads, width;
};

// (size of a window, stride) at `i` and `i` + 1.
Windows ReadWindows(const Call& call, int i, const WindowLimits& limits) {
  const Windows windows{call.Int(i), call.Int(i + 1)};
  const auto expect = [&](int position, int64_t value, int64_t most) {
    if (value < 16 || value % 16 != 0 || value > most) {
      call.RejectArg(position, "must be a multiple of 16, at most " + std::to_string(most));
    }
  };
  expect(i, windows.size, limits.size);
  expect(i + 1, windows.stride, limits.stride);
  if (windows.stride > windows.size) call.RejectArg(i + 1, "is above compressBlockSize");
  return windows;
}

// Checks that the rows' last dims are heads and columns, and that each row of a window has a weight
// for each head.
void ExpectCompressible(const Call& call, int input_index, int weight_index, const Windows& windows,
                        const WindowLimits& limits) {
  const Tensor input = call.View(input_index), weight = call.View(weight_index);
  if (input.numel() == 0) call.RejectArg(input_index, "is empty");
  ExpectDtypes(call, input_index, input, {at::kHalf, at::kBFloat16});
  ExpectDtypes(call, weight_index, weight, {input.scalar_type()});
  const int64_t heads = input.size(-2), width = input.size(-1);
  if (heads > limits.heads) {
    call.RejectArg(input_index, "has more than " + std::to_string(limits.heads) + " heads");
  }
  if (width % 16 != 0 || width > limits.width) {
    call.RejectArg(input_index, "must have a width that is a multiple of 16, at most " +
                                    std::to_string(limits.width));
  }
  call.ExpectSizes(weight_index, weight, {windows.size, heads});
}

// The ends of the sequences of `rows` rows, the last of which is the end of all.
Sums ReadSequenceEnds(const Call& call, int i, int64_t rows) {
  const Sums ends = call.Ints(i);
  if (ends.empty()) call.RejectArg(i, "is absent");
  if (ends.front() < 0 || !std::is_sorted(ends.begin(), ends.end())) {
    call.RejectArg(i, "is not ascending");
  }
  if (ends.back() != rows) {
    call.RejectArg(i, "does not end with the " + std::to_string(rows) + " rows of input");
  }
  return ends;
}

void ExpectPackedRows(const Call& call, int layout_index, int type_index) {
  if (call.Text(layout_index) != "TND") call.RejectArg(layout_index, "must be \"TND\"");
  if (call.Int(type_index) != 0) call.RejectArg(type_index, "must be 0 (ends of the sequences)");
}

constexpr WindowLimits kOfTraining = {128, 128, 128, 256};
constexpr WindowLimits kOfCache = {64, 64, 64, 256};

// The windows of [rows, heads, width]: [windows, heads, width].
Tensor Compressed(const Tensor& rows, const Tensor& weight, const Windows& windows) {
  const Tensor unfolded = rows.to(at::kFloat).unfold(0, windows.size, windows.stride);
  return (unfolded * weight.to(at::kFloat).t().unsqueeze(1)).sum(-1);
}

// (input [rows, heads, width], weight [window, heads], actSeqLen, layout, compressBlockSize,
// compressStride, actSeqLenType, output [windows, heads, width])
std::unique_ptr<Kernel> BindCompress(const Call& call) {
  const Tensor input = call.View(0), weight = call.View(1), out = call.Out(7);
  call.ExpectRank(0, input, 3);
  ExpectPackedRows(call, 3, 6);
  const Windows windows = ReadWindows(call, 4, kOfTraining);
  ExpectCompressible(call, 0, 1, windows, kOfTraining);
  const Sums ends = ReadSequenceEnds(call, 2, input.size(0));
  int64_t count = 0, first = 0;
  for (int64_t end : ends) {
    count += windows.Count(end - first);
    first = end;
  }
  call.ExpectSizes(7, out, {count, input.size(1), input.size(2)});
  ExpectDtypes(call, 7, out, {input.scalar_type()});
  return MakeKernel([=] {
    int64_t first = 0, window = 0;
    for (int64_t end : ends) {
      if (const int64_t count = windows.Count(end - first); count > 0) {
        out.narrow(0, window, count).copy_(Compressed(input.slice(0, first, end), weight, windows));
        window += count;
      }
      first = end;
    }
  });
}

// (outputGrad, input, weight, actSeqLen, compressBlockSize, compressStride, actSeqLenType, layout,
// inputGrad, weightGrad). The ends of the sequences follow a 0 here.
std::unique_ptr<Kernel> BindCompressGrad(const Call& call) {
  const Tensor gradient = call.View(0), input = call.View(1), weight = call.View(2);
  const Tensor of_input = call.Out(8), of_weight = call.Out(9);
  call.ExpectRank(1, input, 3);
  ExpectPackedRows(call, 7, 6);
  const Windows windows = ReadWindows(call, 4, kOfTraining);
  if (windows.stride == windows.size) call.RejectArg(5, "must be below compressBlockSize");
  ExpectCompressible(call, 1, 2, windows, kOfTraining);
  const Sums ends = ReadSequenceEnds(call, 3, input.size(0));
  if (ends.front() != 0) call.RejectArg(3, "must begin with 0");
  int64_t count = 0;
  for (size_t i = 1; i < ends.size(); ++i) count += windows.Count(ends[i] - ends[i - 1]);
  call.ExpectSizes(0, gradient, {count, input.size(1), input.size(2)});
  ExpectDtypes(call, 0, gradient, {input.scalar_type()});
  for (const auto& [i, tensor, like] :
       {std::tuple(8, of_input, input), std::tuple(9, of_weight, weight)}) {
    call.ExpectSizes(i, tensor, like.sizes());
    ExpectDtypes(call, i, tensor, {input.scalar_type()});
  }
  return MakeKernel([=] {
    const Tensor rows = input.to(at::kFloat), factors = weight.to(at::kFloat);
    const Tensor given = gradient.to(at::kFloat);
    const Tensor new_rows = at::zeros_like(rows), new_factors = at::zeros_like(factors);
    int64_t window = 0;
    for (size_t i = 1; i < ends.size(); ++i) {
      const int64_t count = windows.Count(ends[i] - ends[i - 1]);
      if (count == 0) continue;
      const Tensor part = given.narrow(0, window, count);
      window += count;
      for (int64_t w = 0; w < windows.size; ++w) {
        const int64_t first = ends[i - 1] + w;
        const int64_t end = first + (count - 1) * windows.stride + 1;
        new_rows.slice(0, first, end, windows.stride).add_(part * factors[w].unsqueeze(-1));
        new_factors[w].add_(
            (part * rows.slice(0, first, end, windows.stride)).sum(at::IntArrayRef({0, 2})));
      }
    }
    of_input.copy_(new_rows);
    of_weight.copy_(new_factors);
  });
}

// Where the rows of a step's sequences lie: in blocks that a table names, or one sequence after the
// other.
struct StepRows {
  Tensor input, table;  // the table may be undefined
  Sums lengths;

  // The rows [first, first + count) of sequence `s`.
  Tensor Take(size_t s, int64_t first, int64_t count) const {
    if (table.defined()) {
      return RowsOfTable(input, table[static_cast<int64_t>(s)].to(at::kLong),
                         at::arange(first, first + count, at::kLong));
    }
    int64_t begin = first;
    for (size_t before = 0; before < s; ++before) begin += lengths[before];
    return input.narrow(0, begin, count);
  }
};

StepRows ReadStepRows(const Call& call, int64_t sequences) {
  StepRows rows;
  rows.input = call.View(0);
  rows.lengths = call.Ints(3);
  if (rows.lengths.empty()) call.RejectArg(3, "is absent");
  if (static_cast<int64_t>(rows.lengths.size()) != sequences) {
    call.RejectArg(3, "has not one entry for each element of slotMapping");
  }
  for (int64_t length : rows.lengths) {
    if (length < 0) call.RejectArg(3, "has a negative length");
  }
  if (call.IsAbsent(4)) {
    if (call.Text(5) != "TND") call.RejectArg(5, "must be \"TND\" without blockTable");
    call.ExpectRank(0, rows.input, 3);
    int64_t all = 0;
    for (int64_t length : rows.lengths) all += length;
    if (all > rows.input.size(0)) call.RejectArg(3, "has more rows than input");
    return rows;
  }
  const int64_t page = call.Int(9);
  if (page != 64 && page != 128) call.RejectArg(9, "must be 64 or 128");
  call.ExpectRank(0, rows.input, 4);
  if (rows.input.size(1) != page) call.RejectArg(0, "has blocks of other rows than pageBlockSize");
  rows.table = call.View(4);
  call.ExpectRank(4, rows.table, 2);
  ExpectDtypes(call, 4, rows.table, {at::kInt});
  if (rows.table.size(0) != sequences) call.RejectArg(4, "has not one row for each sequence");
  for (int64_t length : rows.lengths) {
    if (length > rows.table.size(1) * page) call.RejectArg(3, "exceeds the blocks of blockTable");
  }
  return rows;
}

// (input, weight, slotMapping, actSeqLen, blockTable?, layout, compressBlockSize, compressStride,
// actSeqLenType, pageBlockSize, outputCache [slots, heads, width]): a sequence whose last rows fill
// a window puts that window into its slot. Other slots stay as they are.
std::unique_ptr<Kernel> BindCompressWithCache(const Call& call) {
  const Tensor weight = call.View(1), slots = call.View(2), cache = call.Out(10);
  const Windows windows = ReadWindows(call, 6, kOfCache);
  if (call.Int(8) != 1) call.RejectArg(8, "must be 1 (lengths of the sequences)");
  call.ExpectRank(2, slots, 1);
  ExpectDtypes(call, 2, slots, {at::kInt});
  const StepRows rows = ReadStepRows(call, slots.size(0));
  ExpectCompressible(call, 0, 1, windows, kOfCache);
  const int64_t heads = rows.input.size(-2), width = rows.input.size(-1);
  if (heads > 50 && heads % 2 != 0) call.RejectArg(0, "has an odd number of heads above 50");
  call.ExpectRank(10, cache, 3);
  call.ExpectSizes(10, cache, {cache.size(0), heads, width});
  ExpectDtypes(call, 10, cache, {rows.input.scalar_type()});
  return MakeKernel([=] {
    for (size_t s = 0; s < rows.lengths.size(); ++s) {
      const int64_t length = rows.lengths[s];
      if (length < windows.size || (length - windows.size) % windows.stride != 0) continue;
      const Tensor slot =
          Within(slots.narrow(0, static_cast<int64_t>(s), 1), cache.size(0), "slotMapping");
      const Tensor last = rows.Take(s, length - windows.size, windows.size);
      cache[slot.item<int64_t>()].copy_(Compressed(last, weight, windows)[0]);
    }
  });
}

}  // namespace

KernelRows CompressedRowRows() {
  return {
      {"aclnnNsaCompress", BindCompress},
      {"aclnnNsaCompressGrad", BindCompressGrad},
      {"aclnnNsaCompressWithCache", BindCompressWithCache, Widen::kNever, {5}},
  };
}

}  // namespace acltape::opapi
