// Training of recurrent layers against the library's automatic differentiation, with sequences of
// one length and of several.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

constexpr int64_t kSteps = 5, kBatch = 3, kWidth = 4, kHidden = 6;

struct Case {
  int64_t layers, directions;
  bool bias, packed;

  int64_t cells() const { return layers * directions; }
  Ints state() const { return {cells(), kBatch, kHidden}; }
  Ints input() const {
    return packed ? Ints{kSteps * kBatch, kWidth} : Ints{kSteps, kBatch, kWidth};
  }
  Ints output() const { return {kSteps, kBatch, kHidden * directions}; }
};

const Case kCases[] = {{1, 1, true, false}, {2, 2, true, false}, {2, 1, false, false},
                       {1, 1, true, true},  {2, 2, true, true},  {2, 2, false, true}};

// Two sequences of all steps and one of two: how many have each step.
const Ints kBatchSizes = {3, 3, 2, 2, 2};

Tensor Parameter(const Ints& sizes) {
  return Random(sizes, at::kFloat, -0.5, 0.5).requires_grad_();
}

Tensors Parameters(const Case& c, int64_t gates) {
  Tensors params;
  for (int64_t cell = 0; cell < c.cells(); ++cell) {
    const int64_t width = cell < c.directions ? kWidth : kHidden * c.directions;
    params.push_back(Parameter({gates * kHidden, width}));
    params.push_back(Parameter({gates * kHidden, kHidden}));
    for (int i = 0; c.bias && i < 2; ++i) params.push_back(Parameter({gates * kHidden}));
  }
  return params;
}

// The rows that count of [steps, batch, width], one after the other, as the library packs them.
Tensor Packed(const Tensor& steps) {
  Tensors rows;
  for (int64_t t = 0; t < kSteps; ++t) rows.push_back(steps[t].narrow(0, 0, kBatchSizes[t]));
  return at::cat(rows);
}

// The other way round, with zeros in the gaps.
Tensor WithGaps(const Tensor& rows) {
  Tensors steps;
  int64_t first = 0;
  for (int64_t count : kBatchSizes) {
    const Tensor gap = at::zeros({kBatch - count, rows.size(1)});
    steps.push_back(at::cat({rows.narrow(0, first, count), gap}));
    first += count;
  }
  return at::stack(steps);
}

Tensors Plain(const Tensors& list) {
  Tensors detached;
  for (const Tensor& tensor : list) detached.push_back(tensor.detach());
  return detached;
}

Tensors Traces(const Case& c) {
  Tensors traces;
  for (int64_t cell = 0; cell < c.cells(); ++cell) {
    traces.push_back(at::empty({kSteps, kBatch, kHidden}));
  }
  return traces;
}

// The content of an input's gaps must not matter, so they are filled with NaN.
Tensor AsInput(const Case& c, const Tensor& x) {
  if (!c.packed) return x.detach().clone();
  const Tensor counted = WithGaps(at::ones({12, 1})).gt(0);
  return at::where(counted, x.detach(), at::full({}, NAN)).reshape(c.input());
}

Arg BatchSizes(const Case& c) {
  return c.packed ? Arg(at::tensor(kBatchSizes, at::kLong)) : Null{};
}

void ExpectNear(const Tensor& actual, const Tensor& expected, const char* what) {
  EXPECT_TRUE(at::allclose(actual.reshape(expected.sizes()), expected, 1e-4, 1e-5)) << what;
}

void ExpectGradients(const Tensors& params, const Tensor& x, const Tensor& dx,
                     const Tensors& dparams) {
  ExpectNear(dx, x.grad(), "input");
  for (size_t k = 0; k < params.size(); ++k) {
    ExpectNear(dparams[k], params[k].grad(), ("parameter " + std::to_string(k)).c_str());
  }
}

Tensors UnwrittenAll(const Tensors& models) {
  Tensors result;
  for (const Tensor& model : models) result.push_back(Unwritten(model.detach()));
  return result;
}

struct BatchFirstArguments {
  int dy, batch_first, dx;
};

