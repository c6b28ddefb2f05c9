// Linear attention with a state for each sequence: the gated delta rule (arXiv 2412.06464), step by
// step and in chunks, and the short convolution in front of it. They compute in float32 and round
// once. A state is what a sequence has left behind; it lies in a cache, in a slot of its own.
#include <ATen/ATen.h>

#include <algorithm>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

Tensor InSingle(const Tensor& tensor) { return tensor.to(at::kFloat); }

void ExpectFloatsOfSizes(const Call& call, int i, const Tensor& tensor, at::IntArrayRef sizes) {
  ExpectFloats(call, i, tensor);
  call.ExpectSizes(i, tensor, sizes);
}

std::vector<int64_t> NumbersIn(const Tensor& tensor) {
  const Tensor numbers = tensor.to(at::kLong).contiguous();
  const auto* first = numbers.data_ptr<int64_t>();
  return std::vector<int64_t>(first, first + numbers.numel());
}

// (aLog, a, b, dtBias, beta, threshold, g, betaOutput): the logarithm of what a step keeps of the
// state, and the weight of what it adds.
std::unique_ptr<Kernel> BindFusedGdnGating(const Call& call) {
  const Tensor log = call.View(0), a = call.View(1), b = call.View(2), bias = call.View(3);
  const double beta = call.Real(4), threshold = call.Real(5);
  call.ExpectRank(1, a, 2);
  const int64_t heads = a.size(1);
  ExpectFloatsOfSizes(call, 0, log, {heads});
  ExpectFloats(call, 1, a);
  ExpectFloatsOfSizes(call, 2, b, a.sizes());
  ExpectFloatsOfSizes(call, 3, bias, {heads});
  const Tensor decay = call.Out(6), weight = call.Out(7);
  ExpectFloatsOfSizes(call, 6, decay, {1, a.size(0), heads});
  ExpectFloatsOfSizes(call, 7, weight, {1, a.size(0), heads});
  return MakeKernel([=] {
    const Tensor steps = at::softplus(InSingle(a) + InSingle(bias), beta, threshold);
    Tensor(decay).copy_((-InSingle(log).exp() * steps).unsqueeze(0));
    Tensor(weight).copy_(InSingle(b).sigmoid().unsqueeze(0));
  });
}

