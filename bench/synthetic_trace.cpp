#include "bench/synthetic_trace.h"

#include <random>
#include <vector>

#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::bench {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the words of the trace builder

constexpr int64_t kBatch = 32;
constexpr int64_t kLastBatch = 20;
constexpr int64_t kStepsPerEpoch = 50;

struct Layer {
  int64_t in = 0;
  int64_t out = 0;
  Tensor weight;  // [out, in]
  Tensor bias;
  Tensor momentum;
};

class Training {
 public:
  Training(const std::string& path, const SyntheticTraining& options)
      : trace_(path), options_(options), random_(options.seed) {
    constexpr int64_t kWidths[] = {64, 96, 128, 160};
    int64_t width = kWidths[random_() % 4];
    for (int64_t l = 0; l < options.layers; ++l) {
      const int64_t out = kWidths[random_() % 4];
      layers_.push_back({width, out, trace_.NewTensor({out, width}), trace_.NewTensor({out}),
                         trace_.NewTensor({out, width})});
      width = out;
    }
  }

  int64_t Write() {
    for (int64_t step = 0; trace_.last_call() < options_.calls; ++step) Step(step);
    trace_.Finish();
    return trace_.last_call();
  }

 private:
  static Tensor Transposed(const Tensor& matrix) {
    const auto& shape = matrix.layout.shape;
    return TraceBuilder::View(matrix, {shape[1], shape[0]}, {1, shape[1]});
  }

  void Step(int64_t step) {
    const int64_t batch = step % kStepsPerEpoch == kStepsPerEpoch - 1 ? kLastBatch : kBatch;
    const double rate = 0.1 / static_cast<double>(1 + step / kStepsPerEpoch);
    std::vector<Tensor> inputs = {trace_.NewTensor({batch, layers_[0].in})};
    std::vector<Tensor> sums;
    for (const Layer& layer : layers_) {
      const Tensor transposed = Transposed(layer.weight);
      trace_.Call("aten::t", {In("self", layer.weight)}, {Out("out", transposed)});
      sums.push_back(trace_.NewTensor({batch, layer.out}));
      trace_.Call("aten::addmm",
                  {In("self", layer.bias), In("mat1", inputs.back()), In("mat2", transposed),
                   Int("beta", 1), Int("alpha", 1)},
                  {Out("out", sums.back())});
      inputs.push_back(trace_.NewTensor({batch, layer.out}));
      trace_.Call("aten::relu", {In("self", sums.back())}, {Out("out", inputs.back())});
    }
    const Tensor loss = trace_.NewTensor({});
    trace_.Call("aten::mean", {In("self", inputs.back())}, {Out("out", loss)});
    Tensor gradient = trace_.NewTensor({batch, layers_.back().out});
    trace_.Call("aten::expand", {In("self", loss)}, {Out("out", loss)});
    trace_.Call("aten::div.Scalar", {In("self", loss), Int("other", batch * layers_.back().out)},
                {Out("out", gradient)});
    for (size_t l = layers_.size(); l-- > 0;) gradient = Backward(l, inputs, sums, gradient, rate);
    trace_.Call("aten::_local_scalar_dense", {In("self", loss)},
                {Real("out", static_cast<double>(random_() % 1000), storage::Direction::kOut)});
  }

  Tensor Backward(size_t l, const std::vector<Tensor>& inputs, const std::vector<Tensor>& sums,
                  const Tensor& gradient, double rate) {
    const Layer& layer = layers_[l];
    const int64_t batch = gradient.layout.shape[0];
    const Tensor through = trace_.NewTensor({batch, layer.out});
    trace_.Call("aten::threshold_backward",
                {In("grad_output", gradient), In("self", sums[l]), Int("threshold", 0)},
                {Out("out", through)});
    const Tensor transposed = Transposed(through);
    trace_.Call("aten::t", {In("self", through)}, {Out("out", transposed)});
    const Tensor of_weight = trace_.NewTensor({layer.out, layer.in});
    trace_.Call("aten::mm", {In("self", transposed), In("mat2", inputs[l])},
                {Out("out", of_weight)});
    const Tensor of_bias = trace_.NewTensor({layer.out});
    trace_.Call("aten::sum.dim_IntList", {In("self", through), Ints("dim", {0})},
                {Out("out", of_bias)});
    const Tensor of_input = trace_.NewTensor({batch, layer.in});
    trace_.Call("aten::mm", {In("self", through), In("mat2", layer.weight)},
                {Out("out", of_input)});
    // The halves of the weight are updated on their own, as views.
    trace_.Call("aten::mul_.Scalar", {Written("self", layer.momentum), Real("other", 0.9)});
    trace_.Call("aten::add_.Tensor",
                {Written("self", layer.momentum), In("other", of_weight), Int("alpha", 1)});
    for (const int64_t half : {int64_t{0}, int64_t{1}}) {
      const int64_t columns = layer.in / 2;
      const auto cut = [&](const Tensor& matrix) {
        return TraceBuilder::View(matrix, {layer.out, columns}, {layer.in, 1}, half * columns);
      };
      const Tensor part = cut(layer.weight);
      trace_.Call("aten::slice.Tensor", {In("self", layer.weight), Int("dim", 1)},
                  {Out("out", part)});
      trace_.Call("aten::add_.Tensor",
                  {Written("self", part), In("other", cut(layer.momentum)), Real("alpha", -rate)});
    }
    trace_.Call("aten::add_.Tensor",
                {Written("self", layer.bias), In("other", of_bias), Real("alpha", -rate)});
    return of_input;
  }

  TraceBuilder trace_;
  SyntheticTraining options_;
  std::mt19937_64 random_;
  std::vector<Layer> layers_;
};