// The gradient of an input whose first dim is the batch is the same.
void ExpectBatchFirst(const char* name, Args args, const BatchFirstArguments& at) {
  const Tensor expected = std::get<Tensor>(args[at.dx]).transpose(0, 1).contiguous();
  const Tensor dx = Unwritten(expected);
  for (const int i : {0, at.dy}) args[i] = std::get<Tensor>(args[i]).transpose(0, 1).contiguous();
  args[at.batch_first] = true;
  args[at.dx] = dx;
  if (std::string(name) == "aclnnLstmBackward") args[17] = false;  // train: nothing is dropped
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  EXPECT_TRUE(SameBits(dx, expected)) << name;
}

void TrainLstm(const Case& c) {
  const at::AutoGradMode enabled(true);
  const Tensor x = Parameter({kSteps, kBatch, kWidth});
  const Tensor h0 = Parameter(c.state()), c0 = Parameter(c.state());
  const Tensors params = Parameters(c, 4);
  const bool both = c.directions == 2;
  const auto expected =
      c.packed ? at::lstm(Packed(x), at::tensor(kBatchSizes, at::kLong), {h0, c0}, params, c.bias,
                          c.layers, 0.0, true, both)
               : at::lstm(x, {h0, c0}, params, c.bias, c.layers, 0.0, true, both, false);
  const Tensor y_expected = c.packed ? WithGaps(std::get<0>(expected)) : std::get<0>(expected);
  const Tensor dy = Random(c.output()), dh = Random(c.state()), dc = Random(c.state());
  ((y_expected * dy).sum() + (std::get<1>(expected) * dh).sum() +
   (std::get<2>(expected) * dc).sum())
      .backward();

  const Tensor y = at::empty(c.output()), hy = at::empty(c.state()), cy = at::empty(c.state());
  std::vector<Tensors> traces;
  for (int k = 0; k < 7; ++k) traces.push_back(Traces(c));
  Args forward = {AsInput(c, x),
                  Plain(params),
                  Plain({h0, c0}),
                  BatchSizes(c),
                  c.bias,
                  c.layers,
                  0.0,
                  true,
                  both,
                  false,
                  y,
                  hy,
                  cy};
  forward.insert(forward.end(), traces.begin(), traces.end());
  ASSERT_EQ(RunOperator("aclnnLSTM", forward), 0) << LastMessage();
  ExpectNear(y, y_expected.detach(), "y");
  ExpectNear(hy, std::get<1>(expected).detach(), "hy");
  ExpectNear(cy, std::get<2>(expected).detach(), "cy");

  const Tensor dx = at::empty(c.input()), dh0 = at::empty(c.state()), dc0 = at::empty(c.state());
  const Tensors dparams = UnwrittenAll(params);
  Args backward = {AsInput(c, x), Plain({h0, c0}), Plain(params), dy, dh, dc};
  backward.insert(backward.end(), traces.begin(), traces.end());
  backward.insert(backward.end(), {BatchSizes(c), c.bias, c.layers, 0.0, true, both, false,
                                   Ints{1, 1, 1, 1}, dx, dh0, dc0, dparams});
  ASSERT_EQ(RunOperator("aclnnLstmBackward", backward), 0) << LastMessage();
  ExpectGradients(params, x, dx, dparams);
  ExpectNear(dh0, h0.grad(), "h0");
  ExpectNear(dc0, c0.grad(), "c0");
  if (c.packed) return;
  ExpectBatchFirst("aclnnLstmBackward", backward, {.dy = 3, .batch_first = 19, .dx = 21});
}

