#include "tests/opapi/grid/infer_features.h"

#include <cmath>
#include <functional>
#include <limits>

namespace acltape::opapi::grid {
namespace infer {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kNoBound = std::numeric_limits<int32_t>::max();

// Where an operator has its arguments; -1: it lacks them.
struct Form {
  const char* op;
  int arguments;  // how many it reads
  int heads;
  int lengths = -1, key_lengths = 5;
  int layout, kv_heads;
  int pre = -1, mode = -1, lse_flag = -1;
  int out_scale = -1, joint = -1, table = -1, block_size = -1;
  int query_padding = -1, key_padding = -1;
  int apart = -1, prefix = -1;
  int joint_mode = -1, key_mode = -1;
  int zeros = 0;  // numbers after kv_heads
};

Form Fused(const char* op, int arguments, int heads, bool later) {
  return {.op = op,
          .arguments = arguments,
          .heads = heads,
          .lengths = 5,
          .key_lengths = 6,
          .layout = heads + 4,
          .kv_heads = heads + 5,
          .pre = heads + 2,
          .mode = heads + 6,
          .lse_flag = heads + 10,
          .out_scale = 10,
          .joint = 12,
          .table = 14,
          .block_size = heads + 8,
          .query_padding = 15,
          .key_padding = 16,
          .apart = later ? 17 : -1,
          .prefix = later ? 21 : -1,
          .joint_mode = heads + 9,
          .key_mode = later ? heads + 11 : -1};
}

const Form kForms[] = {
    Fused("aclnnFusedInferAttentionScore", 28, 17, false),
    Fused("aclnnFusedInferAttentionScoreV2", 37, 24, true),
    Fused("aclnnFusedInferAttentionScoreV3", 40, 27, true),
    Fused("aclnnFusedInferAttentionScoreV4", 43, 29, true),
    {.op = "aclnnPromptFlashAttentionV3",
     .arguments = 20,
     .heads = 12,
     .lengths = 5,
     .key_lengths = 6,
     .layout = 16,
     .kv_heads = 17,
     .pre = 14,
     .mode = 18,
     .out_scale = 10},
    {.op = "aclnnIncreFlashAttentionV2",
     .arguments = 15,
     .heads = 11,
     .layout = 13,
     .kv_heads = 14,
     .out_scale = 9},
    {.op = "aclnnIncreFlashAttentionV3",
     .arguments = 20,
     .heads = 14,
     .layout = 16,
     .kv_heads = 17,
     .out_scale = 9,
     .joint = 11,
     .table = 13,
     .block_size = 18},
    {.op = "aclnnIncreFlashAttentionV4",
     .arguments = 21,
     .heads = 15,
     .layout = 17,
     .kv_heads = 18,
     .out_scale = 9,
     .joint = 11,
     .table = 13,
     .block_size = 19,
     .key_padding = 14},
};

const Form* FormOf(const std::string& op) {
  for (const Form& form : kForms) {
    if (op == form.op) return &form;
  }
  return nullptr;
}

// [batch, heads, rows, width] as a layout lays it out, and back in double precision.
Tensor LaidOut(const Tensor& tensor, const std::string& layout) {
  if (layout == "BNSD") return tensor;
  const Tensor rows_first = tensor.transpose(1, 2).contiguous();
  return layout == "BSND" ? rows_first : rows_first.flatten(2);
}

Tensor Apart(const Tensor& tensor, const std::string& layout, int64_t heads) {
  const Tensor wide = tensor.to(at::kDouble);
  if (layout == "BNSD") return wide;
  return (wide.dim() == 4 ? wide : wide.unflatten(-1, {heads, wide.size(-1) / heads}))
      .transpose(1, 2);
}

// --- The reference.

class HeadByHead {
 public:
  HeadByHead(const Form& form, const In& in)
      : form_(form),
        in_(in),
        layout_(in.text(form.layout)),
        heads_(in.integer(form.heads)),
        kv_heads_(in.integer(form.kv_heads)),
        query_(Apart(in[0], layout_, heads_)) {}