class Serving {
 public:
  Serving(const std::string& path, uint64_t seed) : trace_(path), random_(seed) {
    trace_.LeaveOutExecutors();
    main_ = trace_.NewStream();
    side_ = trace_.NewStream();
    fork_ = trace_.NewEvent();
    join_ = trace_.NewEvent();
    input_ = trace_.Pinned({kBatch, kWidth});
    pool_ = trace_.Device({64, kBatch, kWidth});
    for (Tensor& workspace : workspaces_) workspace = trace_.Device({1024});
    for (int64_t l = 0; l < kLayers; ++l) weights_.push_back(trace_.Device({kWidth, kWidth}));
  }

  int64_t Write(int64_t calls) {
    while (trace_.last_call() < calls) Step();
    trace_.Finish();
    return trace_.last_call();
  }

 private:
  static constexpr int64_t kWidth = 64;
  static constexpr int64_t kLayers = 8;

  // One of the pieces of the block, in turn, from another one on in each step.
  Tensor Temporary() {
    next_ = (next_ + 1) % 64;
    return TraceBuilder::View(pool_, {kBatch, kWidth}, {kWidth, 1}, next_ * kBatch * kWidth);
  }

  Tensor Matmul(int64_t stream, const Tensor& x, const Tensor& weight) {
    const Tensor out = Temporary();
    trace_.OpWithWorkspace(
        "aclnnMatmul", stream,
        {In("self", x), In("mat2", weight), Int("cubeMathType", 0), Out("out", out)},
        workspaces_[stream == main_ ? 0 : 1]);
    return out;
  }

  void Step() {
    Tensor x = Temporary();
    const int64_t bytes = kBatch * kWidth * 4;
    trace_.Copy(Out("dst", trace_.Bytes(x)), In("src", trace_.Bytes(input_)), bytes, 1, main_);
    for (const Tensor& weight : weights_) {
      trace_.Record(fork_, main_);
      trace_.Wait(side_, fork_);
      const Tensor left = Matmul(main_, x, weight);
      const Tensor right = Matmul(side_, x, weight);
      trace_.Record(join_, side_);
      trace_.Wait(main_, join_);
      x = Temporary();
      trace_.Op("aclnnAdd", main_,
                {In("self", left), In("other", right),
                 Scalar("alpha", 1.0 / static_cast<double>(1 + random_() % 4)), Out("out", x)});
    }
    trace_.Copy(Int("dst", 0x900000), In("src", trace_.Bytes(x)), bytes, 2, main_);
    trace_.Synchronize(main_);
    Temporary();
  }

  AclTraceBuilder trace_;
  std::mt19937_64 random_;
  int64_t main_ = 0, side_ = 0, fork_ = 0, join_ = 0;
  Tensor input_, pool_, workspaces_[2];
  std::vector<Tensor> weights_;
  int64_t next_ = 0;
};

class Graphs {
 public:
  Graphs(const std::string& path, const SyntheticGraphs& options)
      : trace_(path), options_(options) {
    trace_.LeaveOutExecutors();
    trace_.On(1);
    stream_ = trace_.NewStream();
    block_ = trace_.Device({(kWeights + options.graphs * kOwn) * kElements});
    for (int64_t i = 0; i < kWeights; ++i) weights_.push_back(NewTensor());
  }

  int64_t Write() {
    std::vector<int64_t> models;
    for (int64_t graph = 0; graph < options_.graphs; ++graph) models.push_back(Capture());
    for (int64_t i = 0; i < options_.executions; ++i) {
      for (const int64_t model : models) trace_.Execute(model, stream_);
    }
    trace_.Synchronize(stream_);
    trace_.Finish();
    return trace_.last_call();
  }

 private:
  static constexpr int64_t kElements = 64;
  static constexpr int64_t kWeights = 250;
  static constexpr int64_t kOwn = 8;  // tensors of a graph

  AclTraceBuilder::InBlock NewTensor() {
    return trace_.NewInBlock(block_, {kElements}, next_++ * kElements * 4);
  }

  int64_t Capture() {
    std::vector<AclTraceBuilder::InBlock> own;
    for (int64_t i = 0; i < kOwn; ++i) own.push_back(NewTensor());
    trace_.BeginCapture(stream_);
    for (int64_t i = 0; i < options_.calls; ++i) {
      const auto& self = own[i % kOwn];
      const auto& other = weights_[i % kWeights];
      const auto& out = own[(i + 1) % kOwn];
      if (options_.both_levels) {
        trace_.Call("aten::mul.out", {In("self", self.tensor), In("other", other.tensor),
                                      Written("out", out.tensor)});
        trace_.Leaf(trace_.last_call());
      }
      trace_.Op("aclnnMul", stream_,
                {In("self", self.place), In("other", other.place), Out("out", out.place)});
      trace_.Leaf(0);
    }
    return trace_.EndCapture(stream_);
  }

  AclTraceBuilder trace_;
  const SyntheticGraphs options_;
  int64_t stream_ = 0;
  int64_t next_ = 0;
  Tensor block_;
  std::vector<AclTraceBuilder::InBlock> weights_;
};

}  // namespace

int64_t WriteSyntheticServing(const std::string& path, int64_t calls, uint64_t seed) {
  return Serving(path, seed).Write(calls);
}

int64_t WriteSyntheticGraphs(const std::string& path, const SyntheticGraphs& graphs) {
  return Graphs(path, graphs).Write();
}

int64_t WriteSyntheticTraining(const std::string& path, const SyntheticTraining& training) {
  return Training(path, training).Write();
}

}  // namespace acltape::bench
