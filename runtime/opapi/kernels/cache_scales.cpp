#include "runtime/opapi/kernels/cache_scales.h"

#include "runtime/opapi/kernels/expect_dtypes.h"

namespace acltape::opapi {

using at::Tensor;

namespace {

// A mode says which parts of a cache have a scale of their own. Modes are numbers: the index in
// kModes.
struct ScaleMode {
  bool row = false;
  bool head = false;
  bool in_blocks = false;  // scales lie in blocks as the keys do
};
constexpr ScaleMode kModes[] = {
    {},                   // 0: each channel, or one scale for all
    {true},               // 1: each row
    {false, true},        // 2: each head
    {true, true},         // 3: each row of each head
    {true, false, true},  // 4: each row, in blocks
    {true, true, true},   // 5: each row of each head, in blocks
};

constexpr int64_t kPerChannel = 0, kPerRow = 1;

std::vector<int64_t> WithoutOnes(at::IntArrayRef sizes) {
  std::vector<int64_t> result;
  for (int64_t size : sizes) {
    if (size != 1) result.push_back(size);
  }
  return result;
}

// One scale or offset of the cache `rows`.
class ScaleReader {
 public:
  ScaleReader(const Call& call, int i, Tensor given, int64_t mode, const ScaledCache& cache,
              const KeyRows& rows)
      : call_(call), i_(i), given_(std::move(given)), mode_(mode), cache_(cache), rows_(rows) {}

  KeyRows Read() const {
    const ScaleMode mode = kModes[mode_];
    ExpectDtypes(call_, i_, given_, {mode.row ? at::kFloat : cache_.query});
    if (mode.in_blocks) return InBlocks(mode.head);
    if (mode.row) return OfRows(mode.head);
    return mode.head ? OfHeads() : OfChannels();
  }

 private:
  [[noreturn]] void RejectShape() const {
    call_.RejectArg(i_, "has shape " + SizesText(given_.sizes()) + ", which fits no keys of " +
                            std::to_string(rows_.heads) + " heads of width " +
                            std::to_string(rows_.width) + " in the mode " + std::to_string(mode_));
  }

  void ExpectShape(at::IntArrayRef sizes) const {
    if (given_.sizes() != sizes) RejectShape();
  }

  // The same for all rows. It is laid out when the task runs, for that may copy it.
  KeyRows Constant(int64_t heads, int64_t width) const {
    return {heads, width, [given = given_, heads, width](const KeyPlace&) {
              return given.reshape({1, heads, 1, width});
            }};
  }

  // [heads, width] with any ones between and before, [heads * width], or one number.
  KeyRows OfChannels() const {
    if (given_.numel() == 1) return Constant(1, 1);
    const std::vector<int64_t> sizes = WithoutOnes(given_.sizes());
    if (sizes != WithoutOnes({rows_.heads, rows_.width}) &&
        sizes != WithoutOnes({rows_.heads * rows_.width})) {
      RejectShape();
    }
    return Constant(rows_.heads, rows_.width);
  }

  KeyRows OfHeads() const {
    ExpectShape({rows_.heads});
    return Constant(rows_.heads, 1);
  }

  // [sequences, rows], or that after a one; or [sequences, heads, rows].
  KeyRows OfRows(bool of_heads) const {
    Tensor each = given_;
    if (!of_heads && each.dim() == 3 && each.size(0) == 1) each = each.squeeze(0);
    if (each.dim() != (of_heads ? 3 : 2)) RejectShape();
    if (!of_heads) each = each.unsqueeze(1);
    if (each.size(0) != cache_.sequences || each.size(1) != (of_heads ? rows_.heads : 1) ||
        each.size(2) < cache_.rows) {
      RejectShape();
    }
    std::vector<Tensor> batches;
    for (int64_t s = 0; s < each.size(0); ++s) {
      batches.push_back(each.narrow(0, s, 1).unsqueeze(3));
    }
    return RowsOfBatches(std::move(batches));
  }

  KeyRows InBlocks(bool of_heads) const {
    if (of_heads) {
      ExpectShape({cache_.blocks, rows_.heads, cache_.block_rows});
      return RowsInBlocks(given_.unsqueeze(3), rows_.heads);
    }
    ExpectShape({cache_.blocks, cache_.block_rows});
    return RowsInBlocks(given_.unsqueeze(1).unsqueeze(3), 1);
  }

