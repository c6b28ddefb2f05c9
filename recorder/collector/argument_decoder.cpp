#include "recorder/collector/argument_decoder.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "generated/meaning/interface_numbers.h"
#include "storage/blocked_format.h"

namespace acltape::collector {
namespace {

using storage::ValueKind;
using wire::ArgumentTag;

// Reads from the front of a range and remembers when it ran out.
class Source {
 public:
  explicit Source(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      failed_ = true;
      bytes_ = {};
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }
  template <typename Length = uint32_t>
  std::string_view TakeText() {
    const auto length = Take<Length>();
    if (failed_ || bytes_.size() < length) {
      failed_ = true;
      return {};
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), length);
    bytes_ = bytes_.subspan(length);
    return text;
  }
  // A count of elements of at least `element_bytes` bytes each, so that memory is never taken for
  // elements that cannot be there.
  uint32_t TakeCount(size_t element_bytes) {
    const auto count = Take<uint32_t>();
    if (failed_ || bytes_.size() / element_bytes < count) {
      failed_ = true;
      return 0;
    }
    return count;
  }
  void Fail() { failed_ = true; }
  bool failed() const { return failed_; }
  bool empty() const { return bytes_.empty(); }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

// IEEE 754 binary16; exact.
double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024 + fraction, exponent - 25);
}

// The name of an aclFormat.
std::string FormatName(int32_t format) {
  for (const meaning::NamedNumber& known : meaning::kAclFormats) {
    if (known.number == format) return std::string(known.name);
  }
  return fmt::format("format {}", format);
}

// An aclScalar: its value as Argument::integer, `real` and `reals` hold it (ValueKind::kScalar).
void TakeScalar(Source& source, storage::SignatureArgument& value, std::string* dtype_name) {
  const auto dtype = static_cast<storage::DType>(source.Take<uint8_t>());
  std::array<std::byte, 16> bytes{};
  for (std::byte& byte : bytes) byte = source.Take<std::byte>();
  *dtype_name = storage::DTypeName(dtype);
  value.integer = 0;
  value.real = 0;
  const auto as = [&bytes]<typename T>(T) {
    T out;
    std::memcpy(&out, bytes.data(), sizeof(T));
    return out;
  };
  using storage::DType;
  switch (dtype) {
    case DType::kFloat32:
      value.real = as(float{});
      break;
    case DType::kFloat64:
      value.real = as(double{});
      break;
    case DType::kFloat16:
      value.real = HalfValue(as(uint16_t{}));
      break;
    case DType::kBfloat16:
      value.real = std::bit_cast<float>(uint32_t{as(uint16_t{})} << 16);
      break;
    case DType::kComplex64:
      value.reals = {as(std::array<float, 2>{})[0], as(std::array<float, 2>{})[1]};
      return;
    case DType::kComplex128:
      value.reals = {as(std::array<double, 2>{})[0], as(std::array<double, 2>{})[1]};
      return;
    case DType::kInt8:
      value.integer = as(int8_t{});
      return;
    case DType::kInt16:
      value.integer = as(int16_t{});
      return;
    case DType::kInt32:
      value.integer = as(int32_t{});
      return;
    case DType::kUint8:
    case DType::kBool:
      value.integer = as(uint8_t{});
      return;
    case DType::kUint16:
      value.integer = as(uint16_t{});
      return;
    case DType::kUint32:
      value.integer = as(uint32_t{});
      return;
    default:
      value.integer = as(int64_t{});
      return;
  }
  value.integer = std::bit_cast<int64_t>(value.real);
}

// The view of a tensor whose layout is that of its blocks (Note [Tensors in blocks] of
// recorder/acl).
// A rank, sizes and strides.
template <typename View>
View TakeView(Source& source) {
  View view;
  const auto rank = source.Take<uint8_t>();
  if (source.failed() || source.size() < size_t{16} * rank) {
    source.Fail();
    return view;
  }
  for (int d = 0; d < rank; ++d) view.sizes.push_back(source.Take<int64_t>());
  for (int d = 0; d < rank; ++d) view.strides.push_back(source.Take<int64_t>());
  return view;
}