// (x, weight, bias?, convStates, queryStartLoc?, cacheIndices?, initialStateMode?,
// numAcceptedTokens?, activationMode, padSlotId, runMode, out): each column with a filter of its
// own over this and the rows before it. A sequence begins with the rows that its state has (mode 1:
// always; mode 0: where initialStateMode says so), and leaves its last rows there.
std::unique_ptr<Kernel> BindCausalConv1d(const Call& call) {
  const Tensor x = call.View(0), weight = call.View(1), states = call.Out(3), out = call.Out(11);
  const Tensor bias = call.IsAbsent(2) ? Tensor() : call.View(2);
  const int64_t activation = call.Int(8), no_slot = call.Int(9), mode = call.Int(10);
  if (!call.IsAbsent(7)) call.RejectArg(7, "is given, which the soft device lacks");
  if (activation != 0 && activation != 1) call.RejectArg(8, "must be 0 (none) or 1 (silu)");
  if (mode != 0 && mode != 1) call.RejectArg(10, "must be 0 (prompts) or 1 (steps)");
  ExpectFloats(call, 0, x);
  ExpectFloats(call, 1, weight);
  call.ExpectRank(0, x, 2);
  call.ExpectRank(1, weight, 2);
  call.ExpectRank(3, states, 3);
  const int64_t columns = x.size(1), before = weight.size(0) - 1;
  ExpectFloatsOfSizes(call, 1, weight, {before + 1, columns});
  if (bias.defined()) ExpectFloatsOfSizes(call, 2, bias, {columns});
  ExpectFloatsOfSizes(call, 3, states, {states.size(0), states.size(1), columns});
  if (states.size(1) < before) call.RejectArg(3, "has too few rows for the filter");
  if (call.IsAbsent(4)) call.RejectArg(4, "is absent, which the soft device lacks");
  if (call.IsAbsent(5)) call.RejectArg(5, "is absent, which the soft device lacks");
  const Tensor starts = call.View(4), given_slots = call.View(5);
  call.ExpectIndex(4, starts);
  call.ExpectIndex(5, given_slots);
  call.ExpectRank(4, starts, 1);
  // A row of slots for each sequence: the first one is its state.
  const bool several = given_slots.dim() == 2 && given_slots.size(1) > 0;
  const Tensor slots = several ? given_slots.select(1, 0) : given_slots;
  call.ExpectSizes(5, slots, {starts.size(0) - 1});
  const Tensor begins = mode == 0 && !call.IsAbsent(6) ? call.View(6) : Tensor();
  if (begins.defined()) call.ExpectSizes(6, begins, slots.sizes());
  ExpectFloatsOfSizes(call, 11, out, x.sizes());
  return MakeKernel([=] {
    const std::vector<int64_t> bounds = NumbersIn(starts), where = NumbersIn(slots);
    const std::vector<int64_t> given = begins.defined() ? NumbersIn(begins.to(at::kLong))
                                                        : std::vector<int64_t>(where.size(), mode);
    const Tensor filter = InSingle(weight);
    Tensor(out).zero_();  // rows of sequences without a slot
    for (size_t s = 0; s < where.size(); ++s) {
      const int64_t count = bounds[s + 1] - bounds[s];
      if (count <= 0 || where[s] == no_slot) continue;
      const Tensor state = states[where[s]].narrow(0, 0, before);
      const Tensor past = given[s] != 0 ? InSingle(state) : at::zeros({before, columns});
      const Tensor rows = at::cat({past, InSingle(x.narrow(0, bounds[s], count))});
      Tensor sum = at::zeros({count, columns});
      for (int64_t i = 0; i <= before; ++i) sum += rows.narrow(0, i, count) * filter[i];
      if (bias.defined()) sum += InSingle(bias);
      out.narrow(0, bounds[s], count).copy_(activation == 1 ? at::silu(sum) : sum);
      state.copy_(rows.narrow(0, count, before));
    }
  });
}

// The heads of keys, each as often as values' heads share it.
Tensor ForEachValueHead(const Tensor& keys, int64_t dim, int64_t heads) {
  return keys.repeat_interleave(heads / keys.size(dim), dim);
}

