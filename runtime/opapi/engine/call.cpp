#include "runtime/opapi/engine/call.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <cstring>

#include "runtime/opapi/base/dtype.h"

namespace acltape::opapi {
namespace {

struct DtypeRow {
  aclDataType acl;
  at::ScalarType aten;
};

constexpr DtypeRow kDtypes[] = {
    {ACL_FLOAT, at::kFloat},
    {ACL_FLOAT16, at::kHalf},
    {ACL_BF16, at::kBFloat16},
    {ACL_DOUBLE, at::kDouble},
    {ACL_INT64, at::kLong},
    {ACL_INT32, at::kInt},
    {ACL_INT16, at::kShort},
    {ACL_INT8, at::kChar},
    {ACL_UINT8, at::kByte},
    {ACL_BOOL, at::kBool},
    {ACL_COMPLEX64, at::kComplexFloat},
    {ACL_COMPLEX128, at::kComplexDouble},
};

// The signed integers of as many bits.
constexpr DtypeRow kUnsigned[] = {
    {ACL_UINT16, at::kShort}, {ACL_UINT32, at::kInt}, {ACL_UINT64, at::kLong}};

c10::optional<at::ScalarType> FindSigned(aclDataType dtype) {
  for (const DtypeRow& row : kUnsigned) {
    if (row.acl == dtype) return row.aten;
  }
  return c10::nullopt;
}

c10::optional<at::ScalarType> FindDtype(aclDataType dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.acl == dtype) return row.aten;
  }
  return c10::nullopt;
}

template <typename T>
T Read(const aclScalar& scalar) {
  T value;
  std::memcpy(&value, scalar.bytes, sizeof value);
  return value;
}

// at::from_blob without what a view of device memory does not need (options, guards, a deleter),
// which is most of its cost.
at::Tensor ViewAt(void* first, at::IntArrayRef sizes, at::IntArrayRef strides,
                  at::ScalarType dtype) {
  int64_t elements = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      elements = 0;
      break;
    }
    elements += (sizes[i] - 1) * strides[i];
  }
  const auto bytes = static_cast<size_t>(elements) * c10::elementSize(dtype);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       c10::DataPtr(first, c10::Device(at::kCPU)),
                                                       /*allocator=*/nullptr, /*resizable=*/false);
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(dtype));
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return view;
}

bool MustWiden(at::ScalarType dtype, Widen widen) {
  if (widen == Widen::kHalfAndBfloat16) return dtype == at::kHalf || dtype == at::kBFloat16;
  return (dtype == at::kHalf && widen == Widen::kHalf) ||
         (dtype == at::kBFloat16 && widen == Widen::kBfloat16);
}

}  // namespace

std::string SizesText(at::IntArrayRef sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  }
  return text + "]";
}

Operand::Operand(at::Tensor view, Widen widen) : view_(std::move(view)) {
  widen_ = view_.defined() && MustWiden(view_.scalar_type(), widen);
}

void Call::RejectArg(int i, const std::string& what) const {
  throw RejectedCall{kParamInvalid,
                     std::string(op_.name) + ": " + std::string(Arg(i).name) + " " + what + "."};
}

void Call::RejectCall(const std::string& what) const {
  throw RejectedCall{kParamInvalid, std::string(op_.name) + ": " + what + "."};
}

at::Tensor Call::MakeView(int i, const aclTensor* tensor, Unsigned unsigned_integers) const {
  if (tensor == nullptr) {
    throw RejectedCall{kParamNull,
                       std::string(op_.name) + ": " + std::string(Arg(i).name) + " is NULL."};
  }
  c10::optional<at::ScalarType> dtype = FindDtype(tensor->dtype);
  if (!dtype && unsigned_integers == Unsigned::kAsSigned) dtype = FindSigned(tensor->dtype);
  if (!dtype) {
    RejectArg(i, "has dtype " + std::to_string(tensor->dtype) + ", which the soft device lacks");
  }
  // Any format is taken: elements lie in the order of the view (Note [Formats of tensors]). Those
  // in FRACTAL_NZ were replaced before (engine/blocked.h).
  if (std::any_of(tensor->strides.begin(), tensor->strides.end(),
                  [](int64_t stride) { return stride < 0; })) {
    RejectArg(i, "has a negative stride");
  }
  const bool empty =
      std::find(tensor->sizes.begin(), tensor->sizes.end(), 0) != tensor->sizes.end();
  if (tensor->address == nullptr && !empty) {
    throw RejectedCall{kParamNull, std::string(op_.name) + ": the address of " +
                                       std::string(Arg(i).name) + " is NULL."};
  }
  if (tensor->address == nullptr) {
    return at::empty_strided(tensor->sizes, tensor->strides, at::TensorOptions(*dtype));
  }
  char* first = static_cast<char*>(tensor->address) +
                tensor->offset * static_cast<int64_t>(ItemSize(tensor->dtype));
  return ViewAt(first, tensor->sizes, tensor->strides, *dtype);
}

