// Rows that matrices turn before they are quantised, and products of many matrices that are added
// up or laid out in another order. References go element by element, in double precision.
#include <cmath>
#include <string>

#include "tests/opapi/grid/quantized.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Dtypes kTurnedDtypes = {at::kHalf, at::kBFloat16};
const Tolerance kTurnedSums = {4, 1e-4, false,
                               "float32 and one rounding, against double precision"};

Tensor PackedInWords(const Tensor& integers) {
  Ints sizes = integers.sizes().vec();
  sizes.back() /= 8;
  const Tensor words = at::zeros(sizes, at::kInt), dense = integers.to(at::kLong).contiguous();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    const auto bits = static_cast<uint32_t>(dense.data_ptr<int64_t>()[i] & 15) << (4 * (i % 8));
    auto& word = words.data_ptr<int32_t>()[i / 8];
    word = static_cast<int32_t>(static_cast<uint32_t>(word) | bits);
  }
  return words;
}

// --- aclnnRotateQuant, aclnnFlatQuant

std::vector<Args> RotatedRows(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](int64_t rows, int64_t size, int64_t axis, Arg mode) {
    Tensor x = source.Random({rows, 128}, dtype);
    if (rows > 1) x[0].zero_();
    inputs.push_back({x, source.Random({size, size}, dtype), Null{}, axis, std::move(mode),
                      int64_t{0}, 0.0, false});
  };
  add(3, 16, -1, "rint");
  add(2, 64, 1, "round");
  add(1, 128, -1, "floor");
  add(2, 32, 1, Null{});
  return inputs;
}

Args RotatedElementByElement(const In& in) {
  const Tensor x = Wide(in[0]), rotation = Wide(in[1]);
  const int64_t rows = x.size(0), columns = x.size(1), size = rotation.size(0);
  const std::string mode = std::holds_alternative<Null>(in.arg(4)) ? "rint" : in.text(4);
  const Tensor y = at::zeros({rows, columns}, at::kChar), scales = at::zeros({rows}, at::kFloat);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> turned(columns, 0);
    double greatest = 0;
    for (int64_t i = 0; i < columns; ++i) {
      turned[i] = at::dot(x[row].slice(0, i / size * size, i / size * size + size),
                          rotation.select(1, i % size))
                      .item<double>();
      greatest = std::max(greatest, std::abs(turned[i]));
    }
    scales[row].fill_(greatest / 127);
    for (int64_t i = 0; i < columns && greatest > 0; ++i) {
      const double step = turned[i] * 127 / greatest;
      y[row][i].fill_(mode == "floor"   ? std::floor(step)
                      : mode == "round" ? std::round(step)
                                        : std::nearbyint(step));
    }
  }
  return {y, scales};
}

std::vector<Args> FlatRows(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](const Ints& sizes, double ratio) {
    inputs.push_back({source.Random(sizes, dtype), source.Random({sizes[1], sizes[1]}, dtype),
                      source.Random({sizes[2], sizes[2]}, dtype), ratio});
  };
  add({3, 5, 8}, 1);
  add({1, 1, 16}, 0.5);
  add({2, 3, 24}, 0.77);
  return inputs;
}

Args FlatElementByElement(const In& in) {
  const Tensor x = Wide(in[0]), left = Wide(in[1]), right = Wide(in[2]);
  const Tensor whole = at::zeros(x.sizes(), at::kDouble),
               scales = at::zeros({x.size(0)}, at::kFloat);
  for (int64_t k = 0; k < x.size(0); ++k) {
    const Tensor turned = left.mm(x[k].mm(right));
    const double scale = turned.abs().max().item<double>() / (7 / in.real(3));
    scales[k].fill_(scale);
    for (int64_t i = 0; i < x.size(1); ++i) {
      for (int64_t j = 0; j < x.size(2); ++j) {
        const double step = std::nearbyint(turned[i][j].item<double>() / scale);
        whole[k][i][j].fill_(std::clamp(step, -8.0, 7.0));
      }
    }
  }
  return {PackedInWords(whole), scales};
}

// --- Products

std::vector<Args> SummedProducts(Source& source, at::ScalarType) {
  std::vector<Args> inputs;
  for (const Ints& sizes : {Ints{3, 4, 6, 5}, Ints{1, 1, 1, 1}, Ints{2, 3, 16, 32}}) {
    const int64_t batch = sizes[0], rows = sizes[1], inner = sizes[2], columns = sizes[3];
    inputs.push_back({source.Random({batch, rows, inner}, at::kChar, -100, 100),
                      source.Random({batch, inner, columns}, at::kChar, -100, 100),
                      source.Random({batch, rows}, at::kFloat, 0.001, 0.01),
                      source.Random({columns}, at::kBFloat16, 0.001, 0.01), Null{}, Null{}, Null{},
                      Null{}, Null{}, false, false, int64_t{0}, Ints{0}, false});
  }
  return inputs;
}

Tensor SumElementByElement(const In& in) {
  const Tensor a = Wide(in[0]), b = Wide(in[1]);
  const Tensor out = at::zeros({a.size(1), b.size(2)}, at::kDouble);
  for (int64_t i = 0; i < a.size(1); ++i) {
    for (int64_t j = 0; j < b.size(2); ++j) {
      double sum = 0;
      for (int64_t k = 0; k < a.size(0); ++k) {
        sum += at::dot(a[k][i], b[k].select(1, j)).item<double>() * in[2][k][i].item<float>();
      }
      out[i][j].fill_(sum * in[3][j].item().toDouble());
    }
  }
  return out.to(at::kBFloat16);
}