  Args Result() {
    const int64_t batches = query_.size(0), rows = query_.size(2), width = Value(0).size(2);
    Tensor out = at::zeros({batches, heads_, rows, width}, at::kDouble);
    Tensor lse = at::zeros({batches, heads_, rows, 1}, at::kDouble);
    for (int64_t b = 0; b < batches; ++b) {
      const int64_t queries = rows == 1 ? 1 : LengthOf(form_.lengths, b, rows);
      const bool padded = rows > 1 && Pads(form_.query_padding, form_.lengths);
      const int64_t first = padded ? Begin(form_.query_padding, rows, queries) : 0;
      if (KeysBegin(b) < 0) {
        lse[b].fill_(std::numeric_limits<double>::infinity());
        continue;
      }
      const Tensor keys = Key(b), values = Value(b);
      for (int64_t h = 0; h < heads_; ++h) {
        const Tensor key = keys[h * kv_heads_ / heads_], value = values[h * kv_heads_ / heads_];
        for (int64_t i = 0; i < queries; ++i) {
          const Tensor scores = Scores(b, h, first + i, i, queries, key);
          const Tensor to = out[b][h][first + i];
          const bool any = scores.numel() > 0 && scores.max().item<double>() > -1e300;
          lse[b][h][first + i] = any ? at::logsumexp(scores, {0}).item<double>()
                                     : std::numeric_limits<double>::infinity();
          if (any) to.copy_(at::mv(value.t(), at::softmax(scores, 0)));
        }
        if (Has(form_.out_scale)) Quantise(out[b][h].narrow(0, first, queries), h);
      }
    }
    const at::ScalarType dtype = Has(form_.out_scale) ? at::kChar : in_[0].scalar_type();
    Args results = {LaidOut(out, layout_).to(dtype)};
    if (form_.lse_flag < 0) return results;
    results.push_back(in_.flag(form_.lse_flag) ? lse.to(at::kFloat) : Tensor());
    return results;
  }

 private:
  bool Has(int i) const { return i >= 0 && in_.maybe(i).has_value(); }
  bool Pads(int padding, int lengths) const {
    return Has(padding) && !in_.maybe_ints(lengths).empty();
  }

  int64_t LengthOf(int i, int64_t b, int64_t whole) const {
    const Ints lengths = i < 0 ? Ints() : in_.maybe_ints(i);
    return lengths.empty() ? whole : lengths[lengths.size() == 1 ? 0 : b];
  }

  int64_t Begin(int padding, int64_t whole, int64_t count) const {
    return whole - std::max<int64_t>(in_[padding].item<int64_t>(), 0) - count;
  }

  Tensor Given(int which) const {
    const Arg& arg = in_.arg(1 + which);
    const auto* list = std::get_if<Tensors>(&arg);
    return list != nullptr ? list->at(0) : std::get<Tensor>(arg);
  }

  int64_t KeyRows() const {
    if (Has(form_.table)) return in_[form_.table].size(1) * in_.integer(form_.block_size);
    return Apart(Given(0), layout_, kv_heads_).size(2);
  }
  int64_t KeyCount(int64_t b) const { return LengthOf(form_.key_lengths, b, KeyRows()); }
  int64_t KeysBegin(int64_t b) const {
    if (!Pads(form_.key_padding, form_.key_lengths)) return 0;
    return Begin(form_.key_padding, KeyRows(), KeyCount(b));
  }

  // Row `row` of a sequence's keys or values: [heads, width].
  Tensor Raw(int which, int64_t b, int64_t row) const {
    const Tensor given = Given(which).to(at::kDouble);
    if (!Has(form_.table)) return Apart(given, layout_, kv_heads_)[b].select(1, row);
    const int64_t size = in_.integer(form_.block_size);
    const Tensor block = given[in_[form_.table][b][row / size].item<int64_t>()];
    const int64_t place = row % size;
    if (block.dim() == 2) return block[place].reshape({kv_heads_, -1});
    if (block.dim() == 3) return block.select(1, place);
    return block.select(2, place).flatten(1);
  }

