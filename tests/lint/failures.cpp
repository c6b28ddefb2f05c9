// Small ACL programs, each with one thing that goes wrong when its work becomes a captured graph,
// and a clean twin without it. They know nothing of acltape.
//
//   failures NAME [--clean]
//   failures --list
//
// Most run eagerly: what lies between their first and their last operator is what would be
// captured. Those about captures of a program capture themselves.
#include <pthread.h>

#include <initializer_list>

#include "acl/acl.h"
#include "acl/acl_rt_memory_soma.h"
#include "aclnnop/aclnn_abs.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mm.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_relu.h"
#include "aclnnop/aclnn_sub.h"
#include "sample.h"

namespace {

constexpr int64_t kSide = 32;
constexpr int64_t kCount = kSide * kSide;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr int kBuffers = 8;

// Streams, events and buffers of a case.
struct Bench {
  aclrtStream main = nullptr, side = nullptr, third = nullptr;
  aclrtEvent fork = nullptr, join = nullptr, other = nullptr, old = nullptr;
  void* blocks[kBuffers] = {};
  aclTensor* tensors[kBuffers] = {};
  aclScalar* one = nullptr;
  void* pinned = nullptr;
  float* pageable = nullptr;
};

void Relu(const Bench& bench, aclrtStream stream, int from, int to) {
  RUN_OP(stream, aclnnRelu, bench.tensors[from], bench.tensors[to]);
}

void Order(aclrtEvent event, aclrtStream first, aclrtStream second) {
  CHECK_ACL(aclrtRecordEvent(event, first));
  CHECK_ACL(aclrtStreamWaitEvent(second, event));
}

// ---- Eager programs.

void UnjoinedFork(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  Order(b.fork, b.main, b.side);
  Relu(b, b.side, 1, 2);
  if (clean) Order(b.join, b.side, b.main);
  Relu(b, b.main, 0, 3);
}

// The stream is joined, but work follows after the join.
void WorkAfterJoin(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  Order(b.fork, b.main, b.side);
  Relu(b, b.side, 1, 2);
  Order(b.join, b.side, b.main);
  if (!clean) Relu(b, b.side, 1, 4);
  Relu(b, b.main, 0, 3);
}

void StreamSync(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  CHECK_ACL(aclrtSynchronizeStream(clean ? b.third : b.main));
  Relu(b, b.main, 1, 2);
}

void StreamQuery(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  aclrtStreamStatus status;
  CHECK_ACL(aclrtStreamQuery(clean ? b.third : b.main, &status));
  Relu(b, b.main, 1, 2);
}

void DeviceSync(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  if (!clean) CHECK_ACL(aclrtSynchronizeDevice());
  Relu(b, b.main, 1, 2);
}

void SynchronousCopy(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  if (clean) {
    CHECK_ACL(
        aclrtMemcpyAsync(b.pinned, kBytes, b.blocks[4], kBytes, ACL_MEMCPY_DEVICE_TO_HOST, b.main));
  } else {
    CHECK_ACL(aclrtMemcpy(b.pinned, kBytes, b.blocks[4], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  }
  Relu(b, b.main, 1, 2);
}

struct OtherThread {
  const Bench* bench;
  bool clean;
};
void* FillInThread(void* argument) {
  const auto* other = static_cast<const OtherThread*>(argument);
  CHECK_ACL(aclrtSetDevice(0));
  aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  if (other->clean) CHECK_ACL(aclmdlRICaptureThreadExchangeMode(&mode));
  CHECK_ACL(aclrtMemset(other->bench->blocks[7], kBytes, 0, kBytes));
  if (other->clean) CHECK_ACL(aclmdlRICaptureThreadExchangeMode(&mode));
  return nullptr;
}

// A data loader clears a buffer meanwhile.
void FillOfAnotherThread(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  OtherThread other{&b, clean};
  pthread_t thread;
  CHECK(pthread_create(&thread, nullptr, FillInThread, &other) == 0);
  CHECK(pthread_join(thread, nullptr) == 0);
  Relu(b, b.main, 1, 2);
}

void Allocation(const Bench& b, bool clean) {
  void* early = clean ? MallocDevice(kBytes) : nullptr;
  Relu(b, b.main, 0, 1);
  void* block = clean ? early : MallocDevice(kBytes);
  CHECK_ACL(
      aclrtMemcpyAsync(block, kBytes, b.blocks[1], kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, b.main));
  Relu(b, b.main, 1, 2);
  CHECK_ACL(aclrtSynchronizeStream(b.main));
  CHECK_ACL(aclrtFree(block));
}

void PageableCopy(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  CHECK_ACL(aclrtMemcpyAsync(b.blocks[3], kBytes, clean ? b.pinned : b.pageable, kBytes,
                             ACL_MEMCPY_HOST_TO_DEVICE, b.main));
  Relu(b, b.main, 3, 2);
}

// The copy is of a stream that takes no part.
void PageableCopyElsewhere(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  CHECK_ACL(aclrtMemcpyAsync(b.blocks[6], kBytes, clean ? b.pinned : b.pageable, kBytes,
                             ACL_MEMCPY_HOST_TO_DEVICE, b.third));
  Relu(b, b.main, 1, 2);
}

void CapturedEventQuery(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  CHECK_ACL(aclrtRecordEvent(b.fork, b.main));
  aclrtEventRecordedStatus status;
  CHECK_ACL(aclrtQueryEventStatus(clean ? b.other : b.fork, &status));
  Relu(b, b.main, 1, 2);
}

void CapturedEventSync(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  CHECK_ACL(aclrtRecordEvent(b.fork, b.main));
  CHECK_ACL(aclrtSynchronizeEvent(clean ? b.other : b.fork));
  Relu(b, b.main, 1, 2);
}

void OutsideEvent(const Bench& b, bool clean) {
  if (clean) {
    Relu(b, b.main, 0, 1);
    Order(b.fork, b.main, b.side);
    Relu(b, b.side, 1, 2);
    Order(b.join, b.side, b.main);
    Relu(b, b.main, 2, 3);
    return;
  }
  CHECK_ACL(aclrtRecordEvent(b.join, b.third));
  CHECK_ACL(aclrtSynchronizeStream(b.third));
  Relu(b, b.main, 0, 1);
  CHECK_ACL(aclrtStreamWaitEvent(b.main, b.join));
  Relu(b, b.main, 1, 3);
}

void OldEvent(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  CHECK_ACL(aclrtRecordEvent(clean ? b.fork : b.old, b.main));
  Relu(b, b.main, 1, 3);
}

void ForkOfDefaultStream(const Bench& b, bool clean) {
  aclrtStream stream = clean ? b.side : nullptr;
  Relu(b, b.main, 0, 1);
  Order(b.fork, b.main, stream);
  Relu(b, stream, 1, 2);
  Order(b.join, stream, b.main);
  Relu(b, b.main, 1, 3);
}

void DefaultStreamOrigin(const Bench& b, bool clean) {
  aclrtStream stream = clean ? b.main : nullptr;
  Relu(b, stream, 0, 1);
  Relu(b, stream, 1, 2);
}

// A side stream that the program orders with the host, not by an event.
void UncapturedWork(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  if (clean) Order(b.fork, b.main, b.side);
  Relu(b, b.side, 0, 4);
  if (clean) {
    Order(b.join, b.side, b.main);
  } else {
    CHECK_ACL(aclrtSynchronizeStream(b.side));
  }
  RUN_OP(b.main, aclnnAdd, b.tensors[1], b.tensors[4], b.one, b.tensors[5]);
}

void CountUp(void* count) { ++*static_cast<int*>(count); }
int calls_of_host_function = 0;

void HostFunction(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  if (!clean) CHECK_ACL(aclrtLaunchHostFunc(b.main, CountUp, &calls_of_host_function));
  Relu(b, b.main, 1, 2);
}

// mm on the origin, abs and sub on a second stream, add of both: one fork and one join are not
// enough, because sub reads what mm writes after the fork.
void CapturedRace(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 6);
  Order(b.fork, b.main, b.side);
  RUN_OP(b.main, aclnnMm, b.tensors[6], b.tensors[6], b.tensors[1], int8_t{0});
  RUN_OP(b.side, aclnnAbs, b.tensors[6], b.tensors[2]);
  if (clean) Order(b.other, b.main, b.side);
  RUN_OP(b.side, aclnnSub, b.tensors[2], b.tensors[1], b.one, b.tensors[3]);
  Order(b.join, b.side, b.main);
  RUN_OP(b.main, aclnnAdd, b.tensors[1], b.tensors[3], b.one, b.tensors[4]);
}

// Two streams, one buffer, and only the host's luck between them.
void EagerRace(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 1);
  if (clean) Order(b.fork, b.main, b.side);
  Relu(b, b.side, 1, 2);
  if (clean) Order(b.join, b.side, b.main);
}

// ---- Programs that capture.

aclmdlRI End(aclrtStream stream) {
  aclmdlRI model = nullptr;
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  return model;
}

void Begin(aclrtStream stream, aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
  CHECK_ACL(aclmdlRICaptureBegin(stream, mode));
}

void RunAndDestroy(const Bench& b, aclmdlRI model) {
  CHECK_ACL(aclmdlRIExecuteAsync(model, b.main));
  CHECK_ACL(aclrtSynchronizeStream(b.main));
  CHECK_ACL(aclmdlRIDestroy(model));
}

void EndOnWrongStream(const Bench& b, bool clean) {
  Begin(b.main);
  Relu(b, b.main, 0, 1);
  Order(b.fork, b.main, b.side);
  Relu(b, b.side, 1, 2);
  Order(b.join, b.side, b.main);
  aclmdlRI model = nullptr;
  if (!clean) CHECK(aclmdlRICaptureEnd(b.side, &model) == 107036);
  RunAndDestroy(b, End(b.main));
}

void* EndInThread(void* argument) {
  const auto* other = static_cast<const OtherThread*>(argument);
  CHECK_ACL(aclrtSetDevice(0));
  aclmdlRI model = nullptr;
  CHECK(aclmdlRICaptureEnd(other->bench->main, &model) == 107038);
  return nullptr;
}

void EndInWrongThread(const Bench& b, bool clean) {
  Begin(b.main, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL);
  Relu(b, b.main, 0, 1);
  if (clean) {
    RunAndDestroy(b, End(b.main));
    return;
  }
  OtherThread other{&b, clean};
  pthread_t thread;
  CHECK(pthread_create(&thread, nullptr, EndInThread, &other) == 0);
  CHECK(pthread_join(thread, nullptr) == 0);
}

void SharedEvent(const Bench& b, bool clean) {
  Begin(b.third);
  Relu(b, b.third, 0, 5);
  CHECK_ACL(aclrtRecordEvent(b.other, b.third));
  Begin(b.main);
  Relu(b, b.main, 0, 1);
  if (clean) {
    Relu(b, b.main, 1, 2);
    aclmdlRI model = End(b.main);
    RunAndDestroy(b, End(b.third));
    RunAndDestroy(b, model);
    return;
  }
  CHECK(aclrtStreamWaitEvent(b.main, b.other) == 107032);
  Relu(b, b.main, 1, 2);
  aclmdlRI model = nullptr;
  CHECK(aclmdlRICaptureEnd(b.main, &model) == 507903);
  CHECK(aclmdlRICaptureEnd(b.third, &model) == 507903);
}

void CopyInTaskGroup(const Bench& b, bool clean) {
  Begin(b.main);
  CHECK_ACL(aclmdlRICaptureTaskGrpBegin(b.main));
  Relu(b, b.main, 0, 1);
  aclrtTaskGrp group = nullptr;
  if (clean) {
    CHECK_ACL(aclmdlRICaptureTaskGrpEnd(b.main, &group));
    RunAndDestroy(b, End(b.main));
    return;
  }
  CHECK(aclrtMemcpyAsync(b.blocks[3], kBytes, b.blocks[1], kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE,
                         b.main) == 507009);
  CHECK(aclmdlRICaptureTaskGrpEnd(b.main, &group) == 507009);
  aclmdlRI model = nullptr;
  CHECK(aclmdlRICaptureEnd(b.main, &model) == 507903);
}

void SyncInOwnCapture(const Bench& b, bool clean) {
  Begin(b.main, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
  Relu(b, b.main, 0, 1);
  if (!clean) CHECK(aclrtSynchronizeStream(b.main) == 107027);
  RunAndDestroy(b, End(b.main));
}

// The graph reads memory that is freed between two executions.
void FreedAddress(const Bench& b, bool clean) {
  void* block = MallocDevice(kBytes);
  CHECK_ACL(aclrtMemset(block, kBytes, 0, kBytes));
  const int64_t sizes[] = {kSide, kSide};
  aclTensor* tensor = MakeTensor(ACL_FLOAT, 2, sizes, block);
  Begin(b.main);
  RUN_OP(b.main, aclnnRelu, tensor, b.tensors[1]);
  aclmdlRI model = End(b.main);
  CHECK_ACL(aclmdlRIExecuteAsync(model, b.main));
  CHECK_ACL(aclrtSynchronizeStream(b.main));
  if (!clean) CHECK_ACL(aclrtFree(block));
  void* another = MallocDevice(kBytes);  // may get the same address
  CHECK_ACL(aclrtMemset(another, kBytes, 0, kBytes));
  CHECK_ACL(aclmdlRIExecuteAsync(model, b.main));
  // The soft device fails the task. Elsewhere it may read what lies there now.
  CHECK(aclrtSynchronizeStream(b.main) == ACL_SUCCESS || !clean);
  CHECK_ACL(aclmdlRIDestroy(model));
  if (clean) CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtFree(another));
  CHECK_ACL(aclDestroyTensor(tensor));
}

aclrtMemPool NewPool() {
  aclrtMemPoolProps properties{};
  properties.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  properties.maxSize = size_t{16} << 20;
  aclrtMemPool pool = nullptr;
  CHECK_ACL(aclrtMemPoolCreate(&pool, &properties));
  return pool;
}

// Memory of a pool is allocated between the work that would be captured.
void PoolAllocation(const Bench& b, bool clean) {
  aclrtMemPool pool = NewPool();
  void* block = nullptr;
  if (clean) CHECK_ACL(aclrtMemPoolMallocAsync(&block, kBytes, pool, b.main));
  Relu(b, b.main, 0, 1);
  if (!clean) CHECK_ACL(aclrtMemPoolMallocAsync(&block, kBytes, pool, b.main));
  CHECK_ACL(
      aclrtMemcpyAsync(block, kBytes, b.blocks[1], kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, b.main));
  Relu(b, b.main, 1, 2);
  CHECK_ACL(aclrtSynchronizeStream(b.main));
  CHECK_ACL(aclrtMemPoolFreeAsync(block, b.main));
  CHECK_ACL(aclrtMemPoolDestroy(pool));
}

// A stream frees memory of a pool that another stream may still read.
void PoolFreeRace(const Bench& b, bool clean) {
  Relu(b, b.main, 0, 2);
  aclrtMemPool pool = NewPool();
  void* block = nullptr;
  CHECK_ACL(aclrtMemPoolMallocAsync(&block, kBytes, pool, b.main));
  CHECK_ACL(aclrtMemsetAsync(block, kBytes, 0, kBytes, b.main));
  Order(b.fork, b.main, b.side);
  CHECK_ACL(
      aclrtMemcpyAsync(b.blocks[1], kBytes, block, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, b.side));
  if (clean) Order(b.join, b.side, b.main);
  CHECK_ACL(aclrtMemPoolFreeAsync(block, b.main));
  CHECK_ACL(aclrtSynchronizeStream(b.main));
  // The soft device fails the copy when the free comes first.
  CHECK(aclrtSynchronizeStream(b.side) == ACL_SUCCESS || !clean);
  CHECK_ACL(aclrtMemPoolDestroy(pool));
}

// Two graphs. The second one reads what the first one writes.
void CaptureTwoGraphs(const Bench& b, aclmdlRI (&models)[2]) {
  for (int i = 0; i < 2; ++i) {
    Begin(b.main);
    Relu(b, b.main, i, i + 1);
    models[i] = End(b.main);
  }
}

// Graphs that share memory run in another order than captured.
void SharedMemory(const Bench& b, bool clean) {
  aclmdlRI models[2];
  CaptureTwoGraphs(b, models);
  CHECK_ACL(aclmdlRIExecuteAsync(models[clean ? 0 : 1], b.main));
  CHECK_ACL(aclmdlRIExecuteAsync(models[clean ? 1 : 0], b.main));
  CHECK_ACL(aclrtSynchronizeStream(b.main));
  for (aclmdlRI model : models) CHECK_ACL(aclmdlRIDestroy(model));
}

// Graphs that share memory run on two streams that do not wait for each other.
void SharedMemoryOfTwoStreams(const Bench& b, bool clean) {
  aclmdlRI models[2];
  CaptureTwoGraphs(b, models);
  for (int step = 0; step < 2; ++step) {
    CHECK_ACL(aclmdlRIExecuteAsync(models[0], b.main));
    if (clean) Order(b.fork, b.main, b.side);
    CHECK_ACL(aclmdlRIExecuteAsync(models[1], b.side));
    if (clean) Order(b.join, b.side, b.main);
  }
  CHECK_ACL(aclrtSynchronizeDevice());
  for (aclmdlRI model : models) CHECK_ACL(aclmdlRIDestroy(model));
}

// Captures graphs of two streams until the device takes no more, or there are 64.
void ManyGraphs(const Bench& b, bool clean) {
  constexpr int kMost = 64;
  aclmdlRI models[kMost];
  int made = 0;
  while (made < (clean ? 4 : kMost)) {
    aclError code = aclmdlRICaptureBegin(b.main, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
    if (code != 0) break;
    Relu(b, b.main, 0, 1);
    CHECK_ACL(aclrtRecordEvent(b.fork, b.main));
    code = aclrtStreamWaitEvent(b.side, b.fork);
    if (code != 0) {
      aclmdlRI none = nullptr;
      CHECK(aclmdlRICaptureEnd(b.main, &none) != 0);
      break;
    }
    Relu(b, b.side, 1, 2);
    Order(b.join, b.side, b.main);
    models[made++] = End(b.main);
  }
  printf("graphs: %d\n", made);
  for (int i = 0; i < made; ++i) CHECK_ACL(aclmdlRIDestroy(models[i]));
}

// The task group of a graph is updated while the execution before may still run.
void UpdateRace(const Bench& b, bool clean) {
  aclrtTaskGrp group = nullptr;
  Begin(b.main);
  CHECK_ACL(aclmdlRICaptureTaskGrpBegin(b.main));
  RUN_OP(b.main, aclnnMuls, b.tensors[0], b.one, b.tensors[1]);
  CHECK_ACL(aclmdlRICaptureTaskGrpEnd(b.main, &group));
  aclmdlRI model = End(b.main);
  for (int step = 0; step < 3; ++step) {
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(b.side, group));
    aclScalar* factor = MakeScalar(static_cast<float>(step + 2));
    RUN_OP(b.side, aclnnMuls, b.tensors[0], factor, b.tensors[1]);
    CHECK_ACL(aclDestroyScalar(factor));
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(b.side));
    Order(b.fork, b.side, b.main);
    CHECK_ACL(aclmdlRIExecuteAsync(model, b.main));
    if (clean) Order(b.join, b.main, b.side);
  }
  CHECK_ACL(aclrtSynchronizeDevice());
  CHECK_ACL(aclmdlRIDestroy(model));
}