c10::optional<at::ScalarType> Call::SharedDtype(int i, int j) const {
  if (Arg(i).kind != acl::ArgKind::kTensor || Arg(j).kind != acl::ArgKind::kTensor || IsNull(i) ||
      IsNull(j)) {
    return c10::nullopt;
  }
  const aclDataType dtype = Described(i).dtype;
  return Described(j).dtype == dtype ? FindDtype(dtype) : c10::nullopt;
}

at::Tensor Call::View(int i) const { return MakeView(i, acl::Unpack<const aclTensor*>(Value(i))); }

at::Tensor Call::Bits(int i) const {
  return MakeView(i, acl::Unpack<const aclTensor*>(Value(i)), Unsigned::kAsSigned);
}

bool Call::IsUnsigned(int i) const {
  const auto* tensor = acl::Unpack<const aclTensor*>(Value(i));
  return tensor != nullptr && FindSigned(tensor->dtype).has_value();
}

bool Call::IsHalfComplex(int i) const {
  const auto* tensor = acl::Unpack<const aclTensor*>(Value(i));
  return tensor != nullptr && tensor->dtype == ACL_COMPLEX32;
}

at::Tensor Call::HalfParts(int i) const {
  aclTensor halves = Described(i);
  halves.dtype = ACL_FLOAT16;
  halves.offset *= 2;
  for (int64_t& stride : halves.strides) stride *= 2;
  halves.sizes.push_back(2);
  halves.strides.push_back(1);
  return MakeView(i, &halves);
}

Operand Call::In(int i) const { return Operand(View(i), widen_); }

bool Call::IsAbsent(int i) const {
  if (IsNull(i)) return true;
  switch (Arg(i).kind) {
    case acl::ArgKind::kTensor: {
      const auto& sizes = acl::Unpack<const aclTensor*>(Value(i))->sizes;
      return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    }
    case acl::ArgKind::kTensorList:
      return acl::Unpack<const aclTensorList*>(Value(i))->tensors.empty();
    case acl::ArgKind::kIntArray:
      return acl::Unpack<const aclIntArray*>(Value(i))->values.empty();
    case acl::ArgKind::kFloatArray:
      return acl::Unpack<const aclFloatArray*>(Value(i))->values.empty();
    case acl::ArgKind::kBoolArray:
      return acl::Unpack<const aclBoolArray*>(Value(i))->values.empty();
    case acl::ArgKind::kScalarList:
      return acl::Unpack<const aclScalarList*>(Value(i))->scalars.empty();
    default:
      return false;
  }
}

Operand Call::OptionalIn(int i) const { return IsAbsent(i) ? Operand() : In(i); }

at::Tensor Call::Written(int i, at::Tensor view) const {
  if (at::has_internal_overlap(view) == at::MemOverlap::Yes) {
    RejectArg(i, "is written but several of its elements share memory");
  }
  return view;
}

at::Tensor Call::Out(int i) const { return Written(i, View(i)); }

at::Tensor Call::BitsOut(int i) const { return Written(i, Bits(i)); }

at::Tensor Call::HalfPartsOut(int i) const { return Written(i, HalfParts(i)); }

at::Tensor Call::OptionalOut(int i) const { return IsNull(i) ? at::Tensor() : Out(i); }

std::shared_ptr<ReportedShape> Call::Reported(int i) const {
  auto* tensor = acl::Unpack<aclTensor*>(Value(i));
  if (tensor->reported == nullptr) tensor->reported = std::make_shared<ReportedShape>();
  return tensor->reported;
}