  // A scale or offset of that row, which broadcasts to [heads, width].
  Tensor OfRow(const Tensor& given, int64_t mode, int64_t b, int64_t row) const {
    const Tensor wide = given.to(at::kDouble);
    const int64_t batches = query_.size(0);
    switch (mode) {
      case 1:
        return wide.reshape({batches, -1})[b][row];
      case 2:
        return wide.reshape({kv_heads_, 1});
      case 3:
        return wide[b].select(1, row).unsqueeze(1);
      case 4:
      case 5: {
        const int64_t size = in_.integer(form_.block_size);
        const Tensor block = wide[in_[form_.table][b][row / size].item<int64_t>()];
        return mode == 4 ? block[row % size] : block.select(1, row % size).unsqueeze(1);
      }
      default:
        return wide.numel() == 1 ? wide.reshape({1, 1}) : wide.reshape({kv_heads_, -1});
    }
  }

  Tensor Meant(const Tensor& raw, int which, int64_t b, int64_t row) const {
    if (Given(which).scalar_type() != at::kChar) return raw;
    const bool apart = Has(form_.apart);
    const int scale = apart ? form_.apart + 2 * which : form_.joint;
    const bool one_row = query_.size(2) == 1;
    const int64_t mode = apart                              ? in_.integer(form_.key_mode + which)
                         : one_row && form_.joint_mode >= 0 ? in_.integer(form_.joint_mode)
                                                            : 0;
    const auto part = [&](int i) { return apart ? in_[i] : in_[i][which]; };
    Tensor meant = raw;
    if (Has(scale + 1)) meant = meant + OfRow(part(scale + 1), mode, b, row);
    return meant * OfRow(part(scale), mode, b, row);
  }

  int64_t PrefixRows() const {
    if (!Has(form_.prefix)) return 0;
    return LengthOf(form_.prefix + 2, 0, Apart(in_[form_.prefix], layout_, kv_heads_).size(2));
  }

  // All keys or values of a sequence: [heads, rows, width].
  Tensor All(int which, int64_t b) const {
    Tensors rows;
    for (int64_t r = 0; r < PrefixRows(); ++r) {
      const Tensor prefix = Apart(in_[form_.prefix + which], layout_, kv_heads_);
      rows.push_back(Meant(prefix[0].select(1, r), which, b, r));
    }
    const int64_t begin = std::max<int64_t>(KeysBegin(b), 0);
    for (int64_t r = 0; r < KeyCount(b) && KeysBegin(b) >= 0; ++r) {
      rows.push_back(Meant(Raw(which, b, begin + r), which, b, begin + r));
    }
    if (!rows.empty()) return at::stack(rows, 1);
    return at::zeros({kv_heads_, 0, Raw(which, b, 0).size(1)}, at::kDouble);
  }
  Tensor Key(int64_t b) const { return All(0, b); }
  Tensor Value(int64_t b) const { return All(1, b); }

  // The entry of a mask or bias.
  static double Entry(Tensor tensor, int64_t b, int64_t h, int64_t row, int64_t column,
                      bool row_of_batch) {
    if (tensor.dim() == 2 && row_of_batch) tensor = tensor.unsqueeze(1);
    if (tensor.dim() == 3) tensor = tensor.unsqueeze(1);
    if (tensor.dim() == 2) tensor = tensor.unsqueeze(0).unsqueeze(0);
    const auto own = [&](int dim, int64_t i) { return tensor.size(dim) == 1 ? int64_t{0} : i; };
    return tensor[own(0, b)][own(1, h)][own(2, row)][own(3, column)].item().toDouble();
  }