// A graph waits for an external event until its update is done. The update of a step comes after
// its execution, and must not meet the execution of the step before.
void LateUpdateRace(const Bench& b, bool clean) {
  aclrtEvent ready = nullptr;
  aclrtEvent taken = nullptr;  // says that the graph has seen `ready`, and not that it is done
  for (aclrtEvent* event : {&ready, &taken}) {
    CHECK_ACL(aclrtCreateEventWithFlag(event, ACL_EVENT_EXTERNAL));
  }
  aclrtTaskGrp group = nullptr;
  Begin(b.main);
  CHECK_ACL(aclrtStreamWaitEvent(b.main, ready));
  CHECK_ACL(aclrtResetEvent(ready, b.main));
  CHECK_ACL(aclrtRecordEvent(taken, b.main));
  CHECK_ACL(aclmdlRICaptureTaskGrpBegin(b.main));
  RUN_OP(b.main, aclnnMuls, b.tensors[0], b.one, b.tensors[1]);
  CHECK_ACL(aclmdlRICaptureTaskGrpEnd(b.main, &group));
  aclmdlRI model = End(b.main);
  for (int step = 0; step < 3; ++step) {
    CHECK_ACL(aclmdlRIExecuteAsync(model, b.main));
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(b.side, group));
    aclScalar* factor = MakeScalar(static_cast<float>(step + 2));
    RUN_OP(b.side, aclnnMuls, b.tensors[0], factor, b.tensors[1]);
    CHECK_ACL(aclDestroyScalar(factor));
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(b.side));
    CHECK_ACL(aclrtRecordEvent(ready, b.side));
    CHECK_ACL(aclrtStreamWaitEvent(b.side, taken));
    CHECK_ACL(aclrtResetEvent(taken, b.side));
    if (clean) CHECK_ACL(aclrtSynchronizeStream(b.main));
  }
  CHECK_ACL(aclrtSynchronizeDevice());
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtDestroyEvent(ready));
  CHECK_ACL(aclrtDestroyEvent(taken));
}