// (query, key, value, beta, state, actualSeqLengths, ssmStateIndices, g?, gk?, numAcceptedTokens?,
// scaleValue, out): each row changes the state of its sequence and asks it. The state after a row
// goes to the row's slot; the first one comes from the slot of the first row, or of the last row
// that was accepted. Lengths may begin with the place of the first row.
std::unique_ptr<Kernel> BindRecurrentGatedDelta(const Call& call) {
  const Tensor query = call.View(0), key = call.View(1), value = call.View(2), beta = call.View(3);
  const Tensor states = call.Out(4), lengths = call.View(5), slots = call.View(6);
  for (int i : {0, 1, 2}) call.ExpectRank(i, call.View(i), 3);
  const int64_t rows = value.size(0), heads = value.size(1), width = value.size(2);
  const int64_t key_heads = key.size(1), key_width = key.size(2);
  for (int i : {0, 1}) ExpectFloatsOfSizes(call, i, call.View(i), {rows, key_heads, key_width});
  ExpectFloats(call, 2, value);
  if (key_heads == 0 || heads % key_heads != 0) call.RejectArg(1, "has heads that divide no value");
  ExpectFloatsOfSizes(call, 3, beta, {rows, heads});
  call.ExpectRank(4, states, 4);
  ExpectFloatsOfSizes(call, 4, states, {states.size(0), heads, width, key_width});
  call.ExpectRank(5, lengths, 1);
  call.ExpectIndex(5, lengths);
  call.ExpectRank(6, slots, 1);
  call.ExpectIndex(6, slots);
  const Tensor decay = call.IsAbsent(7) ? Tensor() : call.View(7);
  const Tensor decay_of_keys = call.IsAbsent(8) ? Tensor() : call.View(8);
  const Tensor accepted = call.IsAbsent(9) ? Tensor() : call.View(9);
  if (decay.defined()) ExpectFloatsOfSizes(call, 7, decay, {rows, heads});
  if (decay_of_keys.defined()) {
    ExpectFloatsOfSizes(call, 8, decay_of_keys, {rows, heads, key_width});
  }
  const double scale = call.Real(10);
  const Tensor out = call.Out(11);
  ExpectFloatsOfSizes(call, 11, out, value.sizes());
  return MakeKernel([=] {
    const std::vector<int64_t> counts = NumbersIn(lengths), where = NumbersIn(slots);
    const std::vector<int64_t> taken =
        accepted.defined() ? NumbersIn(accepted) : std::vector<int64_t>();
    const bool leading = accepted.defined() && counts.size() == taken.size() + 1;
    const Tensor q = ForEachValueHead(InSingle(query), 1, heads) * scale;
    const Tensor k = ForEachValueHead(InSingle(key), 1, heads);
    const Tensor v = InSingle(value), weight = InSingle(beta);
    const Tensor kept = decay.defined() ? InSingle(decay).exp() : Tensor();
    const Tensor kept_keys = decay_of_keys.defined() ? InSingle(decay_of_keys).exp() : Tensor();
    int64_t row = 0;
    for (size_t s = 0; s < counts.size(); ++s) {
      const int64_t end = row + counts[s];
      TORCH_CHECK(end <= rows && end <= static_cast<int64_t>(where.size()), "sequence ", s,
                  " ends at row ", end, " of ", rows);
      if (counts[s] == 0) continue;
      const int64_t from =
          accepted.defined() ? row + std::max<int64_t>(taken[leading ? s - 1 : s], 1) - 1 : row;
      if (where[from] < 0) {
        row = end;
        continue;
      }
      Tensor state = InSingle(states[where[from]]).clone();
      for (; row < end; ++row) {
        if (kept.defined()) state = state * kept[row].unsqueeze(-1).unsqueeze(-1);
        if (kept_keys.defined()) state = state * kept_keys[row].unsqueeze(1);
        const Tensor known = at::matmul(state, k[row].unsqueeze(-1)).squeeze(-1);
        const Tensor added = (v[row] - known) * weight[row].unsqueeze(-1);
        state = state + added.unsqueeze(-1) * k[row].unsqueeze(1);
        Tensor(out)[row].copy_(at::matmul(state, q[row].unsqueeze(-1)).squeeze(-1));
        if (where[row] >= 0) Tensor(states)[where[row]].copy_(state);
      }
    }
  });
}

// One chunk of a sequence: its rows, its place among all chunks, the place of its sequence.
struct Chunk {
  int64_t first, count, index, sequence;
  bool last;  // no chunk of its sequence follows
};

// The chunks of sequences with these bounds; without bounds each batch is a sequence.
std::vector<Chunk> ChunksOf(const std::vector<int64_t>& bounds, int64_t size) {
  std::vector<Chunk> chunks;
  for (size_t s = 0; s + 1 < bounds.size(); ++s) {
    for (int64_t first = bounds[s]; first < bounds[s + 1]; first += size) {
      const int64_t count = std::min(size, bounds[s + 1] - first);
      chunks.push_back({first, count, static_cast<int64_t>(chunks.size()), static_cast<int64_t>(s),
                        first + count == bounds[s + 1]});
    }
  }
  return chunks;
}