  // The scores of query `i` of `queries`, which is row `row` of its batch.
  Tensor Scores(int64_t b, int64_t h, int64_t row, int64_t i, int64_t queries,
                const Tensor& key) const {
    Tensor scores = at::mv(key, query_[b][h][row]) * in_.real(form_.heads + 1);
    const int64_t mode = form_.mode < 0 ? 1 : in_.integer(form_.mode);
    const int64_t keys = key.size(0), begin = KeysBegin(b);
    const bool one_row = query_.size(2) == 1;
    for (int64_t j = 0; j < keys; ++j) {
      if (Has(3)) scores[j] += Entry(in_[3], b, h, row, begin + j, false);
      const bool out = mode == 3   ? j > i + keys - queries
                       : mode == 2 ? j > i
                       : Has(4)    ? Entry(in_[4], b, h, row, begin + j, one_row) != 0
                                   : false;
      if (out) scores[j] = -std::numeric_limits<double>::infinity();
    }
    return scores;
  }

  void Quantise(const Tensor& rows, int64_t head) const {
    const auto of_head = [&](int i) {
      const Tensor wide = in_[i].to(at::kDouble);
      return wide.numel() == 1 ? wide.reshape({1}) : wide.reshape({heads_, -1})[head];
    };
    Tensor made = rows * of_head(form_.out_scale);
    if (Has(form_.out_scale + 1)) made = made + of_head(form_.out_scale + 1);
    rows.copy_(made.round().clamp(-128, 127));
  }

  const Form& form_;
  const In& in_;
  std::string layout_;
  int64_t heads_, kv_heads_;
  Tensor query_;
};

// --- The calls.

struct Geometry {
  const char* layout;
  int64_t batch, heads, kv_heads, queries, keys, width;
};

// One call: its arguments by position.
class Calls {
 public:
  Calls(const Form& form, Source& source, at::ScalarType dtype)
      : form_(form), source_(source), dtype_(dtype) {}

  std::vector<Args> Made() {
    for (const Geometry& g :
         {Geometry{"BNSD", 2, 4, 2, 5, 9, 8}, Geometry{"BSND", 3, 2, 2, 3, 7, 8},
          Geometry{"BSH", 2, 2, 1, 4, 6, 16}}) {
      geometry_ = g;
      if (form_.lengths >= 0) {
        Padded();
        Prefixed();
        if (dtype_ != at::kFloat) QuantisedPrompts();
        QuantisedResults();
      }
      geometry_.queries = 1;
      if (form_.op == std::string("aclnnPromptFlashAttentionV3")) continue;
      PaddedSteps();
      Prefixed();
      Paged();
      if (dtype_ != at::kFloat) QuantisedSteps();
      QuantisedResults();
    }
    return std::move(made_);
  }

 private:
  using Change = std::function<void(Args&)>;

  Tensor Floats(int64_t batch, int64_t heads, int64_t rows) {
    return LaidOut(source_.Random({batch, heads, rows, geometry_.width}, dtype_), geometry_.layout);
  }
  Tensor Bytes(at::IntArrayRef sizes) {
    return source_.Random(sizes, at::kDouble, -120, 120).round().to(at::kChar);
  }
  Tensor Scale(at::IntArrayRef sizes, at::ScalarType dtype) {
    return source_.Random(sizes, dtype, 0.005, 0.03);
  }
  Tensor Offset(at::IntArrayRef sizes, at::ScalarType dtype) {
    return source_.Random(sizes, dtype, -20, 20);
  }
  static Arg ListOf(const Tensor& tensor, bool list) {
    return list ? Arg(Tensors{tensor}) : Arg(tensor);
  }
  bool list() const { return form_.op != std::string("aclnnPromptFlashAttentionV3"); }

  void Add(const Change& change) {
    const Geometry& g = geometry_;
    Args args(form_.arguments, Null{});
    args[0] = Floats(g.batch, g.heads, g.queries);
    for (int i : {1, 2}) args[i] = ListOf(Floats(g.batch, g.kv_heads, g.keys), list());
    args[form_.heads] = g.heads;
    args[form_.heads + 1] = 0.3;
    for (int i = form_.heads + 2; i < form_.arguments; ++i) args[i] = int64_t{0};
    args[form_.layout] = g.layout;
    args[form_.kv_heads] = g.kv_heads;
    if (form_.pre >= 0) args[form_.pre] = args[form_.pre + 1] = kNoBound;
    if (form_.lse_flag >= 0) args[form_.lse_flag] = false;
    change(args);
    made_.push_back(args);
  }