void TakeBlockedView(Source& source, storage::Layout& layout) {
  const auto view = TakeView<storage::BlockedView>(source);
  if (!view.sizes.empty()) layout.format = storage::BlockedFormat(view);  // else that of the view
}

void TakeFourBitView(Source& source, storage::Layout& layout) {
  auto view = TakeView<storage::FourBitView>(source);
  view.offset = source.Take<uint8_t>();
  layout.format = storage::FourBitFormat(view);
}

void TakeTensor(Source& source, uint32_t slot_count, DecodedArgument& argument) {
  storage::Layout layout;
  layout.dtype = static_cast<storage::DType>(source.Take<uint8_t>());
  const auto rank = source.Take<uint8_t>();
  layout.flags = source.Take<uint8_t>();
  const auto slot = source.Take<uint16_t>();
  layout.byte_offset = source.Take<int64_t>();
  if (source.failed() || slot >= slot_count || source.size() < size_t{16} * rank) {
    source.Fail();
    return;
  }
  for (int d = 0; d < rank; ++d) layout.shape.push_back(source.Take<int64_t>());
  for (int d = 0; d < rank; ++d) layout.strides.push_back(source.Take<int64_t>());
  if ((layout.flags & wire::kTensorFormat) != 0) {
    const auto format = source.Take<int32_t>();
    layout.flags &= ~uint32_t{wire::kTensorFormat};
    if (format == meaning::kFormatOfFourBits) {
      TakeFourBitView(source, layout);
    } else if (format == meaning::kFormatOfFourBitBlocks) {
      layout.format = storage::FourBitBlocksFormat(TakeView<storage::BlockedView>(source));
    } else {
      layout.format = FormatName(format);
      if (format == meaning::kAclFormatFractalNz) TakeBlockedView(source, layout);
    }
  }
  if ((layout.flags & wire::kTensorMemory) != 0) {
    layout.flags &= ~uint32_t{wire::kTensorMemory};
    layout.memory = source.TakeText<uint8_t>();
  }
  argument.layouts.push_back(std::move(layout));
  argument.value.tensors.push_back({int32_t{slot}, static_cast<int64_t>(argument.layouts.size())});
}

template <typename Stored, typename Element>
void TakeList(Source& source, ValueKind kind, std::vector<Element>& out,
              DecodedArgument& argument) {
  argument.value.kind = kind;
  const uint32_t count = source.TakeCount(sizeof(Stored));
  out.reserve(count);
  for (uint32_t i = 0; i < count; ++i) out.push_back(source.Take<Stored>());
}

void TakeTensorList(Source& source, uint32_t slot_count, DecodedArgument& argument) {
  argument.value.kind = ValueKind::kTensorList;
  const uint32_t count = source.TakeCount(1);
  for (uint32_t i = 0; i < count && !source.failed(); ++i) {
    switch (source.Take<ArgumentTag>()) {
      case ArgumentTag::kTensor:
        TakeTensor(source, slot_count, argument);
        break;
      case ArgumentTag::kNone:
      case ArgumentTag::kUndefinedTensor:
        argument.value.tensors.push_back({});
        break;
      default:
        source.Fail();
    }
  }
}

