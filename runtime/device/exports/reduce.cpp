// Reductions of memory into memory (RED-01 to RED-03).
#include <cstring>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"
#include "runtime/device/short_floats.h"

using namespace acltape::device;

namespace {

using ReduceFunction = void (*)(char* to, const char* from, uint64_t bytes);

struct ReducePayload {
  char* to;
  const char* from;
  uint64_t bytes;
  ReduceFunction reduce;
};

// Integers wrap around, as two's complement does. Short floats are rounded once for each element.
struct Sum {
  static float Of(float a, float b) { return a + b; }
  static int32_t Of(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
};

// NaN is both the greatest and the least of a number and a NaN.
struct Greatest {
  template <typename T>
  static T Of(T a, T b) {
    return b > a || b != b ? b : a;
  }
};

struct Least {
  template <typename T>
  static T Of(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

// `Number` is what an element of type `Element` is computed as. Elements may lie at any address.
template <typename Element, typename Number, typename Operation>
void Reduce(char* to, const char* from, uint64_t bytes) {
  for (uint64_t offset = 0; offset < bytes; offset += sizeof(Element)) {
    Element old_value;
    Element source;
    std::memcpy(&old_value, to + offset, sizeof(Element));
    std::memcpy(&source, from + offset, sizeof(Element));
    const auto result = static_cast<Element>(
        Operation::Of(static_cast<Number>(old_value), static_cast<Number>(source)));
    std::memcpy(to + offset, &result, sizeof(Element));
  }
}

struct ReduceType {
  aclDataType type;
  uint64_t bytes;               // size of an element
  ReduceFunction functions[3];  // by kind, from ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM on
};

template <typename Element, typename Number>
constexpr ReduceType Row(aclDataType type) {
  return {type,
          sizeof(Element),
          {Reduce<Element, Number, Sum>, Reduce<Element, Number, Greatest>,
           Reduce<Element, Number, Least>}};
}

constexpr ReduceType kReduceTypes[] = {
    Row<int8_t, int32_t>(ACL_INT8),   Row<int16_t, int32_t>(ACL_INT16),
    Row<int32_t, int32_t>(ACL_INT32), Row<Half, float>(ACL_FLOAT16),
    Row<float, float>(ACL_FLOAT),     Row<Bfloat16, float>(ACL_BF16),
};

const ReduceType* FindReduceType(aclDataType type) {
  for (const ReduceType& row : kReduceTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

aclError FindReduction(aclrtReduceKind kind, aclDataType type, const char* call,
                       ReducePayload* payload) {
  const ReduceType* row = FindReduceType(type);
  if (row == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: data of type %d cannot be reduced", call,
                static_cast<int>(type));
  }
  if (payload->bytes == 0 || payload->bytes % row->bytes != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: count is %llu bytes, which is no positive number of elements of %llu bytes",
                call, static_cast<unsigned long long>(payload->bytes),
                static_cast<unsigned long long>(row->bytes));
  }
  switch (kind) {
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM:
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX:
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN:
      payload->reduce = row->functions[kind - ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM];
      return ACL_SUCCESS;
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL:
      return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: comparing is not offered", call);
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no kind %d", call, static_cast<int>(kind));
}

// RED-02: both addresses are memory of the device of the stream.
aclError CheckReduceMemory(const void* address, uint64_t bytes, const Stream& stream,
                           const char* call, const char* name) {
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(address, bytes, call, name));
  const std::optional<MemoryBlock> block = FindMemory(address);
  const int32_t device = stream.context().device().id;
  if (IsDevice(block) && block->device == device) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s %p is not memory of device %d", call, name,
              address, device);
}

aclError RunReduce(void* argument) {
  auto* task = static_cast<ReducePayload*>(argument);
  ACLTAPE_RETURN_IF_FAILED(
      CheckTaskMemory(task->to, task->bytes, ACL_ERROR_RT_SYS_DMA, "a reduction", "dst"));
  ACLTAPE_RETURN_IF_FAILED(
      CheckTaskMemory(task->from, task->bytes, ACL_ERROR_RT_SYS_DMA, "a reduction", "src"));
  task->reduce(task->to, task->from, task->bytes);
  return ACL_SUCCESS;
}

}  // namespace

aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count, aclrtReduceKind kind,
                          aclDataType type, aclrtStream stream, void* reserve) {
  ACLTAPE_CALL("aclrtReduceAsync");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(dst, kCall, "dst"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(src, kCall, "src"));
  if (reserve != nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: reserve is reserved and must be NULL", kCall);
  }
  ReducePayload payload{static_cast<char*>(dst), static_cast<const char*>(src), count, nullptr};
  ACLTAPE_RETURN_IF_FAILED(FindReduction(kind, type, kCall, &payload));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckReduceMemory(dst, count, *found, kCall, "dst"));
  ACLTAPE_RETURN_IF_FAILED(CheckReduceMemory(src, count, *found, kCall, "src"));
  return SubmitTask(*found, MakeTask(TaskKind::kCopy, "REDUCE_ASYNC", payload, RunReduce));
}