  Ints Lengths(int64_t whole) const {
    Ints lengths;
    for (int64_t b = 0; b < geometry_.batch; ++b) lengths.push_back(whole - 1 - b);
    return lengths;
  }
  static Tensor Padding(int64_t rows) { return at::tensor({rows}, at::kLong); }
  static Tensor Triangle() { return at::ones({2048, 2048}, at::kBool).triu(1); }
  Tensor Mask(at::IntArrayRef sizes) {
    const Tensor mask = source_.Random(sizes, at::kDouble, 0, 1).gt(0.7);
    return mask;
  }

  void Padded() {
    const Geometry g = geometry_;
    if (form_.query_padding < 0) return;
    const auto pad = [&](Args& args, int64_t query, int64_t key) {
      args[form_.lengths] = Lengths(g.queries);
      args[form_.key_lengths] = Lengths(g.keys);
      if (query != kNoBound) args[form_.query_padding] = Padding(query);
      if (key != kNoBound) args[form_.key_padding] = Padding(key);
    };
    Add([&](Args& args) { pad(args, 1, 1); });
    Add([&](Args& args) {  // negative ones are 0; the mask and bias cover whole batches
      pad(args, -3, 0);
      args[3] = source_.Random({g.batch, g.heads, g.queries, g.keys}, dtype_);
      args[4] = Mask({g.batch, 1, g.queries, g.keys});
      args[form_.pre] = args[form_.pre + 1] = int64_t{1};  // not looked at beside padding
    });
    Add([&](Args& args) {
      pad(args, 0, kNoBound);
      args[4] = Triangle();
      args[form_.mode] = int64_t{3};
    });
    Add([&](Args& args) {  // a sequence without queries, and one without keys
      pad(args, 1, 1);
      Ints none(g.batch, 2);
      none[0] = 0;
      args[form_.lengths] = none;
      std::swap(none[0], none[1]);
      args[form_.key_lengths] = none;
    });
    Add([&](Args& args) {  // without lengths padding does not count
      args[form_.query_padding] = args[form_.key_padding] = Padding(2);
    });
  }

  void PaddedSteps() {
    const Geometry g = geometry_;
    if (form_.key_padding < 0) return;
    for (int64_t padding : {0, 1, 4}) {
      // The greatest padding leaves no room for the keys of the first batch: its rows are zeros.
      Add([&](Args& args) {
        args[form_.key_lengths] = Lengths(g.keys);
        args[form_.key_padding] = Padding(padding);
        const Tensor mask = Mask({g.batch, g.keys});
        args[4] = padding == 1 ? Arg(mask) : padding == 4 ? Arg(mask.unsqueeze(1)) : Arg(Null{});
        if (form_.query_padding >= 0) args[form_.query_padding] = Padding(1);
      });
    }
  }

  void Prefixed() {
    const Geometry g = geometry_;
    if (form_.prefix < 0) return;
    for (bool part : {false, true}) {
      Add([&](Args& args) {
        for (int i : {0, 1}) args[form_.prefix + i] = Floats(1, g.kv_heads, 4);
        if (part) args[form_.prefix + 2] = Ints{3};
        args[form_.key_lengths] = part ? Arg(Lengths(g.keys)) : Arg(Null{});
        args[form_.lse_flag] = !part;
        if (g.queries > 1 && part) {
          args[4] = Triangle();
          args[form_.mode] = int64_t{3};
        } else {
          args[3] = source_.Random({1, g.heads, g.queries, g.keys + 4}, dtype_);
          args[4] = Mask({g.batch, 1, g.queries, g.keys + 4});
        }
      });
    }
    if (dtype_ == at::kFloat || form_.apart < 0) return;
    Add([&](Args& args) {
      const auto bytes = [&](int64_t batch, int64_t rows) {
        return LaidOut(Bytes({batch, g.kv_heads, rows, g.width}), g.layout);
      };
      for (int i : {0, 1}) {
        args[1 + i] = Tensors{bytes(g.batch, g.keys)};
        args[form_.prefix + i] = bytes(1, 3);
        args[form_.apart + 2 * i] = Scale({g.kv_heads * g.width}, dtype_);
      }
    });
  }