// The bounds of the sequences of one packed batch (argument `i`).
std::vector<int64_t> ReadBounds(const Call& call, int i, int64_t batch, int64_t rows) {
  const std::vector<int64_t> bounds = call.Ints(i);
  if (bounds.empty()) return {0, rows};
  if (batch != 1) call.RejectArg(i, "is given for more than one batch");
  if (bounds.front() < 0 || bounds.back() > rows || !std::is_sorted(bounds.begin(), bounds.end())) {
    call.RejectArg(i, "does not divide the rows into sequences");
  }
  return bounds;
}

int64_t ReadChunkSize(const Call& call, int i) {
  if (call.Int(i) < 1) call.RejectArg(i, "is not positive");
  return call.Int(i);
}

// (k, w, u, g?, gk?, initialState?, outputFinalState, chunkSize, saveNewValue, cuSeqlens?,
// chunkIndices?, useExp2, transposeStateLayout, h, vNew, finalState): the state before each chunk
// of [batch, heads, rows, width], and what each row adds to it. g is summed up within each chunk.
std::unique_ptr<Kernel> BindChunkStates(const Call& call) {
  const Tensor k = call.View(0), w = call.View(1), u = call.View(2);
  for (int i : {0, 1, 2}) {
    call.ExpectRank(i, call.View(i), 4);
    ExpectFloats(call, i, call.View(i));
  }
  const int64_t batch = u.size(0), heads = u.size(1), rows = u.size(2), width = u.size(3);
  const int64_t key_heads = k.size(1), key_width = k.size(3);
  call.ExpectSizes(0, k, {batch, key_heads, rows, key_width});
  call.ExpectSizes(1, w, {batch, heads, rows, key_width});
  if (key_heads == 0 || heads % key_heads != 0) call.RejectArg(0, "has heads that divide no value");
  const Tensor decay = call.IsAbsent(3) ? Tensor() : call.View(3);
  if (decay.defined()) ExpectFloatsOfSizes(call, 3, decay, {batch, heads, rows});
  if (!call.IsAbsent(4)) call.RejectArg(4, "is given, which the soft device lacks");
  const int64_t size = ReadChunkSize(call, 7);
  const std::vector<int64_t> bounds = ReadBounds(call, 9, batch, rows);
  for (int i : {11, 12}) {
    if (call.Bool(i)) call.RejectArg(i, "is set, which the soft device lacks");
  }
  const std::vector<Chunk> chunks = ChunksOf(bounds, size);
  const bool packed = !call.IsAbsent(9);
  const int64_t states = packed ? static_cast<int64_t>(bounds.size()) - 1 : batch;
  const std::vector<int64_t> state_sizes = {states, heads, key_width, width};
  const Tensor initial = call.IsAbsent(5) ? Tensor() : call.View(5);
  if (initial.defined()) ExpectFloatsOfSizes(call, 5, initial, state_sizes);
  const Tensor h = call.Out(13);
  ExpectFloatsOfSizes(call, 13, h,
                      {batch, heads, static_cast<int64_t>(chunks.size()), key_width, width});
  const Tensor added = call.Bool(8) ? call.Out(14) : Tensor();
  if (added.defined()) ExpectFloatsOfSizes(call, 14, added, u.sizes());
  const Tensor last = call.Bool(6) ? call.Out(15) : Tensor();
  if (last.defined()) ExpectFloatsOfSizes(call, 15, last, state_sizes);
  return MakeKernel([=] {
    const Tensor keys = ForEachValueHead(InSingle(k), 1, heads);
    for (int64_t b = 0; b < batch; ++b) {
      Tensor state;  // [heads, key width, width]
      for (const Chunk& chunk : chunks) {
        const int64_t place = packed ? chunk.sequence : b;
        if (!state.defined()) {
          state =
              initial.defined() ? InSingle(initial[place]) : at::zeros({heads, key_width, width});
        }
        const auto cut = [&](const Tensor& all) {
          return InSingle(all[b].narrow(1, chunk.first, chunk.count));
        };
        Tensor(h)[b].select(1, chunk.index).copy_(state);
        Tensor row = cut(u) - at::bmm(cut(w), state);
        if (added.defined()) added[b].narrow(1, chunk.first, chunk.count).copy_(row);
        if (decay.defined()) {
          const Tensor sums = cut(decay), end = sums.narrow(1, chunk.count - 1, 1);
          row = row * (end - sums).exp().unsqueeze(-1);
          state = state * end.exp().unsqueeze(-1);
        }
        state = state + at::bmm(cut(keys).transpose(1, 2), row);
        if (!chunk.last) continue;
        if (last.defined()) Tensor(last)[place].copy_(state);
        state = Tensor();
      }
    }
  });
}

