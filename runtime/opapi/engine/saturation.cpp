#include "runtime/opapi/engine/saturation.h"

#include <cstring>

#include "runtime/opapi/engine/tensor_blocks.h"

namespace acltape::opapi {
namespace {

// The bits of a floating type: those of the exponent, all set in inf and NaN, and the greatest
// number.
template <typename Bits, Bits kExponent, Bits kGreatest>
bool SaturateNumber(char* at) {
  Bits bits;
  std::memcpy(&bits, at, sizeof bits);
  if ((bits & kExponent) != kExponent) return false;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  constexpr Bits kMantissa = static_cast<Bits>(~(kSign | kExponent));
  bits = (bits & kMantissa) != 0 ? Bits{0} : static_cast<Bits>((bits & kSign) | kGreatest);
  std::memcpy(at, &bits, sizeof bits);
  return true;
}

using SaturateOne = bool (*)(char* at);

struct FloatingType {
  aclDataType dtype;
  SaturateOne saturate;
};
constexpr FloatingType kFloatingTypes[] = {
    {ACL_FLOAT16, SaturateNumber<uint16_t, 0x7C00, 0x7BFF>},
    {ACL_BF16, SaturateNumber<uint16_t, 0x7F80, 0x7F7F>},
    {ACL_FLOAT, SaturateNumber<uint32_t, 0x7F800000, 0x7F7FFFFF>},
    {ACL_DOUBLE, SaturateNumber<uint64_t, 0x7FF0000000000000, 0x7FEFFFFFFFFFFFFF>},
};

// Null for types without inf.
SaturateOne SaturatingOf(aclDataType dtype) {
  for (const FloatingType& type : kFloatingTypes) {
    if (type.dtype == dtype) return type.saturate;
  }
  return nullptr;
}

// Goes over the elements from dimension `dim` on; true when one of them changed.
bool SaturateFrom(size_t dim, char* at, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& strides, SaturateOne saturate) {
  if (dim == sizes.size()) return saturate(at);
  bool changed = false;
  for (int64_t i = 0; i < sizes[dim]; ++i) {
    changed |= SaturateFrom(dim + 1, at + i * strides[dim], sizes, strides, saturate);
  }
  return changed;
}

}  // namespace

SaturatedOutputs::SaturatedOutputs(const acl::OperatorInfo& op, const acl::ArgValue* args) {
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (op.args[i].direction == acl::Direction::kIn || args[i].pointer == nullptr) continue;
    if (op.args[i].kind == acl::ArgKind::kTensor) {
      Add(*acl::Unpack<const aclTensor*>(args[i]));
    } else if (op.args[i].kind == acl::ArgKind::kTensorList) {
      for (const aclTensor* member : acl::Unpack<const aclTensorList*>(args[i])->tensors) {
        if (member != nullptr) Add(*member);
      }
    }
  }
}

void SaturatedOutputs::Add(const aclTensor& tensor) {
  if (SaturatingOf(tensor.dtype) == nullptr || tensor.address == nullptr) return;
  const auto item = static_cast<int64_t>(ItemSize(tensor.dtype));
  Results results{static_cast<char*>(tensor.address) + tensor.offset * item, tensor.dtype,
                  tensor.sizes, tensor.strides};
  acl::BlockedLayout blocks;
  if (BlocksOf(tensor, &blocks)) {
    results.sizes = {blocks.elements()};
    results.strides = {1};
  }
  for (int64_t& stride : results.strides) stride *= item;
  results_.push_back(std::move(results));
}

bool SaturatedOutputs::BeginOn(aclrtStream stream) {
  const SoftSaturation saturation = SoftSaturationOf(stream);
  overflowed_ = saturation.overflowed;
  return saturation.saturates;
}

void SaturatedOutputs::Saturate() const {
  bool changed = false;
  for (const Results& results : results_) {
    changed |=
        SaturateFrom(0, results.first, results.sizes, results.strides, SaturatingOf(results.dtype));
  }
  if (changed && overflowed_ != nullptr) __atomic_store_n(overflowed_, 1, __ATOMIC_RELEASE);
}

}  // namespace acltape::opapi