std::vector<Args> LaidOutProducts(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const bool rows_first : {false, true}) {
    for (int parts : {1, 2, 4}) {
      const Tensor x =
          rows_first ? source.Random({5, 4, 16}, dtype) : source.Random({4, 5, 16}, dtype);
      inputs.push_back({x, source.Random({4, 16, 32}, dtype), Null{}, Null{},
                        rows_first ? Ints{1, 0, 2} : Ints{0, 1, 2}, Ints{0, 1, 2}, Ints{1, 0, 2},
                        int64_t{0}, parts});
    }
  }
  return inputs;
}

Tensor LaidOutElementByElement(const In& in) {
  const bool rows_first = in.ints(4)[0] == 1;
  const Tensor x = Wide(in[0]), weight = Wide(in[1]);
  const int64_t batch = weight.size(0), columns = weight.size(2), parts = in.integer(8);
  const int64_t rows = x.size(rows_first ? 0 : 1), each = batch / parts;
  const Tensor out = parts == 1 ? at::zeros({rows, batch, columns}, at::kDouble)
                                : at::zeros({parts, rows, each * columns}, at::kDouble);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t row = 0; row < rows; ++row) {
      const Tensor product = (rows_first ? x[row][b] : x[b][row]).unsqueeze(0).mm(weight[b])[0];
      if (parts == 1) {
        out[row][b].copy_(product);
      } else {
        out[b / each][row].narrow(0, b % each * columns, columns).copy_(product);
      }
    }
  }
  return out.to(in[0].scalar_type());
}

std::vector<Args> Contractions(Source& source, at::ScalarType dtype) {
  return {
      {Tensors{source.Random({5}, dtype), source.Random({3}, dtype)}, "a,b->ab"},
      {Tensors{source.Random({2, 3, 4, 6}, dtype), source.Random({2, 3, 4, 5, 6}, dtype)},
       "abcd,abced->abce"},
      {Tensors{source.Random({2, 1, 2, 3}, dtype),
               source.Random({2, 1, 2, 3, 7}, dtype).transpose(3, 4)},
       "abcd,abced->abce"},
  };
}

Tensor ContractedElementByElement(const In& in) {
  const bool whole = !at::isFloatingType(in.list(0)[0].scalar_type());
  const at::ScalarType wide = whole ? at::kLong : at::kDouble;
  const Tensor a = in.list(0)[0].to(wide), b = in.list(0)[1].to(wide);
  if (a.dim() == 1) {
    const Tensor out = at::zeros({a.size(0), b.size(0)}, wide);
    for (int64_t i = 0; i < a.size(0); ++i) out[i].copy_(b * a[i]);
    return out.to(in.list(0)[0].scalar_type());
  }
  const Tensor out = at::zeros({a.size(0), a.size(1), a.size(2), b.size(3)}, wide);
  for (int64_t i = 0; i < out.size(0); ++i) {
    for (int64_t j = 0; j < out.size(1); ++j) {
      for (int64_t k = 0; k < out.size(2); ++k) {
        for (int64_t d = 0; d < a.size(3); ++d) {
          out[i][j][k] += b[i][j][k].select(1, d) * a[i][j][k][d];
        }
      }
    }
  }
  return out.to(in.list(0)[0].scalar_type());
}

// --- aclnnAddLora

std::vector<Args> AdapterProducts(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](bool down, int64_t layer, int64_t first, const Ints& adapters) {
    const auto rows = static_cast<int64_t>(adapters.size());
    const int64_t inner = down ? 32 : 16;
    inputs.push_back({source.Random({rows, 48}, dtype), source.Random({rows, inner}, dtype),
                      source.Random({3, 2, 16, 16}, dtype), at::tensor(adapters, at::kInt),
                      down ? Arg(source.Random({3, 2, 16, inner}, dtype)) : Arg(Null{}), layer, 0.5,
                      first, int64_t{16}});
  };
  add(true, 1, 16, {2, 0, 2, 1});
  add(false, 0, 0, {1, 1});
  add(true, 0, 32, {0});
  return inputs;
}

Tensor AdapterRowByRow(const In& in) {
  const Tensor out = Wide(in[0]).clone();
  for (int64_t row = 0; row < out.size(0); ++row) {
    const int64_t adapter = in[3][row].item().toLong();
    Tensor low = Wide(in[1][row]);
    if (!std::holds_alternative<Null>(in.arg(4))) {
      low = Wide(in[4][adapter][in.integer(5)]).mv(low);
    }
    const Tensor up = Wide(in[2][adapter][in.integer(5)]);
    for (int64_t i = 0; i < up.size(0); ++i) {
      out[row][in.integer(7) + i] += at::dot(up[i], low).item<double>() * in.real(6);
    }
  }
  return out.to(in[0].scalar_type());
}

}  // namespace

Rows TurnedRows() {
  Rows rows = {
      {"aclnnRotateQuant", RotatedRows, kTurnedDtypes, RotatedElementByElement, kTurnedSums},
      {"aclnnFlatQuant", FlatRows, kTurnedDtypes, FlatElementByElement, kTurnedSums},
      {"aclnnQuantMatmulReduceSumWeightNz",
       SummedProducts,
       {at::kBFloat16},
       SumElementByElement,
       kTurnedSums},
      {"aclnnTransposeBatchMatMulWeightNz", LaidOutProducts, kTurnedDtypes, LaidOutElementByElement,
       kTurnedSums},
      {"aclnnEinsum",
       Contractions,
       {at::kHalf, at::kFloat, at::kShort, at::kInt, at::kLong},
       ContractedElementByElement,
       kTurnedSums},
      {"aclnnAddLora", AdapterProducts, {at::kHalf}, AdapterRowByRow, kTurnedSums},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
