// Tasks that work on memory in place: sums, greatest and least values of what lies in two blocks,
// and random numbers whose counter lies in memory. Each is put on a stream by itself, and into a
// graph that runs three times, so that each run adds again and draws new numbers.
#include <initializer_list>

#include "acl/acl.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);

// Memory that the program writes by copies from pinned memory alone.
struct Memory {
  void* sum;       // float
  void* greatest;  // int32
  void* least;     // int32
  void* addend;    // float
  void* numbers;   // int32
  void* uniform;   // float
  void* mask;      // a bit for each number
  void* counter;   // counter of the generator
  void* limit;     // limit of the uniform numbers
};

void Upload(void* to, const void* from, size_t bytes) {
  CHECK_ACL(aclrtMemcpy(to, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
}

Memory MakeMemory() {
  Memory memory;
  void** blocks[] = {&memory.sum,    &memory.greatest, &memory.least,
                     &memory.addend, &memory.numbers,  &memory.uniform,
                     &memory.mask,   &memory.counter,  &memory.limit};
  for (void** block : blocks) *block = MallocDevice(kBytes);
  float addend[kCount], zero[kCount] = {};
  int32_t numbers[kCount], middle[kCount];
  for (int64_t i = 0; i < kCount; ++i) {
    addend[i] = static_cast<float>(i) / 4;
    numbers[i] = static_cast<int32_t>(i * 7 % 31) - 15;
    middle[i] = 3;
  }
  const float limit = 2;
  Upload(memory.addend, addend, kBytes);
  Upload(memory.numbers, numbers, kBytes);
  Upload(memory.sum, zero, kBytes);
  Upload(memory.greatest, middle, kBytes);
  Upload(memory.least, middle, kBytes);
  Upload(memory.counter, zero, 16);
  Upload(memory.limit, &limit, sizeof limit);
  return memory;
}

void FreeMemory(const Memory& memory) {
  for (void* block : {memory.sum, memory.greatest, memory.least, memory.addend, memory.numbers,
                      memory.uniform, memory.mask, memory.counter, memory.limit}) {
    CHECK_ACL(aclrtFree(block));
  }
}

template <typename T>
aclrtRandomParaInfo Value(T value) {
  aclrtRandomParaInfo parameter = {};
  memcpy(parameter.valueOrAddr, &value, sizeof value);
  parameter.size = sizeof value;
  return parameter;
}

aclrtRandomParaInfo InMemory(void* address) {
  aclrtRandomParaInfo parameter = Value(address);
  parameter.isAddr = 1;
  return parameter;
}

aclrtRandomNumTaskInfo Draw(const Memory& memory, void* result) {
  aclrtRandomNumTaskInfo task = {};
  task.dataType = ACL_FLOAT;
  task.randomResultAddr = result;
  task.randomCounterAddr = memory.counter;
  task.randomSeed = Value(uint64_t{2026});
  task.randomNum = Value(uint64_t{kCount});
  return task;
}

void PutTasks(const Memory& memory, aclrtStream stream) {
  CHECK_ACL(aclrtReduceAsync(memory.sum, memory.addend, kBytes, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM,
                             ACL_FLOAT, stream, nullptr));
  CHECK_ACL(aclrtReduceAsync(memory.greatest, memory.numbers, kBytes,
                             ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, ACL_INT32, stream, nullptr));
  CHECK_ACL(aclrtReduceAsync(memory.least, memory.numbers, kBytes, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN,
                             ACL_INT32, stream, nullptr));
  aclrtRandomNumTaskInfo uniform = Draw(memory, memory.uniform);
  uniform.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
  uniform.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = Value(1.0f);
  uniform.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = InMemory(memory.limit);
  CHECK_ACL(aclrtRandomNumAsync(&uniform, stream, nullptr));
  aclrtRandomNumTaskInfo mask = Draw(memory, memory.mask);
  mask.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK;
  mask.randomNumFuncParaInfo.paramInfo.dropoutBitmaskInfo.dropoutRation = Value(0.25f);
  CHECK_ACL(aclrtRandomNumAsync(&mask, stream, nullptr));
  // The numbers are added too, so that the sum depends on all that were drawn.
  CHECK_ACL(aclrtReduceAsync(memory.sum, memory.uniform, kBytes, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM,
                             ACL_FLOAT, stream, nullptr));
}

void Print(const char* when, const Memory& memory, aclrtStream stream) {
  float sum[kCount], uniform[kCount];
  int32_t greatest[kCount], least[kCount];
  uint8_t mask[kCount / 8];
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK_ACL(aclrtMemcpy(sum, kBytes, memory.sum, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_ACL(aclrtMemcpy(greatest, kBytes, memory.greatest, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_ACL(aclrtMemcpy(least, kBytes, memory.least, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_ACL(aclrtMemcpy(uniform, kBytes, memory.uniform, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_ACL(aclrtMemcpy(mask, sizeof mask, memory.mask, sizeof mask, ACL_MEMCPY_DEVICE_TO_HOST));
  double total = 0, drawn = 0;
  int64_t high = 0, low = 0, bits = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    CHECK(1 <= uniform[i] && uniform[i] < 2);
    total += sum[i];
    drawn += uniform[i];
    high += greatest[i];
    low += least[i];
    bits += mask[i / 8] >> (i % 8) & 1;
  }
  printf("%s: sum %.4f, greatest %" PRId64 ", least %" PRId64 ", drawn %.4f, kept %" PRId64 "\n",
         when, total, high, low, drawn, bits);
}

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  const Memory memory = MakeMemory();
  PutTasks(memory, stream);
  Print("by themselves", memory, stream);
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  PutTasks(memory, stream);
  aclmdlRI graph = nullptr;
  CHECK_ACL(aclmdlRICaptureEnd(stream, &graph));
  for (int i = 0; i < 3; ++i) {
    CHECK_ACL(aclmdlRIExecuteAsync(graph, stream));
    Print("in a graph", memory, stream);
  }
  CHECK_ACL(aclmdlRIDestroy(graph));
  FreeMemory(memory);
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("memory_tasks: passed\n");
  return 0;
}