struct Case {
  const char* name;
  void (*run)(const Bench& bench, bool clean);
};
constexpr Case kCases[] = {
    {"unjoined_fork", UnjoinedFork},
    {"work_after_join", WorkAfterJoin},
    {"stream_sync", StreamSync},
    {"stream_query", StreamQuery},
    {"device_sync", DeviceSync},
    {"sync_in_own_capture", SyncInOwnCapture},
    {"synchronous_copy", SynchronousCopy},
    {"fill_of_another_thread", FillOfAnotherThread},
    {"allocation", Allocation},
    {"pageable_copy", PageableCopy},
    {"pageable_copy_elsewhere", PageableCopyElsewhere},
    {"captured_event_query", CapturedEventQuery},
    {"captured_event_sync", CapturedEventSync},
    {"shared_event", SharedEvent},
    {"outside_event", OutsideEvent},
    {"old_event", OldEvent},
    {"fork_of_default_stream", ForkOfDefaultStream},
    {"default_stream_origin", DefaultStreamOrigin},
    {"end_on_wrong_stream", EndOnWrongStream},
    {"end_in_wrong_thread", EndInWrongThread},
    {"copy_in_task_group", CopyInTaskGroup},
    {"many_graphs", ManyGraphs},
    {"freed_address", FreedAddress},
    {"pool_allocation", PoolAllocation},
    {"pool_free_race", PoolFreeRace},
    {"shared_memory", SharedMemory},
    {"shared_memory_of_two_streams", SharedMemoryOfTwoStreams},
    {"eager_race", EagerRace},
    {"captured_race", CapturedRace},
    {"uncaptured_work", UncapturedWork},
    {"update_race", UpdateRace},
    {"late_update_race", LateUpdateRace},
    {"host_function", HostFunction},
};