void TrainGru(const Case& c) {
  const at::AutoGradMode enabled(true);
  const Tensor x = Parameter({kSteps, kBatch, kWidth}), h0 = Parameter(c.state());
  const Tensors params = Parameters(c, 3);
  const bool both = c.directions == 2;
  const auto expected = c.packed ? at::gru(Packed(x), at::tensor(kBatchSizes, at::kLong), h0,
                                           params, c.bias, c.layers, 0.0, true, both)
                                 : at::gru(x, h0, params, c.bias, c.layers, 0.0, true, both, false);
  const Tensor y_expected = c.packed ? WithGaps(std::get<0>(expected)) : std::get<0>(expected);
  const Tensor dy = Random(c.output()), dh = Random(c.state());
  ((y_expected * dy).sum() + (std::get<1>(expected) * dh).sum()).backward();

  const Tensor y = at::empty(c.output()), hy = at::empty(c.state());
  std::vector<Tensors> traces;
  for (int k = 0; k < 5; ++k) traces.push_back(Traces(c));
  Args forward = {AsInput(c, x), Plain(params), h0.detach(), BatchSizes(c), c.bias, c.layers,
                  0.0,           true,          both,        false,         y,      hy};
  forward.insert(forward.end(), traces.begin(), traces.end());
  ASSERT_EQ(RunOperator("aclnnGRU", forward), 0) << LastMessage();
  ExpectNear(y, y_expected.detach(), "y");
  ExpectNear(hy, std::get<1>(expected).detach(), "hy");

  const Tensor dx = at::empty(c.input()), dh0 = at::empty(c.state());
  const Tensors dparams = UnwrittenAll(params);
  Args backward = {AsInput(c, x), Plain(params), h0.detach(), dy, dh};
  backward.insert(backward.end(), traces.begin(), traces.end());
  backward.insert(backward.end(), {BatchSizes(c), c.bias, c.layers, both, false, dx, dh0, dparams});
  ASSERT_EQ(RunOperator("aclnnGRUBackward", backward), 0) << LastMessage();
  ExpectGradients(params, x, dx, dparams);
  ExpectNear(dh0, h0.grad(), "h0");
  if (c.packed) return;
  ExpectBatchFirst("aclnnGRUBackward", backward, {.dy = 3, .batch_first = 14, .dx = 15});
}

TEST(Recurrent, AnLstmTrains) {
  for (const Case& c : kCases) TrainLstm(c);
}

TEST(Recurrent, AGruTrains) {
  for (const Case& c : kCases) TrainGru(c);
}

TEST(Recurrent, AbsentGradientsOfAnLstmCountAsZeros) {
  const Case c{1, 1, true, false};
  const Tensor x = Random(c.input()), state = Random(c.state());
  const Tensors params = Plain(Parameters(c, 4));
  Args args = {x, Tensors{state, state}, params, Null{}, Null{}, Null{}};
  for (int k = 0; k < 7; ++k) args.push_back(Tensors{Random({kSteps, kBatch, kHidden})});
  const Tensor dx = Unwritten(x), dh0 = Unwritten(state);
  const Tensors dparams = UnwrittenAll(params);
  args.insert(args.end(), {Null{}, true, int64_t{1}, 0.0, true, false, false, Null{}, dx, dh0,
                           Unwritten(state), dparams});
  ASSERT_EQ(RunOperator("aclnnLstmBackward", args), 0) << LastMessage();
  EXPECT_TRUE(dx.eq(0).all().item<bool>());
  EXPECT_TRUE(dparams[0].eq(0).all().item<bool>());
}

// Rows of the input that are no multiple of the steps.
TEST(Recurrent, RowsThatDoNotSplitIntoStepsAreRefused) {
  const Case c{1, 1, true, true};
  const Tensor x = Random({14, kWidth}), state = Random(c.state());
  Args args = {x,
               Plain(Parameters(c, 3)),
               state,
               BatchSizes(c),
               true,
               int64_t{1},
               0.0,
               false,
               false,
               false,
               at::empty(c.output()),
               at::empty(c.state())};
  for (int k = 0; k < 5; ++k) args.push_back(Null{});
  EXPECT_EQ(RunOperator("aclnnGRU", args), 161002);
  EXPECT_EQ(LastMessage(),
            "aclnnGRU: input has 14 rows, which do not split into 5 steps of one batch.");
}

}  // namespace
}  // namespace acltape::opapi
