// Operators that a program calls by name (aclop) and that operators of the library compute.
#include "acl/acl_op_compiler.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// Descriptions and buffers of float32 tensors, in the order of the call. An undefined tensor stands
// for an absent one.
class NamedTensors {
 public:
  explicit NamedTensors(const Tensors& tensors) {
    for (const Tensor& tensor : tensors) {
      const bool given = tensor.defined();
      descs_.push_back(aclCreateTensorDesc(given ? ACL_FLOAT : ACL_DT_UNDEFINED,
                                           given ? static_cast<int>(tensor.dim()) : 0,
                                           given ? tensor.sizes().data() : nullptr, ACL_FORMAT_ND));
      buffers_.push_back(
          aclCreateDataBuffer(given ? tensor.data_ptr() : nullptr, given ? tensor.nbytes() : 0));
    }
  }
  NamedTensors(const NamedTensors&) = delete;
  NamedTensors& operator=(const NamedTensors&) = delete;
  ~NamedTensors() {
    for (const aclTensorDesc* desc : descs_) aclDestroyTensorDesc(desc);
    for (const aclDataBuffer* buffer : buffers_) aclDestroyDataBuffer(buffer);
  }

  int count() const { return static_cast<int>(descs_.size()); }
  const aclTensorDesc* const* descs() const { return descs_.data(); }
  aclDataBuffer* const* buffers() const { return buffers_.data(); }

 private:
  std::vector<const aclTensorDesc*> descs_;
  std::vector<aclDataBuffer*> buffers_;
};

aclError RunWith(aclopAttr* attributes, const char* name, const Tensors& inputs,
                 const Tensors& outputs, aclrtStream stream) {
  const NamedTensors in(inputs), out(outputs);
  const aclError code = aclopCompileAndExecute(name, in.count(), in.descs(), in.buffers(),
                                               out.count(), out.descs(), out.buffers(), attributes,
                                               ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, stream);
  aclopDestroyAttr(attributes);
  return code != ACL_SUCCESS ? code : aclrtSynchronizeStream(stream);
}

aclError RunByName(const char* name, const Tensors& inputs, const Tensors& outputs,
                   const char* direction, aclrtStream stream) {
  aclopAttr* attributes = aclopCreateAttr();
  aclopSetAttrString(attributes, "direction", direction);
  aclopSetAttrString(attributes, "gate_order", "ifjo");
  return RunWith(attributes, name, inputs, outputs, stream);
}

aclError RunConcat(const Tensors& inputs, const Tensor& output, int64_t dim, aclrtStream stream) {
  aclopAttr* attributes = aclopCreateAttr();
  aclopSetAttrInt(attributes, "concat_dim", dim);
  aclopSetAttrInt(attributes, "N", static_cast<int64_t>(inputs.size()));
  return RunWith(attributes, "ConcatD", inputs, {output}, stream);
}

// A layer's parameters as the adapter passes them: one matrix and one bias.
struct Layer {
  static constexpr int64_t kSteps = 4, kBatch = 3, kWidth = 5, kHidden = 6;

  Tensor x = Random({kSteps, kBatch, kWidth}), h0 = Random({1, kBatch, kHidden}),
         c0 = Random({1, kBatch, kHidden});
  Tensor weight = Random({kWidth + kHidden, 4 * kHidden}), bias = Random({4 * kHidden});

  Tensors Parameters() const {
    const Tensor all = weight.t();
    return {all.slice(1, 0, kWidth), all.slice(1, kWidth), bias, at::zeros_like(bias)};
  }
};

