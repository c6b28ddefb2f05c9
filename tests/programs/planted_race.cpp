// Two streams, one buffer: a producer that changes it and a consumer that sums it up. Ordered by
// events, or not: then what the consumer sees depends on which stream is faster.
//
//   planted_race [--event] [--capture]
//
// --event     orders the two streams: the consumer waits for each value, the producer for its
// reader
// --capture   captures the rounds as one graph with two branches and executes that
//
// The last line is a digest of the result's bits.
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr int kRounds = 40;

struct Program {
  bool ordered = false;
  aclrtStream producer = nullptr, consumer = nullptr;
  aclrtEvent written = nullptr, read = nullptr, fork = nullptr, join = nullptr;
  aclTensor *value = nullptr, *sum = nullptr;
  aclScalar *one = nullptr, *half = nullptr;
};

// Every round: value = value + 1; sum = sum / 2 + value.
void SubmitRounds(const Program& program) {
  for (int round = 0; round < kRounds; ++round) {
    RUN_OP(program.producer, aclnnInplaceAdds, program.value, program.one, program.one);
    if (program.ordered) {
      CHECK_ACL(aclrtRecordEvent(program.written, program.producer));
      CHECK_ACL(aclrtStreamWaitEvent(program.consumer, program.written));
    }
    RUN_OP(program.consumer, aclnnInplaceMuls, program.sum, program.half);
    RUN_OP(program.consumer, aclnnInplaceAdd, program.sum, program.value, program.one);
    if (program.ordered) {
      CHECK_ACL(aclrtRecordEvent(program.read, program.consumer));
      CHECK_ACL(aclrtStreamWaitEvent(program.producer, program.read));
    }
  }
}

void RunCaptured(const Program& program) {
  aclmdlRI model = nullptr;
  CHECK_ACL(aclmdlRICaptureBegin(program.producer, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_ACL(aclrtRecordEvent(program.fork, program.producer));
  CHECK_ACL(aclrtStreamWaitEvent(program.consumer, program.fork));
  SubmitRounds(program);
  CHECK_ACL(aclrtRecordEvent(program.join, program.consumer));
  CHECK_ACL(aclrtStreamWaitEvent(program.producer, program.join));
  CHECK_ACL(aclmdlRICaptureEnd(program.producer, &model));
  CHECK_ACL(aclmdlRIExecuteAsync(model, program.producer));
  CHECK_ACL(aclrtSynchronizeStream(program.producer));
  CHECK_ACL(aclmdlRIDestroy(model));
}

uint64_t Digest(const float* values) {
  uint64_t digest = 14695981039346656037u;  // FNV-1a
  const auto* bytes = reinterpret_cast<const unsigned char*>(values);
  for (size_t i = 0; i < kBytes; ++i) digest = (digest ^ bytes[i]) * 1099511628211u;
  return digest;
}

}  // namespace

int main(int argc, char** argv) {
  Program program;
  bool capture = false;
  for (int i = 1; i < argc; ++i) {
    bool event = strcmp(argv[i], "--event") == 0;
    CHECK(event || strcmp(argv[i], "--capture") == 0);
    (event ? program.ordered : capture) = true;
  }
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  for (aclrtStream* stream : {&program.producer, &program.consumer}) {
    CHECK_ACL(aclrtCreateStream(stream));
  }
  for (aclrtEvent* event : {&program.written, &program.read, &program.fork, &program.join}) {
    CHECK_ACL(aclrtCreateEventExWithFlag(event, ACL_EVENT_SYNC));
  }
  void* value = MallocDevice(kBytes);
  void* sum = MallocDevice(kBytes);
  CHECK_ACL(aclrtMemset(value, kBytes, 0, kBytes));
  CHECK_ACL(aclrtMemset(sum, kBytes, 0, kBytes));
  program.value = MakeVector(kCount, value);
  program.sum = MakeVector(kCount, sum);
  program.one = MakeScalar(1);
  program.half = MakeScalar(0.5f);

  if (capture) {
    RunCaptured(program);
  } else {
    SubmitRounds(program);
  }
  CHECK_ACL(aclrtSynchronizeDevice());
  float result[kCount];
  CHECK_ACL(aclrtMemcpy(result, kBytes, sum, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  if (program.ordered) {
    float expected = 0;
    for (int round = 0; round < kRounds; ++round) expected = expected * 0.5f + (round + 1);
    CHECK(result[0] == expected && result[kCount - 1] == expected);
  }

  for (aclTensor* tensor : {program.value, program.sum}) CHECK_ACL(aclDestroyTensor(tensor));
  for (aclScalar* scalar : {program.one, program.half}) CHECK_ACL(aclDestroyScalar(scalar));
  FreeWorkspaces();
  for (void* block : {value, sum}) CHECK_ACL(aclrtFree(block));
  for (aclrtEvent event : {program.written, program.read, program.fork, program.join}) {
    CHECK_ACL(aclrtDestroyEvent(event));
  }
  for (aclrtStream stream : {program.producer, program.consumer}) {
    CHECK_ACL(aclrtDestroyStream(stream));
  }
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("digest: %016" PRIx64 "\n", Digest(result));
  return 0;
}