void TakeArgument(Source& source, uint32_t slot_count, DecodedArgument& argument) {
  storage::SignatureArgument& value = argument.value;
  const auto tag = source.Take<ArgumentTag>();
  switch (tag) {
    case ArgumentTag::kNone:
      value.kind = ValueKind::kNone;
      break;
    case ArgumentTag::kTensor:
      value.kind = ValueKind::kTensor;
      TakeTensor(source, slot_count, argument);
      break;
    case ArgumentTag::kUndefinedTensor:
      value.kind = ValueKind::kTensor;
      value.tensors.push_back({});
      break;
    case ArgumentTag::kTensorList:
      TakeTensorList(source, slot_count, argument);
      break;
    case ArgumentTag::kInt:
      value.kind = ValueKind::kInt;
      value.integer = source.Take<int64_t>();
      break;
    case ArgumentTag::kReal:
      value.kind = ValueKind::kReal;
      value.real = source.Take<double>();
      break;
    case ArgumentTag::kBool:
      value.kind = ValueKind::kBool;
      value.integer = source.Take<uint8_t>() != 0 ? 1 : 0;
      break;
    case ArgumentTag::kText:
      value.kind = ValueKind::kText;
      value.text = source.TakeText();
      break;
    case ArgumentTag::kIntList:
      TakeList<int64_t>(source, ValueKind::kIntList, value.integers, argument);
      break;
    case ArgumentTag::kRealList:
      TakeList<double>(source, ValueKind::kRealList, value.reals, argument);
      break;
    case ArgumentTag::kBoolList:
      TakeList<uint8_t>(source, ValueKind::kBoolList, value.integers, argument);
      break;
    case ArgumentTag::kDtype:
      value.kind = ValueKind::kDtype;
      value.integer = source.Take<uint8_t>();
      break;
    case ArgumentTag::kDevice:
      value.kind = ValueKind::kDevice;
      value.text = source.TakeText();
      break;
    case ArgumentTag::kMemoryFormat:
      value.kind = ValueKind::kMemoryFormat;
      value.integer = source.Take<int64_t>();
      break;
    case ArgumentTag::kLayout:
      value.kind = ValueKind::kLayout;
      value.integer = source.Take<int64_t>();
      break;
    case ArgumentTag::kComplex:
      value.kind = ValueKind::kComplex;
      value.reals.push_back(source.Take<double>());
      value.reals.push_back(source.Take<double>());
      break;
    case ArgumentTag::kOther:
      value.kind = ValueKind::kOther;
      value.text = source.TakeText();
      break;
    case ArgumentTag::kScalar:
      value.kind = ValueKind::kScalar;
      TakeScalar(source, value, &value.text);
      break;
    case ArgumentTag::kScalarList: {
      value.kind = ValueKind::kScalarList;
      const uint32_t count = source.TakeCount(17);
      for (uint32_t i = 0; i < count; ++i) {
        storage::SignatureArgument one;
        std::string dtype;
        TakeScalar(source, one, &dtype);
        value.text += (i == 0 ? "" : ",") + dtype;
        value.integers.push_back(one.integer);
      }
      break;
    }
    default:
      source.Fail();
  }
}

}  // namespace

RecordBytes FirstRecord(std::span<const std::byte> bytes) {
  wire::RecordHeader header;
  if (bytes.size() < sizeof(header)) return {};
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.bytes < sizeof(header) || header.bytes % 8 != 0 || header.bytes > bytes.size()) {
    return {};
  }
  return bytes.first(header.bytes);
}

bool SplitTexts(std::span<const std::byte> bytes, std::string_view* texts, size_t count) {
  const char* text = reinterpret_cast<const char*>(bytes.data());
  size_t left = bytes.size();
  for (size_t i = 0; i < count; ++i) {
    const void* end = left == 0 ? nullptr : std::memchr(text, 0, left);
    if (end == nullptr) return false;
    const size_t length = static_cast<size_t>(static_cast<const char*>(end) - text);
    texts[i] = std::string_view(text, length);
    text += length + 1;
    left -= length + 1;
  }
  return true;
}

bool DecodeArguments(std::span<const std::byte> bytes, uint32_t slot_count,
                     std::vector<DecodedArgument>* arguments) {
  Source source(bytes);
  while (!source.empty()) {
    DecodedArgument argument;
    TakeArgument(source, slot_count, argument);
    if (source.failed()) return false;
    arguments->push_back(std::move(argument));
  }
  return true;
}

}  // namespace acltape::collector
