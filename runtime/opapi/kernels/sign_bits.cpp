// Signs of numbers as bits, eight in a byte, as the optimizer 1-bit Adam exchanges them.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kBitsOfByte = 8;

// The value of each bit of a byte, the first element's first: 1, 2, 4, ..., 128.
Tensor BitValues() {
  return at::pow(2, at::arange(kBitsOfByte, at::TensorOptions(at::kInt))).to(at::kInt);
}

// (self, size, out): a bit is 1 for numbers that are not negative. The last byte is filled up with
// 0.
std::unique_ptr<Kernel> BindSignBitsPack(const Call& call) {
  const Tensor self = call.View(0);
  call.ExpectRank(0, self, 1);
  ExpectDtypes(call, 0, self, {at::kFloat, at::kHalf});
  const int64_t size = call.Int(1);
  const int64_t bytes = (self.numel() + kBitsOfByte - 1) / kBitsOfByte;
  if (size < 1) call.RejectArg(1, "is less than 1");
  if (bytes % size != 0) call.RejectArg(1, "does not divide the number of bytes");
  ExpectDtypes(call, 2, call.View(2), {at::kByte});
  return BindWhole(call, 2, {size, bytes / size}, [=] {
    const Tensor bits = at::zeros({bytes * kBitsOfByte}, at::TensorOptions(at::kInt));
    bits.narrow(0, 0, self.numel()).copy_(self >= 0);
    return (bits.view({bytes, kBitsOfByte}) * BitValues()).sum(1).view({size, bytes / size});
  });
}

// (self, size, dtype, out): 1 for each bit that is set, -1 for the others
std::unique_ptr<Kernel> BindSignBitsUnpack(const Call& call) {
  const Tensor self = call.View(0), out = call.View(3);
  call.ExpectRank(0, self, 1);
  ExpectDtypes(call, 0, self, {at::kByte});
  const int64_t size = call.Int(1), bits = self.numel() * kBitsOfByte;
  if (size < 1) call.RejectArg(1, "is less than 1");
  if (bits % size != 0) call.RejectArg(1, "does not divide the number of bits");
  ExpectDtypes(call, 3, out, {at::kFloat, at::kHalf});
  if (out.scalar_type() != call.Dtype(2)) {
    call.RejectArg(3, "has another dtype than the dtype argument");
  }
  return BindWhole(call, 3, {size, bits / size}, [=] {
    const Tensor set = self.to(at::kInt).unsqueeze(1).bitwise_and(BitValues()).ne(0);
    return (set.to(at::kInt) * 2 - 1).view({size, bits / size});
  });
}

}  // namespace

KernelRows SignBitsRows() {
  return {
      {"aclnnSignBitsPack", BindSignBitsPack},
      {"aclnnSignBitsUnpack", BindSignBitsUnpack},
  };
}

}  // namespace acltape::opapi
