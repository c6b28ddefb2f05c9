#include "replayer/reproducer/cpp_arguments.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "replayer/device/lowered_scalar.h"
#include "replayer/device/scalar_value.h"
#include "storage/blocked_format.h"
#include "storage/error.h"

namespace acltape::replayer::reproducer {
namespace {

using acl::ArgKind;
using analyzer::lowering::LoweredTensor;
using analyzer::lowering::LoweredValue;
using storage::ValueKind;

struct TypeName {
  aclDataType type;
  const char* name;
  const char* cpp;  // the C++ type of a scalar; null: its bits are written
};
constexpr TypeName kTypeNames[] = {
    {ACL_FLOAT, "ACL_FLOAT", "float"},
    {ACL_FLOAT16, "ACL_FLOAT16", nullptr},
    {ACL_BF16, "ACL_BF16", nullptr},
    {ACL_DOUBLE, "ACL_DOUBLE", "double"},
    {ACL_INT8, "ACL_INT8", "int8_t"},
    {ACL_INT16, "ACL_INT16", "int16_t"},
    {ACL_INT32, "ACL_INT32", "int32_t"},
    {ACL_INT64, "ACL_INT64", "int64_t"},
    {ACL_UINT8, "ACL_UINT8", "uint8_t"},
    {ACL_UINT16, "ACL_UINT16", "uint16_t"},
    {ACL_UINT32, "ACL_UINT32", "uint32_t"},
    {ACL_UINT64, "ACL_UINT64", "uint64_t"},
    {ACL_BOOL, "ACL_BOOL", "bool"},
    {ACL_COMPLEX32, "ACL_COMPLEX32", nullptr},
    {ACL_COMPLEX64, "ACL_COMPLEX64", nullptr},
    {ACL_COMPLEX128, "ACL_COMPLEX128", nullptr},
};

std::string TypeText(aclDataType type) {
  for (const TypeName& row : kTypeNames) {
    if (row.type == type) return row.name;
  }
  return fmt::format("static_cast<aclDataType>({})", static_cast<int>(type));
}

std::string FormatText(const std::string& name) {
  const aclFormat format = AclFormat(name);
  if (format == ACL_FORMAT_UNDEFINED) {
    throw Error(ErrorKind::kUsage, "there is no ACL format " + name + " to print");
  }
  if (format == ACL_FORMAT_ND) return "";
  if (format == ACL_FRACTAL_Z_3D) return ", ACL_FRACTAL_Z_3D";
  return ", ACL_FORMAT_" + name;
}

std::string TensorText(const char* make, const LoweredTensor& tensor, const AddressText& address) {
  if (!tensor.present) return "nullptr";
  const storage::Layout& layout = tensor.layout;
  if (const auto view = storage::ParseBlockedFormat(layout.format)) {
    return fmt::format("a.{}({}, {}, {}, {}, ACL_FORMAT_FRACTAL_NZ, {})", make,
                       DTypeText(layout.dtype), SizesText(view->sizes), SizesText(view->strides),
                       address(tensor), SizesText(layout.shape));
  }
  if (const auto view = storage::ParseFourBitBlocksFormat(layout.format)) {
    std::vector<int64_t> blocks = layout.shape;
    if (!blocks.empty()) blocks.back() *= 2;
    return fmt::format("a.{}(ACL_INT4, {}, {}, {}, ACL_FORMAT_FRACTAL_NZ, {})", make,
                       SizesText(view->sizes), SizesText(view->strides), address(tensor),
                       SizesText(blocks));
  }
  if (const auto view = storage::ParseFourBitFormat(layout.format)) {
    if (view->offset != 0) {
      throw Error(ErrorKind::kUsage,
                  "a tensor of 4 bit integers that begins within a byte cannot be printed");
    }
    return fmt::format("a.{}(ACL_INT4, {}, {}, {})", make, SizesText(view->sizes),
                       SizesText(view->strides), address(tensor));
  }
  return fmt::format("a.{}({}, {}, {}, {}{})", make, DTypeText(layout.dtype),
                     SizesText(layout.shape), SizesText(layout.strides), address(tensor),
                     FormatText(layout.format));
}

template <typename T>
T Stored(const ScalarValue& scalar) {
  T value;
  std::memcpy(&value, scalar.bytes.data(), sizeof value);
  return value;
}

std::string IntegerText(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return "INT64_MIN";
  return std::to_string(value);
}

std::string ScalarText(const char* make, const ScalarValue& scalar) {
  const std::string type = TypeText(scalar.dtype);
  switch (scalar.dtype) {
    case ACL_FLOAT:
      return fmt::format("a.{}<float>({}, {})", make, type, RealText(Stored<float>(scalar), "f"));
    case ACL_DOUBLE:
      return fmt::format("a.{}<double>({}, {})", make, type, RealText(Stored<double>(scalar)));
    case ACL_BOOL:
      return fmt::format("a.{}<bool>({}, {})", make, type, scalar.bytes[0] != 0);
    case ACL_FLOAT16:
    case ACL_BF16:
      return fmt::format("a.{}<uint16_t>({}, {:#x})", make, type, Stored<uint16_t>(scalar));
    case ACL_COMPLEX64:
      return fmt::format("a.{}(ACL_COMPLEX64, std::array<float, 2>{{{{{}, {}}}}})", make,
                         RealText(Stored<std::array<float, 2>>(scalar)[0], "f"),
                         RealText(Stored<std::array<float, 2>>(scalar)[1], "f"));
    case ACL_COMPLEX128:
      return fmt::format("a.{}(ACL_COMPLEX128, std::array<double, 2>{{{{{}, {}}}}})", make,
                         RealText(Stored<std::array<double, 2>>(scalar)[0]),
                         RealText(Stored<std::array<double, 2>>(scalar)[1]));
    default:
      break;
  }
  for (const TypeName& row : kTypeNames) {
    if (row.type != scalar.dtype || row.cpp == nullptr) continue;
    // On a little endian machine the low bytes are the value.
    return fmt::format("a.{}<{}>({}, static_cast<{}>({}))", make, row.cpp, type, row.cpp,
                       IntegerText(Stored<int64_t>(scalar)));
  }
  throw Error(ErrorKind::kUsage, "a scalar of type " + type + " cannot be printed as C++");
}

std::string ArgumentText(const acl::ArgInfo& info, const LoweredValue& value,
                         const AddressText& address) {
  const auto refuse = [&]() -> std::string {
    throw Error(ErrorKind::kUsage,
                fmt::format("argument {} cannot take a {}", info.name, ValueKindName(value.kind)));
  };
  const bool absent = value.kind == ValueKind::kNone;
  switch (info.kind) {
    case ArgKind::kTensor:
      if (absent) return "nullptr";
      if (value.kind != ValueKind::kTensor) return refuse();
      return TensorText("Tensor", value.tensors[0], address);
    case ArgKind::kTensorList: {
      if (absent) return "nullptr";
      if (value.kind != ValueKind::kTensorList) return refuse();
      std::vector<std::string> elements;
      for (const LoweredTensor& tensor : value.tensors) {
        elements.push_back(TensorText("Element", tensor, address));
      }
      return fmt::format("a.Tensors({{{}}})", fmt::join(elements, ", "));
    }
    case ArgKind::kScalar: {
      if (absent) return "nullptr";
      const ScalarValue scalar = ScalarOfLowered(value);
      if (scalar.dtype == ACL_DT_UNDEFINED) return refuse();
      return ScalarText("Scalar", scalar);
    }
    case ArgKind::kScalarList: {
      if (absent) return "nullptr";
      std::vector<std::string> elements;
      for (const ScalarValue& scalar : ScalarsOfLowered(value)) {
        if (scalar.dtype == ACL_DT_UNDEFINED) return refuse();
        elements.push_back(ScalarText("ScalarElement", scalar));
      }
      return fmt::format("a.Scalars({{{}}})", fmt::join(elements, ", "));
    }
    case ArgKind::kIntArray:
      if (absent) return "nullptr";
      return fmt::format("a.Integers({})", SizesText(value.integers));
    case ArgKind::kFloatArray: {
      if (absent) return "nullptr";
      std::vector<std::string> elements;
      for (const double real : value.reals) {
        elements.push_back(RealText(static_cast<float>(real), "f"));
      }
      return fmt::format("a.Floats({{{}}})", fmt::join(elements, ", "));
    }
    case ArgKind::kBoolArray:
      if (absent) return "nullptr";
      return fmt::format("a.Booleans({})", SizesText(value.integers));
    case ArgKind::kString:
      return absent ? "nullptr" : fmt::format("a.Text({})", QuotedText(value.text));
    case ArgKind::kFloat:
    case ArgKind::kDouble: {
      const double real =
          value.kind == ValueKind::kReal ? value.real : static_cast<double>(value.integer);
      return info.kind == ArgKind::kFloat ? RealText(static_cast<float>(real), "f")
                                          : RealText(real);
    }
    case ArgKind::kDtype:
      if (value.kind == ValueKind::kInt) return TypeText(static_cast<aclDataType>(value.integer));
      if (value.kind != ValueKind::kDtype) return refuse();
      return DTypeText(static_cast<storage::DType>(value.integer));
    case ArgKind::kBool:
      return value.integer != 0 ? "true" : "false";
    default:
      if (value.kind != ValueKind::kInt && value.kind != ValueKind::kBool) return refuse();
      return IntegerText(value.integer);
  }
}

}  // namespace

std::string DTypeText(storage::DType dtype) {
  const aclDataType type = AclType(dtype);
  if (type == ACL_DT_UNDEFINED) {
    throw Error(ErrorKind::kUsage,
                fmt::format("there is no ACL element type for {}", DTypeName(dtype)));
  }
  return TypeText(type);
}

std::string SizesText(const std::vector<int64_t>& sizes) {
  std::vector<std::string> words;
  words.reserve(sizes.size());
  for (const int64_t size : sizes) words.push_back(IntegerText(size));
  return fmt::format("{{{}}}", fmt::join(words, ", "));
}

std::string RealText(double value, const char* suffix) {
  if (std::isnan(value)) return std::signbit(value) ? "-NAN" : "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  std::string text = fmt::format("{}", value);  // the shortest text that reads back as the value
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + suffix;
}

std::string QuotedText(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::vector<std::string> ArgumentTexts(const acl::OperatorInfo& info,
                                       const analyzer::lowering::Invocation& invocation,
                                       const AddressText& address) {
  if (invocation.arguments.size() != info.arg_count) {
    throw Error(ErrorKind::kUsage, fmt::format("{} takes {} arguments, here are {}", info.name,
                                               info.arg_count, invocation.arguments.size()));
  }
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    try {
      texts.push_back(ArgumentText(info.args[i], invocation.arguments[i], address));
    } catch (const Error& error) {
      throw Error(ErrorKind::kUsage, fmt::format("{}: {}", info.name, error.what()));
    }
  }
  return texts;
}

}  // namespace acltape::replayer::reproducer