void Run(const Case& chosen, bool clean) {
  Bench bench;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  for (aclrtStream* stream : {&bench.main, &bench.side, &bench.third}) {
    CHECK_ACL(aclrtCreateStream(stream));
  }
  for (aclrtEvent* event : {&bench.fork, &bench.join, &bench.other}) {
    CHECK_ACL(aclrtCreateEventExWithFlag(event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  }
  CHECK_ACL(aclrtCreateEvent(&bench.old));
  bench.pinned = MallocPinned(kBytes);
  bench.pageable = static_cast<float*>(malloc(kBytes));
  bench.one = MakeScalar(1);
  const int64_t sizes[] = {kSide, kSide};
  for (int i = 0; i < kBuffers; ++i) {
    bench.blocks[i] = MallocDevice(kBytes);
    bench.tensors[i] = MakeTensor(ACL_FLOAT, 2, sizes, bench.blocks[i]);
    for (int64_t index = 0; index < kCount; ++index) {
      bench.pageable[index] = static_cast<float>((index * 7 + i * 3) % 11) - 3;
    }
    CHECK_ACL(
        aclrtMemcpy(bench.blocks[i], kBytes, bench.pageable, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  memcpy(bench.pinned, bench.pageable, kBytes);

  chosen.run(bench, clean);

  CHECK_ACL(aclrtSynchronizeDevice());
  float result[8];
  for (int i = 1; i < 6; ++i) {
    CHECK_ACL(aclrtMemcpy(result, sizeof result, bench.blocks[i], sizeof result,
                          ACL_MEMCPY_DEVICE_TO_HOST));
  }
  for (int i = 0; i < kBuffers; ++i) {
    CHECK_ACL(aclDestroyTensor(bench.tensors[i]));
    CHECK_ACL(aclrtFree(bench.blocks[i]));
  }
  CHECK_ACL(aclDestroyScalar(bench.one));
  FreeWorkspaces();
  CHECK_ACL(aclrtFreeHost(bench.pinned));
  free(bench.pageable);
  for (aclrtEvent event : {bench.fork, bench.join, bench.other, bench.old}) {
    CHECK_ACL(aclrtDestroyEvent(event));
  }
  for (aclrtStream stream : {bench.main, bench.side, bench.third}) {
    CHECK_ACL(aclrtDestroyStream(stream));
  }
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 2);
  const bool clean = argc > 2 && strcmp(argv[2], "--clean") == 0;
  for (const Case& row : kCases) {
    if (strcmp(argv[1], "--list") == 0) {
      puts(row.name);
    } else if (strcmp(argv[1], row.name) == 0) {
      Run(row, clean);
      return 0;
    }
  }
  return strcmp(argv[1], "--list") == 0 ? 0 : 1;
}
