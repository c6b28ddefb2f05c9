// libatb.so: operations of the adapter's transformers, issued as calls of operators.
#include "runtime/compat/atb.h"

#include <algorithm>
#include <memory>

#include "acl/acl.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

atb::Tensor As(const at::Tensor& tensor) {
  atb::Tensor result;
  const auto dtype = tensor.scalar_type();
  result.desc.dtype = dtype == at::kHalf    ? ACL_FLOAT16
                      : dtype == at::kFloat ? ACL_FLOAT
                      : dtype == at::kInt   ? ACL_INT32
                                            : ACL_DT_UNDEFINED;
  result.desc.format = ACL_FORMAT_ND;
  result.desc.shape.dimNum = static_cast<uint64_t>(tensor.dim());
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), result.desc.shape.dims);
  result.deviceData = tensor.data_ptr();
  result.dataSize = atb::Utils::GetTensorSize(result);
  return result;
}

// Callers have a class of the same layout that grows.
void Fill(atb::SVector<atb::Tensor>& list, const std::vector<at::Tensor>& tensors) {
  struct Layout {
    size_t capacity, size;
    atb::Tensor storage[65];
    atb::Tensor* heap;
  };
  auto* layout = reinterpret_cast<Layout*>(&list);
  static_assert(sizeof(Layout) == sizeof(list));
  for (size_t i = 0; i < tensors.size(); ++i) layout->storage[i] = As(tensors[i]);
  layout->size = tensors.size();
}

class Atb : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(atb::CreateContext(&context_), 0); }
  void TearDown() override { atb::DestroyContext(context_); }

  template <typename Param>
  void Run(const Param& param, const std::vector<at::Tensor>& in,
           const std::vector<at::Tensor>& out) {
    atb::Operation* operation = nullptr;
    ASSERT_EQ(atb::CreateOperation(param, &operation), 0);
    auto pack = std::make_unique<atb::VariantPack>();
    Fill(pack->inTensors, in);
    Fill(pack->outTensors, out);
    uint64_t workspace = 1;
    ASSERT_EQ(operation->Setup(*pack, workspace, context_), 0) << operation->GetName();
    EXPECT_EQ(workspace, 0u);
    EXPECT_EQ(operation->Execute(*pack, nullptr, 0, context_), 0) << LastMessage();
    ASSERT_EQ(aclrtSynchronizeStream(nullptr), 0);
    atb::DestroyOperation(operation);
  }

  atb::Context* context_ = nullptr;
};

TEST_F(Atb, RopeRotatesHalvesOrNeighboursInPlace) {
  const at::Tensor cosine = Random({3, 8}), sine = Random({3, 8}),
                   length = at::tensor({3}, at::kInt);
  for (int coefficient : {2, 8}) {
    const at::Tensor query = Random({3, 16}), key = Random({3, 8});
    const auto rotated = [&](const at::Tensor& x) {
      const at::Tensor heads = x.reshape({3, -1, 8});
      const at::Tensor turned =
          coefficient == 2
              ? at::cat({-heads.slice(2, 4, 8), heads.slice(2, 0, 4)}, 2)
              : at::stack({-heads.slice(2, 1, 8, 2), heads.slice(2, 0, 8, 2)}, 3).flatten(2);
      return (heads * cosine.unsqueeze(1) + turned * sine.unsqueeze(1)).reshape(x.sizes());
    };
    const at::Tensor expected_query = rotated(query), expected_key = rotated(key);
    atb::infer::RopeParam param;
    param.rotaryCoeff = coefficient;
    Run(param, {query, key, cosine, sine, length}, {query, key});
    EXPECT_TRUE(at::allclose(query, expected_query)) << coefficient;
    EXPECT_TRUE(at::allclose(key, expected_key)) << coefficient;
  }
}

TEST_F(Atb, ReshapeAndCacheWritesRowsAtTheirSlots) {
  const at::Tensor key = Random({2, 2, 4}, at::kHalf), value = Random({2, 2, 4}, at::kHalf);
  const at::Tensor keys = at::zeros({3, 2, 2, 4}, at::kHalf), values = at::zeros_like(keys);
  const at::Tensor slots = at::tensor({5, 0}, at::kInt);
  Run(atb::infer::ReshapeAndCacheParam(), {key, value, keys, values, slots}, {keys, values});
  at::Tensor expected = at::zeros_like(keys);
  expected[2][1].copy_(key[0]);
  expected[0][0].copy_(key[1]);
  EXPECT_TRUE(at::equal(keys, expected));
  EXPECT_TRUE(at::equal(values[2][1], value[0]));
  EXPECT_TRUE(at::equal(values[0][0], value[1]));
}

TEST_F(Atb, LinearAddsProductsOfHalfToFloat32) {
  const at::Tensor x = Random({2, 4}, at::kHalf), weight = Random({2, 3}, at::kHalf);
  const at::Tensor sum = Random({4, 3});
  const at::Tensor expected = at::addmm(sum, x.t().to(at::kFloat), weight.to(at::kFloat));
  atb::infer::LinearParam param;
  param.transposeA = true;
  param.transposeB = false;
  param.hasBias = false;
  param.enAccum = true;
  Run(param, {x, weight, sum}, {sum});
  EXPECT_TRUE(at::allclose(sum, expected));
}

TEST_F(Atb, WhatIsNotThereIsRefusedWhenItIsMade) {
  atb::Operation* operation = nullptr;
  EXPECT_NE(atb::CreateOperation(atb::infer::LinearParam(), &operation), 0);
  atb::infer::ReshapeAndCacheParam compressed;
  compressed.compressType = 1;
  EXPECT_NE(atb::CreateOperation(compressed, &operation), 0);
  EXPECT_EQ(operation, nullptr);
  ASSERT_EQ(atb::CreateOperation(atb::infer::RopeParam(), &operation), 0);
  auto pack = std::make_unique<atb::VariantPack>();
  uint64_t workspace = 0;
  EXPECT_NE(operation->Setup(*pack, workspace, context_), 0);
  atb::DestroyOperation(operation);
}

}  // namespace
}  // namespace acltape::opapi