  const Call& call_;
  int i_;
  Tensor given_;
  int64_t mode_;
  const ScaledCache& cache_;
  const KeyRows& rows_;
};

// Rejects modes that a cache of this kind does not take. `i` is the argument that says the mode.
void ExpectMode(const Call& call, int i, int64_t mode, int64_t most, const ScaledCache& cache) {
  if (mode < 0 || mode > most) {
    call.RejectArg(
        i, "is " + std::to_string(mode) + ", expected a mode from 0 to " + std::to_string(most));
  }
  if (!cache.one_row && mode > kPerRow) {
    call.RejectArg(i, "is " + std::to_string(mode) + "; modes after 1 are for queries of one row");
  }
  if (kModes[mode].in_blocks && cache.blocks == 0) {
    call.RejectArg(i, "is " + std::to_string(mode) + ", but keys do not lie in blocks");
  }
}

// The scales of keys and values apart: (keyScale, keyOffset?, valueScale, valueOffset?).
CacheScales ReadApart(const Call& call, const InferArguments& at, const ScaledCache& cache,
                      const KeyRows& key, const KeyRows& value) {
  const int first = at.key_scale;
  for (int i : {first, first + 1}) {
    if (call.IsAbsent(i) != call.IsAbsent(i + 2)) {
      call.RejectArg(i + 2, call.IsAbsent(i) ? "is given for the values alone"
                                             : "is absent, but the one of the keys is given");
    }
  }
  if (call.IsAbsent(first)) call.RejectArg(first, "is absent, but its offset is given");
  constexpr int64_t kMost = std::size(kModes) - 1;
  const int64_t key_mode = call.Int(at.key_mode), value_mode = call.Int(at.key_mode + 1);
  ExpectMode(call, at.key_mode, key_mode, kMost, cache);
  ExpectMode(call, at.key_mode + 1, value_mode, kMost, cache);
  const bool mixed = cache.one_row && key_mode == kPerChannel && value_mode == kPerRow;
  if (key_mode != value_mode && !mixed) {
    call.RejectArg(at.key_mode + 1, "is another mode than that of the keys");
  }
  const auto read = [&](int i, int64_t mode, const KeyRows& rows) {
    CacheScale result;
    result.of_rows = kModes[mode].row;
    result.scale = ScaleReader(call, i, call.View(i), mode, cache, rows).Read();
    if (!call.IsAbsent(i + 1)) {
      result.offset = ScaleReader(call, i + 1, call.View(i + 1), mode, cache, rows).Read();
    }
    return result;
  };
  return {read(first, key_mode, key), read(first + 2, value_mode, value)};
}

// One tensor with the scale of the keys and then that of the values: (scale, offset?).
CacheScales ReadTogether(const Call& call, const InferArguments& at, const ScaledCache& cache,
                         const KeyRows& key, const KeyRows& value) {
  const int first = at.cache_scale;
  if (call.IsAbsent(first)) call.RejectArg(first, "is absent, but key is int8");
  // The mode counts only for one query a sequence.
  const int64_t mode = at.cache_mode < 0 || !cache.one_row ? kPerChannel : call.Int(at.cache_mode);
  if (at.cache_mode >= 0) ExpectMode(call, at.cache_mode, mode, kPerRow, cache);
  const auto part = [&](int i, int64_t which, const KeyRows& rows) {
    const Tensor both = call.View(i);
    if (both.dim() < 1 || both.size(0) != 2) {
      call.RejectArg(i, "has shape " + SizesText(both.sizes()) +
                            ", expected one part for keys and one for values");
    }
    return ScaleReader(call, i, both.select(0, which), mode, cache, rows).Read();
  };
  CacheScales result;
  result.key.scale = part(first, 0, key);
  result.value.scale = part(first, 1, value);
  if (!call.IsAbsent(first + 1)) {
    result.key.offset = part(first + 1, 0, key);
    result.value.offset = part(first + 1, 1, value);
  }
  result.key.of_rows = result.value.of_rows = kModes[mode].row;
  return result;
}

bool GivenApart(const Call& call, const InferArguments& at) {
  if (at.key_scale < 0) return false;
  for (int i = at.key_scale; i < at.key_scale + 4; ++i) {
    if (!call.IsAbsent(i)) return true;
  }
  return false;
}

}  // namespace

KeyRows CacheScale::Apply(const KeyRows& rows) const {
  return {rows.heads, rows.width, [rows, *this](const KeyPlace& place) {
            Tensor wide = rows.at(place).to(at::kFloat);
            if (offset.at) wide = wide + offset.at(place).to(at::kFloat);
            return wide * scale.at(place).to(at::kFloat);
          }};
}

CacheScales ReadCacheScales(const Call& call, const InferArguments& at, const ScaledCache& cache,
                            const KeyRows& key, const KeyRows& value) {
  if (cache.query != at::kHalf && cache.query != at::kBFloat16) {
    call.RejectArg(1, "is int8, which needs a query of float16 or bfloat16");
  }
  if (cache.packed) call.RejectArg(1, "is int8, which packed layouts lack");
  // Scales apart count where both are given.
  if (GivenApart(call, at)) return ReadApart(call, at, cache, key, value);
  if (at.cache_scale < 0) call.RejectArg(1, "is int8, but the operator takes no scales of keys");
  return ReadTogether(call, at, cache, key, value);
}

void ExpectNoCacheScales(const Call& call, const InferArguments& at) {
  std::vector<int> positions;
  if (at.cache_scale >= 0) positions = {at.cache_scale, at.cache_scale + 1};
  for (int i = 0; at.key_scale >= 0 && i < 4; ++i) positions.push_back(at.key_scale + i);
  for (int i : positions) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given, but key is not int8");
  }
}

}  // namespace acltape::opapi