TEST(OperatorByName, ALayerOfAnLstmTrains) {
  const at::AutoGradMode enabled(true);
  const aclrtStream stream = TestStream();
  const Layer layer;
  for (const Tensor& leaf : {layer.x, layer.h0, layer.c0, layer.weight, layer.bias}) {
    leaf.requires_grad_();
  }
  const auto expected =
      at::lstm(layer.x, {layer.h0, layer.c0}, layer.Parameters(), true, 1, 0.0, true, false, false);
  const Tensor dy = Random({4, 3, 6}), dh = Random({1, 3, 6}), dc = Random({1, 3, 6});
  ((std::get<0>(expected) * dy).sum() + (std::get<1>(expected) * dh).sum() +
   (std::get<2>(expected) * dc).sum())
      .backward();

  const at::AutoGradMode disabled(false);
  const auto near = [](const Tensor& actual, const Tensor& wanted) {
    return at::allclose(actual.reshape(wanted.sizes()), wanted, 1e-4, 1e-5);
  };
  Tensors all;  // y, h, c, i, j, f, o, tanh(c)
  for (int k = 0; k < 8; ++k) all.push_back(at::empty({4, 3, 6}));
  const Tensor x = layer.x.detach(), w = layer.weight.detach(), b = layer.bias.detach();
  const Tensor h0 = layer.h0.detach(), c0 = layer.c0.detach();
  ASSERT_EQ(RunByName("DynamicRNN", {x, w, b, Tensor(), h0, c0}, all, "UNIDIRECTIONAL", stream), 0)
      << aclGetRecentErrMsg();
  EXPECT_TRUE(near(all[0], std::get<0>(expected)));
  EXPECT_TRUE(near(all[1][3], std::get<1>(expected)[0]));
  EXPECT_TRUE(near(all[2][3], std::get<2>(expected)[0]));

  const Tensors results{at::empty_like(w), at::empty_like(b), at::empty_like(x), at::empty({3, 6}),
                        at::empty({3, 6})};
  Tensors inputs{x, w, b, all[0], h0[0], c0[0], all[1], all[2], dy, dh[0], dc[0]};
  inputs.insert(inputs.end(), all.begin() + 3, all.end());
  inputs.push_back(at::zeros({}));  // the place of a mask
  ASSERT_EQ(RunByName("DynamicRNNGrad", inputs, results, "UNIDIRECTIONAL", stream), 0)
      << aclGetRecentErrMsg();
  EXPECT_TRUE(near(results[0], layer.weight.grad()));
  EXPECT_TRUE(near(results[1], layer.bias.grad()));
  EXPECT_TRUE(near(results[2], layer.x.grad()));
  EXPECT_TRUE(near(results[3], layer.h0.grad()[0]));
  EXPECT_TRUE(near(results[4], layer.c0.grad()[0]));
}

TEST(OperatorByName, TensorsAreConcatenatedInTheDimThatIsNamed) {
  const Tensor a = Random({2, 3, 4}), b = Random({2, 1, 4}), c = Random({2, 0, 4});
  Tensor result = at::empty({2, 4, 4});
  ASSERT_EQ(RunConcat({a, c, b}, result, 1, TestStream()), ACL_SUCCESS);
  EXPECT_TRUE(at::equal(result, at::cat({a, c, b}, 1)));
  result = at::empty({2, 3, 8});
  ASSERT_EQ(RunConcat({a, a}, result, -1, TestStream()), ACL_SUCCESS);
  EXPECT_TRUE(at::equal(result, at::cat({a, a}, -1)));
}

TEST(OperatorByName, ADimThatTensorsLackIsRefusedWithItsName) {
  aclrtStream stream = TestStream();
  const Tensor a = Random({2, 3});
  EXPECT_EQ(RunConcat({a, a}, at::empty({2, 6}), 2, stream), 100000);
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("aclop ConcatD: it takes tensors"),
            std::string::npos);
}

TEST(OperatorByName, ALayerOfAnotherDirectionFailsWithItsName) {
  aclrtStream stream = TestStream();
  const Layer layer;
  Tensors all;
  for (int k = 0; k < 8; ++k) all.push_back(at::empty({4, 3, 6}));
  EXPECT_EQ(
      RunByName("DynamicRNN", {layer.x, layer.weight, layer.bias, Tensor(), layer.h0, layer.c0},
                all, "BIDIRECTIONAL", stream),
      207000);
  EXPECT_NE(std::string(aclGetRecentErrMsg())
                .find("aclop DynamicRNN: direction is BIDIRECTIONAL; the soft device has"),
            std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
