// Calls of operators that communicate with the ranks of a group, which are threads of the test.
#pragma once

#include <memory>
#include <string>

#include "tests/hccl/ranks.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {

inline std::string NameOf(HcclComm comm) {
  char name[COMM_NAME_MAX_LENGTH] = {};
  EXPECT_EQ(HcclGetCommName(comm, name), HCCL_SUCCESS);
  return name;
}

// Values that a rank has; any rank can tell those of another one.
inline at::Tensor ValuesOf(uint32_t rank, at::IntArrayRef sizes, at::ScalarType dtype, int salt) {
  const int64_t count = c10::multiply_integers(sizes);
  at::Tensor values = at::empty({count}, at::kDouble);
  auto* out = values.data_ptr<double>();
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<double>((i * 37 + rank * 11 + salt * 5) % 23 - 11) / 8;
  }
  return values.reshape(sizes).to(dtype);
}

// The product of two matrices, element by element.
inline at::Tensor ProductOf(const at::Tensor& left, const at::Tensor& right,
                            const at::Tensor& bias) {
  const at::Tensor a = left.to(at::kDouble), b = right.to(at::kDouble);
  const int64_t inner = a.size(1);
  at::Tensor product = at::zeros({a.size(0), b.size(1)}, at::kDouble);
  auto out = product.accessor<double, 2>();
  const auto x = a.accessor<double, 2>(), y = b.accessor<double, 2>();
  for (int64_t i = 0; i < a.size(0); ++i) {
    for (int64_t j = 0; j < b.size(1); ++j) {
      double sum = bias.defined() ? bias[j].item<double>() : 0;
      for (int64_t k = 0; k < inner; ++k) sum += x[i][k] * y[k][j];
      out[i][j] = sum;
    }
  }
  return product;
}

// The error of a rounding to the dtype for each rank and the result.
inline void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, uint32_t ranks,
                        const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  if (actual.numel() == 0) return;
  const double unit = actual.scalar_type() == at::kBFloat16 ? 1.0 / 128 : 1.0 / 1024;
  const at::Tensor error = (actual.to(at::kDouble) - expected).abs();
  const at::Tensor allowed = (expected.abs() + 8) * (unit * (ranks + 1));
  EXPECT_TRUE((error <= allowed).all().item<bool>())
      << what << ": error " << error.max().item<double>() << "\n"
      << actual << "\n"
      << expected;
}

inline Arg OrNull(const at::Tensor& tensor) { return tensor.defined() ? Arg(tensor) : Arg(Null{}); }

// Both phases on the rank's stream. The call lives until the stream has run it.
inline std::unique_ptr<PackedCall> Start(const char* name, const Args& args, aclrtStream stream) {
  auto call = std::make_unique<PackedCall>(name, args);
  EXPECT_EQ(call->Prepare(), 0) << TakeMessage();
  EXPECT_EQ(call->Launch(stream), 0) << TakeMessage();
  return call;
}

// Runs the operator as it is called, or as a graph that runs three times.
inline void RunOn(const hccl::Rank& rank, const char* name, const Args& args, bool graph) {
  std::unique_ptr<PackedCall> call;
  aclmdlRI model = nullptr;
  if (graph) {
    ASSERT_OK(aclmdlRICaptureBegin(rank.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    call = Start(name, args, rank.stream);
    ASSERT_OK(aclmdlRICaptureEnd(rank.stream, &model));
    for (int i = 0; i < 3; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, rank.stream));
  } else {
    call = Start(name, args, rank.stream);
  }
  EXPECT_OK(aclrtSynchronizeStream(rank.stream));
  if (model != nullptr) {
    EXPECT_OK(aclmdlRIDestroy(model));
  }
}

inline std::string Refusal(const char* name, const Args& args) {
  PackedCall call(name, args);
  EXPECT_EQ(call.Prepare(), kReject);
  return TakeMessage();
}

}  // namespace acltape::opapi