std::vector<at::Tensor> Call::Views(int i) const {
  const auto* list = acl::Unpack<const aclTensorList*>(Value(i));
  std::vector<at::Tensor> views;
  if (list == nullptr) return views;
  for (const aclTensor* tensor : list->tensors) views.push_back(MakeView(i, tensor));
  return views;
}

std::vector<at::Tensor> Call::ListBits(int i) const {
  const auto* list = acl::Unpack<const aclTensorList*>(Value(i));
  std::vector<at::Tensor> views;
  if (list == nullptr) return views;
  for (const aclTensor* tensor : list->tensors) {
    views.push_back(MakeView(i, tensor, Unsigned::kAsSigned));
  }
  return views;
}

std::vector<Operand> Call::Ins(int i) const {
  std::vector<Operand> operands;
  for (at::Tensor& view : Views(i)) operands.emplace_back(std::move(view), widen_);
  return operands;
}

std::vector<at::Tensor> Call::Outs(int i) const {
  std::vector<at::Tensor> views = Views(i);
  for (const at::Tensor& view : views) {
    if (at::has_internal_overlap(view) == at::MemOverlap::Yes) {
      RejectArg(i, "holds an output of which several elements share memory");
    }
  }
  return views;
}

namespace {

at::Scalar ToNumber(const Call& call, int i, const aclScalar& scalar) {
  switch (scalar.dtype) {
    case ACL_FLOAT:
      return static_cast<double>(Read<float>(scalar));
    case ACL_DOUBLE:
      return Read<double>(scalar);
    case ACL_FLOAT16:
      return static_cast<double>(static_cast<float>(Read<c10::Half>(scalar)));
    case ACL_BF16:
      return static_cast<double>(static_cast<float>(Read<c10::BFloat16>(scalar)));
    case ACL_INT8:
      return static_cast<int64_t>(Read<int8_t>(scalar));
    case ACL_UINT8:
      return static_cast<int64_t>(Read<uint8_t>(scalar));
    case ACL_INT16:
      return static_cast<int64_t>(Read<int16_t>(scalar));
    case ACL_UINT16:
      return static_cast<int64_t>(Read<uint16_t>(scalar));
    case ACL_INT32:
      return static_cast<int64_t>(Read<int32_t>(scalar));
    case ACL_UINT32:
      return static_cast<int64_t>(Read<uint32_t>(scalar));
    case ACL_INT64:
    case ACL_UINT64:
      return Read<int64_t>(scalar);
    case ACL_BOOL:
      return Read<uint8_t>(scalar) != 0;
    case ACL_COMPLEX64:
      return c10::complex<double>(Read<c10::complex<float>>(scalar));
    case ACL_COMPLEX128:
      return Read<c10::complex<double>>(scalar);
    default:
      call.RejectArg(i, "is a scalar of dtype " + std::to_string(scalar.dtype) +
                            ", which the soft device lacks");
  }
}

}  // namespace

at::Scalar Call::Number(int i) const {
  const auto* scalar = acl::Unpack<const aclScalar*>(Value(i));
  if (scalar == nullptr) {
    throw RejectedCall{kParamNull,
                       std::string(op_.name) + ": " + std::string(Arg(i).name) + " is NULL."};
  }
  return ToNumber(*this, i, *scalar);
}

c10::optional<at::Scalar> Call::OptionalNumber(int i) const {
  if (IsNull(i)) return c10::nullopt;
  return Number(i);
}

std::vector<at::Scalar> Call::Numbers(int i) const {
  const auto* list = acl::Unpack<const aclScalarList*>(Value(i));
  std::vector<at::Scalar> numbers;
  if (list == nullptr) return numbers;
  for (const aclScalar* scalar : list->scalars) {
    if (scalar == nullptr) RejectArg(i, "holds a NULL scalar");
    numbers.push_back(ToNumber(*this, i, *scalar));
  }
  return numbers;
}

std::string Call::Text(int i) const {
  const auto* text = acl::Unpack<const char*>(Value(i));
  return text == nullptr ? "" : text;
}

