// Calls operations of libatb.so on libtorch's tensors as device memory.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compat/atb.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {

// An operand in the device's memory, or in the host's.
struct AtbOperand {
  AtbOperand(at::Tensor tensor, bool host = false)  // NOLINT(google-explicit-constructor)
      : tensor(std::move(tensor)), host(host) {}

  at::Tensor tensor;
  bool host;
};
using AtbOperands = std::vector<AtbOperand>;

// Lengths of sequences, where operations read them when they are issued.
inline AtbOperand Lengths(const std::vector<int>& lengths) {
  return {at::tensor(lengths, at::kInt), /*host=*/true};
}

inline atb::Tensor AtbTensor(const AtbOperand& operand) {
  atb::Tensor result;
  const at::Tensor& tensor = operand.tensor;
  const auto dtype = tensor.scalar_type();
  result.desc.dtype = dtype == at::kHalf       ? ACL_FLOAT16
                      : dtype == at::kBFloat16 ? ACL_BF16
                      : dtype == at::kFloat    ? ACL_FLOAT
                      : dtype == at::kInt      ? ACL_INT32
                      : dtype == at::kLong     ? ACL_INT64
                      : dtype == at::kChar     ? ACL_INT8
                                               : ACL_DT_UNDEFINED;
  result.desc.format = ACL_FORMAT_ND;
  result.desc.shape.dimNum = static_cast<uint64_t>(tensor.dim());
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), result.desc.shape.dims);
  (operand.host ? result.hostData : result.deviceData) = tensor.data_ptr();
  result.dataSize = atb::Utils::GetTensorSize(result);
  return result;
}

// Callers have a class of the same layout that grows.
inline void Fill(atb::SVector<atb::Tensor>& list, const AtbOperands& operands) {
  struct Layout {
    size_t capacity, size;
    atb::Tensor storage[65];
    atb::Tensor* heap;
  };
  auto* layout = reinterpret_cast<Layout*>(&list);
  static_assert(sizeof(Layout) == sizeof(list));
  for (size_t i = 0; i < operands.size(); ++i) layout->storage[i] = AtbTensor(operands[i]);
  layout->size = operands.size();
}

class Atb : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(TestStream(), nullptr);
    ASSERT_EQ(atb::CreateContext(&context_), 0);
  }
  void TearDown() override { atb::DestroyContext(context_); }

  std::unique_ptr<atb::VariantPack> Pack(const AtbOperands& in, const AtbOperands& out) {
    auto pack = std::make_unique<atb::VariantPack>();
    Fill(pack->inTensors, in);
    Fill(pack->outTensors, out);
    return pack;
  }

  template <typename Param>
  void Run(const Param& param, const AtbOperands& in, const AtbOperands& out) {
    atb::Operation* operation = nullptr;
    ASSERT_EQ(atb::CreateOperation(param, &operation), 0);
    const auto pack = Pack(in, out);
    uint64_t bytes = 1;
    ASSERT_EQ(operation->Setup(*pack, bytes, context_), 0) << operation->GetName();
    EXPECT_EQ(bytes, 0u);
    EXPECT_EQ(operation->Execute(*pack, nullptr, 0, context_), 0) << LastMessage();
    ASSERT_EQ(aclrtSynchronizeStream(nullptr), 0);
    atb::DestroyOperation(operation);
  }

  // The sentence that says why an operation with these parameters cannot be made.
  template <typename Param>
  std::string Refusal(const Param& param) {
    atb::Operation* operation = nullptr;
    testing::internal::CaptureStderr();
    const atb::Status status = atb::CreateOperation(param, &operation);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(status, 0);
    EXPECT_EQ(operation, nullptr);
    return said;
  }

  // The sentence that says why an operation does not take these tensors.
  template <typename Param>
  std::string Misfit(const Param& param, const AtbOperands& in, const AtbOperands& out) {
    atb::Operation* operation = nullptr;
    EXPECT_EQ(atb::CreateOperation(param, &operation), 0);
    if (operation == nullptr) return "";
    uint64_t bytes = 0;
    testing::internal::CaptureStderr();
    const atb::Status status = operation->Setup(*Pack(in, out), bytes, context_);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(status, 0);
    atb::DestroyOperation(operation);
    return said;
  }

  atb::Context* context_ = nullptr;
};

}  // namespace acltape::opapi
