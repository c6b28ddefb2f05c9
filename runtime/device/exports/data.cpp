// Data types, buffers and the program's log lines: functions that need no device.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "runtime/device/call.h"
#include "runtime/device/data_buffer.h"
#include "runtime/device/plain_object.h"

using namespace acltape::device;

namespace {

struct TypeSize {
  aclDataType type;
  size_t bytes;
};

// Types below one byte count as one, as does the vendor's own table.
constexpr TypeSize kTypeSizes[] = {
    {ACL_FLOAT, 4},     {ACL_FLOAT16, 2},     {ACL_INT8, 1},          {ACL_INT32, 4},
    {ACL_UINT8, 1},     {ACL_INT16, 2},       {ACL_UINT16, 2},        {ACL_UINT32, 4},
    {ACL_INT64, 8},     {ACL_UINT64, 8},      {ACL_DOUBLE, 8},        {ACL_BOOL, 1},
    {ACL_COMPLEX64, 8}, {ACL_COMPLEX128, 16}, {ACL_BF16, 2},          {ACL_COMPLEX32, 4},
    {ACL_HIFLOAT8, 1},  {ACL_FLOAT8_E5M2, 1}, {ACL_FLOAT8_E4M3FN, 1}, {ACL_FLOAT8_E8M0, 1},
};

float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace

size_t aclDataTypeSize(aclDataType dataType) {
  for (const TypeSize& row : kTypeSizes) {
    if (row.type == dataType) return row.bytes;
  }
  return 0;
}

float aclFloat16ToFloat(aclFloat16 value) {
  uint32_t sign = static_cast<uint32_t>(value & 0x8000u) << 16;
  uint32_t exponent = (value >> 10) & 0x1Fu;
  uint32_t fraction = value & 0x3FFu;
  if (exponent == 0x1F) return FloatFromBits(sign | 0x7F800000u | fraction << 13);
  if (exponent != 0) return FloatFromBits(sign | (exponent + 112) << 23 | fraction << 13);
  // Zero and subnormal numbers: fraction times 2 to the -24.
  float magnitude = static_cast<float>(fraction) * FloatFromBits(103u << 23);
  return FloatFromBits(BitsOf(magnitude) | sign);
}

aclFloat16 aclFloatToFloat16(float value) {
  uint32_t bits = BitsOf(value);
  auto sign = static_cast<uint32_t>((bits >> 16) & 0x8000u);
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<aclFloat16>(sign | 0x7E00u);  // NaN
  if (magnitude >= 0x477FF000u) {
    return static_cast<aclFloat16>(sign | 0x7C00u);  // rounds to infinity
  }
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 makes the hardware round to a multiple of 2 to the -24, to even.
    float shifted = FloatFromBits(magnitude) + 0.5f;
    return static_cast<aclFloat16>(sign | (BitsOf(shifted) - 0x3F000000u));
  }
  uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<aclFloat16>(sign | ((rounded - (112u << 23)) >> 13));
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  return Plain<aclDataBuffer>().Create(data, size);
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  ACLTAPE_CALL("aclDestroyDataBuffer");
  return DestroyPlain(dataBuffer, kCall, "dataBuffer");
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  ACLTAPE_CALL("aclUpdateDataBuffer");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(dataBuffer, kCall, "dataBuffer"));
  *dataBuffer = {data, size};
  return ACL_SUCCESS;
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  return ValueOr(
      dataBuffer, "aclGetDataBufferAddr", "dataBuffer",
      [](const aclDataBuffer& buffer) { return buffer.data; }, nullptr);
}

uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  return ValueOr(
      dataBuffer, "aclGetDataBufferSize", "dataBuffer",
      [](const aclDataBuffer& buffer) { return static_cast<uint32_t>(buffer.bytes); }, 0);
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  return ValueOr(
      dataBuffer, "aclGetDataBufferSizeV2", "dataBuffer",
      [](const aclDataBuffer& buffer) { return buffer.bytes; }, 0);
}

void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
               const char* fmt, ...) {
  if (logLevel < ACL_ERROR || fmt == nullptr) return;
  char text[1024];
  va_list args;
  va_start(args, fmt);
  std::vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  std::fprintf(stderr, "[ERROR] %s:%u %s: %s\n", file != nullptr ? file : "", line,
               func != nullptr ? func : "", text);
}