  // Keys and values of int8 in the shapes of a layout.
  void ByteKeys(Args& args) {
    const Geometry& g = geometry_;
    for (int i : {1, 2}) {
      args[i] = ListOf(LaidOut(Bytes({g.batch, g.kv_heads, g.keys, g.width}), g.layout), list());
    }
  }

  void Apart(Args& args, int which, int64_t mode, at::IntArrayRef sizes, bool offset) {
    const at::ScalarType dtype = mode == 0 || mode == 2 ? dtype_ : at::kFloat;
    args[form_.apart + 2 * which] = Scale(sizes, dtype);
    if (offset) args[form_.apart + 2 * which + 1] = Offset(sizes, dtype);
    args[form_.key_mode + which] = mode;
  }

  void Together(Args& args, int64_t mode, at::IntArrayRef sizes, bool offset) {
    const at::ScalarType dtype = mode == 0 ? dtype_ : at::kFloat;
    args[form_.joint] = Scale(sizes, dtype);
    if (offset) args[form_.joint + 1] = Offset(sizes, dtype);
    if (form_.joint_mode >= 0) args[form_.joint_mode] = mode;
  }

  void QuantisedPrompts() {
    const Geometry g = geometry_;
    if (form_.joint < 0) return;
    const auto lengths = [&](Args& args) {
      args[form_.lengths] = Lengths(g.queries);
      args[form_.key_lengths] = Lengths(g.keys);
    };
    for (const Ints& sizes : {Ints{2}, Ints{2, g.kv_heads, 1, g.width}}) {
      Add([&](Args& args) {
        ByteKeys(args);
        Together(args, 0, sizes, sizes.size() == 1);
        args[form_.joint_mode] = int64_t{7};  // not looked at for more than one row
        lengths(args);
      });
    }
    if (form_.apart < 0) return;
    for (bool rows : {false, true}) {
      Add([&](Args& args) {
        ByteKeys(args);
        // Scales for more rows than there are.
        const Ints sizes = rows ? Ints{g.batch, g.keys + 2} : Ints{g.kv_heads, 1, g.width};
        for (int which : {0, 1}) Apart(args, which, rows ? 1 : 0, sizes, rows);
        args[form_.lse_flag] = true;
        args[4] = Triangle();
        args[form_.mode] = int64_t{rows ? 2 : 3};
      });
    }
  }

  void QuantisedSteps() {
    const Geometry g = geometry_;
    if (form_.joint < 0) return;
    for (const Ints& sizes : {Ints{2}, Ints{2, g.kv_heads * g.width}, Ints{2, g.batch, g.keys}}) {
      const int64_t mode = sizes.size() == 3 ? 1 : 0;
      if (mode == 1 && form_.joint_mode < 0) continue;
      Add([&](Args& args) {
        ByteKeys(args);
        Together(args, mode, sizes, sizes.size() != 2);
        args[form_.key_lengths] = Lengths(g.keys);
      });
    }
    if (form_.apart < 0) return;
    const Ints shapes[] = {{1, g.kv_heads, 1, g.width},
                           {1, g.batch, g.keys},
                           {g.kv_heads},
                           {g.batch, g.kv_heads, g.keys}};
    for (int64_t mode = 0; mode < 4; ++mode) {
      Add([&](Args& args) {
        ByteKeys(args);
        for (int which : {0, 1}) Apart(args, which, mode, shapes[mode], mode % 2 == 0);
        args[form_.key_lengths] = Lengths(g.keys);
        if (mode > 1) args[form_.key_padding] = Padding(1);
      });
    }
    Add([&](Args& args) {  // keys for each channel, values for each row; those together lose
      ByteKeys(args);
      Apart(args, 0, 0, {1}, true);
      Apart(args, 1, 1, {1, g.batch, g.keys}, true);
      Together(args, 0, {2}, true);
    });
  }

