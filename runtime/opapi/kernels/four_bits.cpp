#include "runtime/opapi/kernels/four_bits.h"

#include <algorithm>

namespace acltape::opapi {

using at::Tensor;

FourBits::FourBits(const Call& call, int i, bool written) : defined_(true) {
  const aclTensor& tensor = call.Described(i);
  sizes_ = tensor.sizes;
  strides_ = tensor.strides;
  offset_ = tensor.offset;
  bytes_ = static_cast<uint8_t*>(tensor.address);
  const bool empty = std::find(sizes_.begin(), sizes_.end(), 0) != sizes_.end();
  if (bytes_ == nullptr && !empty) call.RejectArg(i, "has no memory");
  for (size_t dim = 0; dim < sizes_.size(); ++dim) {
    if (strides_[dim] < 0) call.RejectArg(i, "has a negative stride");
    if (written && strides_[dim] == 0 && sizes_[dim] > 1) {
      call.RejectArg(i, "is written but several of its elements share memory");
    }
  }
}

template <typename Visit>
void FourBits::ForEach(const Visit& visit) const {
  if (std::find(sizes_.begin(), sizes_.end(), 0) != sizes_.end()) return;
  std::vector<int64_t> at(sizes_.size(), 0);
  int64_t place = offset_;
  for (;;) {
    visit(place);
    auto dim = static_cast<int64_t>(sizes_.size()) - 1;
    for (; dim >= 0; --dim) {
      place += strides_[dim];
      if (++at[dim] < sizes_[dim]) break;
      place -= sizes_[dim] * strides_[dim];
      at[dim] = 0;
    }
    if (dim < 0) return;
  }
}

Tensor FourBits::Read() const {
  Tensor integers = at::empty(sizes_, at::TensorOptions(at::kChar));
  auto* next = integers.data_ptr<int8_t>();
  ForEach([&](int64_t place) {
    const int bits = (bytes_[place / 2] >> (4 * (place % 2))) & 15;
    *next++ = static_cast<int8_t>(bits < 8 ? bits : bits - 16);
  });
  return integers;
}

void FourBits::Write(const Tensor& integers) const {
  const Tensor dense = integers.to(at::kChar).contiguous();
  const auto* next = dense.data_ptr<int8_t>();
  ForEach([&](int64_t place) {
    uint8_t& byte = bytes_[place / 2];
    const auto bits = static_cast<uint8_t>(*next++ & 15);
    byte = static_cast<uint8_t>(place % 2 == 0 ? (byte & 0xF0) | bits : (byte & 0x0F) | bits << 4);
  });
}

bool IsFourBits(const Call& call, int i) {
  return call.Arg(i).kind == acl::ArgKind::kTensor && !call.IsNull(i) &&
         call.Described(i).dtype == ACL_INT4;
}

Tensor UnpackInt4(const Tensor& packed) {
  const Tensor shifts = at::arange(0, 32, 4, at::TensorOptions(at::kInt));
  const Tensor wide = packed.unsqueeze(-1).bitwise_right_shift(shifts).bitwise_and(15);
  return at::where(wide.ge(8), wide - 16, wide).flatten(-2);
}

Tensor PackInt4(const Tensor& integers) {
  const Tensor shifts = at::arange(0, 32, 4, at::TensorOptions(at::kLong));
  const Tensor bits = integers.to(at::kLong).bitwise_and(15).unflatten(-1, {-1, 8});
  return bits.bitwise_left_shift(shifts).sum(-1);
}

}  // namespace acltape::opapi