// (q, k, v, h, g, cuSeqlens?, chunkOffsets?, scale, chunkSize, o): what each row reads from the
// state before its chunk (`h`) and from the rows of its chunk up to itself (`v`).
std::unique_ptr<Kernel> BindChunkOutputs(const Call& call) {
  const Tensor q = call.View(0), k = call.View(1), v = call.View(2), h = call.View(3);
  const Tensor decay = call.View(4);
  for (int i : {0, 1, 2}) {
    call.ExpectRank(i, call.View(i), 4);
    ExpectFloats(call, i, call.View(i));
  }
  const int64_t batch = v.size(0), heads = v.size(1), rows = v.size(2), width = v.size(3);
  const int64_t key_heads = k.size(1), key_width = k.size(3);
  for (int i : {0, 1}) call.ExpectSizes(i, call.View(i), {batch, key_heads, rows, key_width});
  if (key_heads == 0 || heads % key_heads != 0) call.RejectArg(1, "has heads that divide no value");
  ExpectFloatsOfSizes(call, 4, decay, {batch, heads, rows});
  const std::vector<Chunk> chunks =
      ChunksOf(ReadBounds(call, 5, batch, rows), ReadChunkSize(call, 8));
  const double scale = call.Real(7);
  ExpectFloatsOfSizes(call, 3, h,
                      {batch, heads, static_cast<int64_t>(chunks.size()), key_width, width});
  const Tensor out = call.Out(9);
  ExpectFloatsOfSizes(call, 9, out, v.sizes());
  return MakeKernel([=] {
    const Tensor queries = ForEachValueHead(InSingle(q), 1, heads);
    const Tensor keys = ForEachValueHead(InSingle(k), 1, heads);
    for (int64_t b = 0; b < batch; ++b) {
      for (const Chunk& chunk : chunks) {
        const auto cut = [&](const Tensor& all) {
          return InSingle(all[b].narrow(1, chunk.first, chunk.count));
        };
        const Tensor query = cut(queries), sums = cut(decay);
        const Tensor of_state = at::bmm(query, InSingle(h[b].select(1, chunk.index)));
        // Later rows are left out before the exponential, which could overflow there.
        const Tensor apart = (sums.unsqueeze(-1) - sums.unsqueeze(1)).tril().exp();
        const Tensor scores = (at::bmm(query, cut(keys).transpose(1, 2)) * apart).tril();
        const Tensor result = of_state * sums.exp().unsqueeze(-1) + at::bmm(scores, cut(v));
        out[b].narrow(1, chunk.first, chunk.count).copy_(result * scale);
      }
    }
  });
}

}  // namespace

KernelRows GatedDeltaRows() {
  return {
      {"aclnnFusedGdnGating", BindFusedGdnGating},
      {"aclnnCausalConv1d", BindCausalConv1d},
      {"aclnnRecurrentGatedDeltaRule", BindRecurrentGatedDelta, Widen::kNever, {9}},
      {"aclnnChunkGatedDeltaRuleFwdH", BindChunkStates, Widen::kNever, {14, 15}},
      {"aclnnChunkFwdO", BindChunkOutputs},
  };
}

}  // namespace acltape::opapi