  // Blocks of 4 rows, in disorder; more than the sequences need.
  static constexpr int64_t kBlock = 4, kBlocks = 9;
  void Table(Args& args) {
    const Geometry& g = geometry_;
    args[form_.table] =
        source_.Shuffled(kBlocks).narrow(0, 0, 3 * g.batch).reshape({g.batch, 3}).to(at::kInt);
    args[form_.block_size] = kBlock;
    args[form_.key_lengths] = Lengths(g.keys);
  }

  // A cache of one of its shapes.
  Tensor Cache(const Tensor& heads_first, int shape) {
    if (shape == 0) return heads_first.transpose(1, 2).contiguous().flatten(2);
    if (shape == 1) return heads_first;
    return heads_first.unflatten(3, {geometry_.width / 4, 4}).transpose(2, 3).contiguous();
  }

  void Paged() {
    const Geometry g = geometry_;
    if (form_.table < 0) return;
    for (int shape : {0, 1, 2}) {
      Add([&](Args& args) {
        Table(args);
        for (int i : {1, 2}) {
          args[i] =
              Tensors{Cache(source_.Random({kBlocks, g.kv_heads, kBlock, g.width}, dtype_), shape)};
        }
      });
    }
    if (dtype_ == at::kFloat) return;
    const auto bytes = [&](Args& args, int shape) {
      Table(args);
      for (int i : {1, 2}) {
        args[i] = Tensors{Cache(Bytes({kBlocks, g.kv_heads, kBlock, g.width}), shape)};
      }
    };
    Add([&](Args& args) {
      bytes(args, 0);
      Together(args, 0, {2, g.kv_heads, g.width}, true);
    });
    if (form_.apart < 0) return;
    const Ints shapes[] = {
        {1, g.kv_heads * g.width}, {g.batch, 12},     {g.kv_heads},
        {g.batch, g.kv_heads, 13}, {kBlocks, kBlock}, {kBlocks, g.kv_heads, kBlock}};
    for (int64_t mode = 0; mode < 6; ++mode) {
      Add([&](Args& args) {
        bytes(args, static_cast<int>(mode % 3));
        for (int which : {0, 1}) Apart(args, which, mode, shapes[mode], mode % 2 == 1);
        args[form_.lse_flag] = mode == 5;
      });
    }
  }

  void QuantisedResults() {
    const Geometry g = geometry_;
    if (form_.out_scale < 0) return;
    for (bool channels : {false, true}) {
      Add([&](Args& args) {
        const Ints sizes = channels ? Ints{g.heads, g.width} : Ints{1};
        const at::ScalarType dtype =
            channels && dtype_ == at::kBFloat16 ? at::kBFloat16 : at::kFloat;
        args[form_.out_scale] = source_.Random(sizes, dtype, 20, 90);
        if (channels) args[form_.out_scale + 1] = Offset(sizes, dtype);
        args[form_.key_lengths] = Lengths(g.keys);
      });
    }
  }

  const Form& form_;
  Source& source_;
  at::ScalarType dtype_;
  Geometry geometry_{};
  std::vector<Args> made_;
};

bool HasFeatures(const Form& form, const In& in) {
  for (int i : {form.out_scale, form.joint, form.table, form.query_padding, form.key_padding,
                form.apart, form.prefix}) {
    if (i >= 0 && in.maybe(i).has_value()) return true;
  }
  return false;
}

}  // namespace
}  // namespace infer

Row WithInferFeatures(Row row) {
  const infer::Form* form = infer::FormOf(row.op);
  if (form == nullptr) return row;
  row.inputs = All({row.inputs, [form](Source& source, at::ScalarType dtype) {
                      return infer::Calls(*form, source, dtype).Made();
                    }});
  row.reference = [form, others = row.reference](const In& in) -> Args {
    return infer::HasFeatures(*form, in) ? infer::HeadByHead(*form, in).Result()
                                         : others(in.args());
  };
  return row;
}

}  // namespace acltape::opapi::grid
