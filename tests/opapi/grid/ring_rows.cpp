// Two results of attention joined: a formula of doubles, one row of one head at a time.
#include <cmath>
#include <string>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kJoined = {16, 1e-5, false, "exponentials of float32 against those of double"};

struct RingState {
  double maximum, sum;
};

// Where the statistics of a row of a head lie in a tensor of 8 columns, counted in its rows.
using StatisticPlace = std::function<int64_t(int64_t row, int64_t head)>;

// Each row of each head: [rows, heads, width], whatever the layout.
std::tuple<Tensor, Tensor, Tensor> Joined(const In& in, const Tensor& previous,
                                          const Tensor& current, const StatisticPlace& place) {
  Tensors dense;
  for (int i : {1, 2, 4, 5}) {
    dense.push_back(in[i].to(at::kDouble).reshape({-1, 8}).select(1, 0).contiguous());
  }
  const Tensor out = at::empty(previous.sizes(), at::kDouble);
  const Tensor maximum = at::empty({dense[0].size(0), 8}), sum = at::empty_like(maximum);
  for (int64_t row = 0; row < out.size(0); ++row) {
    for (int64_t head = 0; head < out.size(1); ++head) {
      const int64_t entry = place(row, head);
      const auto number = [&](int i) { return dense[i].data_ptr<double>()[entry]; };
      const RingState a = {number(0), number(1)}, b = {number(2), number(3)};
      const double top = std::max(a.maximum, b.maximum);
      const double of_a = a.sum * std::exp(a.maximum - top),
                   of_b = b.sum * std::exp(b.maximum - top);
      maximum[entry].fill_(top);
      sum[entry].fill_(of_a + of_b);
      out[row][head].copy_(previous[row][head] * (of_a / (of_a + of_b)) +
                           current[row][head] * (of_b / (of_a + of_b)));
    }
  }
  return {out, maximum.view(in[1].sizes()), sum.view(in[1].sizes())};
}

// [sequence, batch, heads * width] with statistics of [batch, heads, sequence, 8].
std::tuple<Tensor, Tensor, Tensor> JoinedBatches(const In& in) {
  const int64_t positions = in[0].size(0), batches = in[0].size(1), heads = in[1].size(1);
  const auto rows = [&](int i) {
    return in[i].to(at::kDouble).reshape({positions * batches, heads, -1});
  };
  auto [out, maximum, sum] = Joined(in, rows(0), rows(3), [=](int64_t row, int64_t head) {
    return (row % batches * heads + head) * positions + row / batches;
  });
  return {out.view(in[0].sizes()).to(in[0].scalar_type()), maximum, sum};
}

std::tuple<Tensor, Tensor, Tensor> JoinedSequences(const In& in, bool like_input) {
  const int64_t heads = in[0].size(1);
  const Tensor ends = in[6];
  auto [out, maximum, sum] =
      Joined(in, in[0].to(at::kDouble), in[3].to(at::kDouble), [=](int64_t row, int64_t head) {
        if (like_input) return row * heads + head;
        int64_t s = 0;
        while (ends[s + 1].item<int64_t>() <= row) ++s;
        const auto first = ends[s].item<int64_t>(), count = ends[s + 1].item<int64_t>() - first;
        return first * heads + head * count + row - first;
      });
  return {out.to(in[0].scalar_type()), maximum, sum};
}

Args RingCall(Source& source, at::ScalarType dtype, const Ints& attended, const Ints& statistic,
              const Arg& ends, const char* layout) {
  Args args;
  Ints narrow = statistic;
  narrow.back() = 1;
  for (int part : {0, 1}) {
    args.emplace_back(source.Random(attended, dtype));
    const Tensor top = source.Random(narrow, at::kFloat).expand(statistic);
    args.emplace_back(part == 0 ? top.contiguous() : top);
    args.emplace_back(source.Random(narrow, at::kFloat, 0.5, 4).expand(statistic).contiguous());
  }
  args.push_back(ends);
  args.emplace_back(layout);
  return args;
}

std::vector<Args> RingCalls(Source& source, at::ScalarType dtype) {
  const Tensor ends = at::tensor({0, 3, 3, 7}, at::kLong);
  return {RingCall(source, dtype, {5, 2, 12}, {2, 3, 5, 8}, Null{}, "SBH"),
          RingCall(source, dtype, {7, 2, 64}, {7, 2, 8}, ends, "TND"),
          RingCall(source, dtype, {7, 3, 128}, {7, 3, 8}, ends, "TND")};
}

}  // namespace

Rows RingRows() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnRingAttentionUpdate", RingCalls, dtypes,
       [](const In& in) {
         return std::string(in.text(7)) == "SBH" ? JoinedBatches(in) : JoinedSequences(in, false);
       },
       kJoined},
      {"aclnnRingAttentionUpdateV2",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> calls;
         for (const char* order : {"", "SBH", "TND"}) {
           for (Args& call : RingCalls(source, dtype)) {
             call.emplace_back(order);
             calls.push_back(call);
           }
         }
         return calls;
       },
       dtypes,
       [](const In& in) {
         return std::string(in.text(7)) == "SBH"
                    ? JoinedBatches(in)
                    : JoinedSequences(in, std::string(in.text(8)) == "TND");
       },
       kJoined},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