at::ScalarType Call::Dtype(int i) const {
  const c10::optional<at::ScalarType> dtype = FindDtype(static_cast<aclDataType>(Value(i).integer));
  if (!dtype) {
    RejectArg(i, "is dtype " + std::to_string(Value(i).integer) + ", which the soft device lacks");
  }
  return *dtype;
}

std::vector<int64_t> Call::Ints(int i) const {
  const auto* array = acl::Unpack<const aclIntArray*>(Value(i));
  return array == nullptr ? std::vector<int64_t>() : array->values;
}

std::vector<bool> Call::Bools(int i) const {
  const auto* array = acl::Unpack<const aclBoolArray*>(Value(i));
  if (array == nullptr) return {};
  return {array->values.begin(), array->values.end()};
}

int64_t Call::Dim(int i, int64_t rank) const {
  const int64_t dim = Int(i), bound = std::max<int64_t>(rank, 1);
  if (dim < -bound || dim >= bound) {
    RejectArg(
        i, "is " + std::to_string(dim) + ", outside of a tensor of rank " + std::to_string(rank));
  }
  return dim < 0 ? dim + bound : dim;
}

std::vector<int64_t> Call::ReductionDims(int i, int64_t rank) const {
  std::vector<int64_t> dims = Ints(i);
  const int64_t bound = std::max<int64_t>(rank, 1);
  std::vector<bool> seen(bound);
  for (int64_t& dim : dims) {
    if (dim < -bound || dim >= bound) {
      RejectArg(i, "holds " + std::to_string(dim) + ", outside of a tensor of rank " +
                       std::to_string(rank));
    }
    if (dim < 0) dim += bound;
    if (seen[dim]) RejectArg(i, "names dim " + std::to_string(dim) + " twice");
    seen[dim] = true;
  }
  return dims;
}

void Call::ExpectSizes(int i, const at::Tensor& tensor, at::IntArrayRef sizes) const {
  if (sizes.empty() && tensor.dim() == 1 && tensor.numel() == 1 &&
      Arg(i).direction != acl::Direction::kIn) {
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(at::IntArrayRef(), at::IntArrayRef());
    return;
  }
  if (tensor.sizes() != sizes) {
    RejectArg(i, "has shape " + SizesText(tensor.sizes()) + ", expected " + SizesText(sizes));
  }
}

void Call::ExpectRank(int i, const at::Tensor& tensor, int64_t rank) const {
  if (tensor.dim() != rank) {
    RejectArg(i, "has shape " + SizesText(tensor.sizes()) + ", expected " + std::to_string(rank) +
                     " dims");
  }
}

void Call::ExpectAbsent(const std::vector<int>& positions) const {
  for (int i : positions) {
    if (!IsAbsent(i)) RejectArg(i, "is given, which the soft device lacks");
  }
}

void Call::ExpectIndex(int i, const at::Tensor& tensor) const {
  if (tensor.scalar_type() != at::kLong && tensor.scalar_type() != at::kInt) {
    RejectArg(i, std::string("has dtype ") + at::toString(tensor.scalar_type()) +
                     ", expected int32 or int64");
  }
}

std::vector<int64_t> Call::Broadcast(std::initializer_list<at::IntArrayRef> shapes) const {
  const at::IntArrayRef first = *shapes.begin();
  if (std::all_of(shapes.begin(), shapes.end(), [&](at::IntArrayRef s) { return s == first; })) {
    return first.vec();
  }
  std::vector<int64_t> result;
  for (at::IntArrayRef shape : shapes) {
    const size_t rank = std::max(result.size(), shape.size());
    std::vector<int64_t> merged(rank);
    for (size_t i = 0; i < rank; ++i) {
      const int64_t a = i < result.size() ? result[result.size() - 1 - i] : 1;
      const int64_t b = i < shape.size() ? shape[shape.size() - 1 - i] : 1;
      if (a != b && a != 1 && b != 1) {
        RejectCall("shapes " + SizesText(result) + " and " + SizesText(shape) +
                   " do not broadcast");
      }
      merged[rank - 1 - i] = a == 1 ? b : a;
    }
    result = std::move(merged);
  }
  return result;
}

at::ScalarType Call::Computed(at::ScalarType dtype) const {
  return MustWiden(dtype, widen_) ? at::kFloat : dtype;
}

}  // namespace acltape::opapi
