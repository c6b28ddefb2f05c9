// Programs on the ACL interface whose graphs, copies and buffers give wrong values although the
// device accepts all that they do, and right twins of them. A line with the comment "finds: RULE"
// is where lint has to put its finding; there may be no other. They know nothing of acltape.
#include <initializer_list>
#include <limits>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_abs.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_add_layer_norm.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_relu.h"
#include "aclnnop/aclnn_roll.h"
#include "sample.h"

namespace {

constexpr int64_t kRows = 8, kColumns = 16;
constexpr int64_t kCount = kRows * kColumns;
constexpr size_t kRowBytes = kColumns * sizeof(float);
constexpr size_t kBytes = kCount * sizeof(float);

aclrtStream main_stream = nullptr, side_stream = nullptr;

// A matrix in device memory that nothing has written.
struct Matrix {
  Matrix() : block(MallocDevice(kBytes)), tensor(Rows(0, kRows)) {}
  ~Matrix() {
    CHECK_ACL(aclDestroyTensor(tensor));
    CHECK_ACL(aclrtFree(block));
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  aclTensor* Rows(int64_t first, int64_t end) const {
    const int64_t sizes[] = {end - first, kColumns};
    return MakeTensor(ACL_FLOAT, 2, sizes, static_cast<char*>(block) + first * kRowBytes);
  }
  void Fill(float value, int64_t rows = kRows) const {
    const std::vector<float> host(static_cast<size_t>(rows * kColumns), value);
    CHECK_ACL(aclrtMemcpy(block, kBytes, host.data(), rows * kRowBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  float First(int64_t rows = kRows) const {
    std::vector<float> host(static_cast<size_t>(rows * kColumns));
    CHECK_ACL(aclrtMemcpy(host.data(), rows * kRowBytes, block, rows * kRowBytes,
                          ACL_MEMCPY_DEVICE_TO_HOST));
    return host[0];
  }

  void* block;
  aclTensor* tensor;
};

struct Filled : Matrix {
  explicit Filled(float value) { Fill(value); }
};

void Begin() { CHECK_ACL(aclmdlRICaptureBegin(main_stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED)); }
aclmdlRI End() {
  aclmdlRI model = nullptr;
  CHECK_ACL(aclmdlRICaptureEnd(main_stream, &model));
  return model;
}
void Wait() { CHECK_ACL(aclrtSynchronizeStream(main_stream)); }
void Execute(aclmdlRI model) { CHECK_ACL(aclmdlRIExecuteAsync(model, main_stream)); }
void ExecuteAndEnd(aclmdlRI model, int times) {
  for (int i = 0; i < times; ++i) Execute(model);
  Wait();
  CHECK_ACL(aclmdlRIDestroy(model));
}

// ---- Memory that nothing wrote.

void HalfFilled() {
  Matrix a, sum;
  Filled b(1);
  a.Fill(2, kRows / 2);
  aclScalar* one = MakeScalar(1);
  RUN_OP(main_stream, aclnnAdd, a.tensor, b.tensor, one, sum.tensor);  // finds: LINT-47
  Wait();
  sum.First();
  CHECK_ACL(aclDestroyScalar(one));
}

void ClearedFirst() {
  Matrix a, sum;
  Filled b(1);
  CHECK_ACL(aclrtMemset(a.block, kBytes, 0, kBytes));
  a.Fill(2, kRows / 2);
  aclScalar* one = MakeScalar(1);
  RUN_OP(main_stream, aclnnAdd, a.tensor, b.tensor, one, sum.tensor);
  Wait();
  sum.First();
  CHECK_ACL(aclDestroyScalar(one));
}

void FilledPartRead() {
  Matrix a, out;
  a.Fill(2, kRows / 2);
  RUN_OP(main_stream, aclnnRelu, a.tensor, out.tensor);
  Wait();
  out.First(kRows / 2);
}

void FreedAndAllocatedAgain() {
  {
    Filled first(3);
    first.First();
  }
  Matrix again, out;                                         // the device may give the same memory
  RUN_OP(main_stream, aclnnRelu, again.tensor, out.tensor);  // finds: LINT-47
  Wait();
  out.First();
}

void PaddingPicked() {
  Matrix a;
  a.Fill(2, kRows / 2);
  void* block = MallocDevice(sizeof(int64_t));
  const int64_t zero = 0, count = 1;
  CHECK_ACL(aclrtMemcpy(block, sizeof zero, &zero, sizeof zero, ACL_MEMCPY_HOST_TO_DEVICE));
  aclTensor* index = MakeTensor(ACL_INT64, 1, &count, block);
  Matrix row;
  aclTensor* picked = row.Rows(0, 1);
  RUN_OP(main_stream, aclnnIndexSelect, a.tensor, 0, index, picked);
  Wait();
  row.First(1);
  for (aclTensor* tensor : {index, picked}) CHECK_ACL(aclDestroyTensor(tensor));
  CHECK_ACL(aclrtFree(block));
}

void InputOfAGraphCleared() {
  Matrix input, out;
  Begin();
  RUN_OP(main_stream, aclnnRelu, input.tensor, out.tensor);
  const aclmdlRI model = End();
  CHECK_ACL(aclrtMemset(input.block, kBytes, 0, kBytes));
  ExecuteAndEnd(model, 1);
  out.First();
}

void InputOfAGraphForgotten() {
  Matrix input, out;
  Begin();
  RUN_OP(main_stream, aclnnAbs, input.tensor, out.tensor);  // finds: LINT-47
  const aclmdlRI model = End();
  ExecuteAndEnd(model, 2);
  out.First();
}

void WrongResultRead() {
  Filled a(1);
  Matrix out, other;
  RUN_OP(main_stream, aclnnRelu, a.tensor, out.tensor);
  Wait();
  std::vector<float> host(kCount);
  CHECK_ACL(aclrtMemcpy(host.data(), kBytes, other.block, kBytes,  // finds: LINT-47
                        ACL_MEMCPY_DEVICE_TO_HOST));
}

// ---- Results that a flag did not ask for.

// Normalises a sum of rows. Without the flag `sum` stays as it is.
void NormalizeWithoutSum(const Matrix& sum) {
  Filled a(1), b(2), weights(1);
  Matrix out, statistics;
  const int64_t columns = kColumns, rows[] = {kRows, 1};
  aclTensor* gamma = MakeTensor(ACL_FLOAT, 1, &columns, weights.block);
  aclTensor* mean = MakeTensor(ACL_FLOAT, 2, rows, statistics.block);
  aclTensor* rstd =
      MakeTensor(ACL_FLOAT, 2, rows, static_cast<char*>(statistics.block) + kRowBytes);
  RUN_OP(main_stream, aclnnAddLayerNorm, a.tensor, b.tensor, gamma, gamma, nullptr, 1e-5, false,
         out.tensor, mean, rstd, sum.tensor);
  Wait();
  out.First();
  for (aclTensor* tensor : {gamma, mean, rstd}) CHECK_ACL(aclDestroyTensor(tensor));
}

void SumOfEarlierNan() {
  const Filled sum(std::numeric_limits<float>::quiet_NaN());
  NormalizeWithoutSum(sum);
}

void SumReadAllTheSame() {
  const Matrix sum;
  NormalizeWithoutSum(sum);
  std::vector<float> host(kCount);
  CHECK_ACL(aclrtMemcpy(host.data(), kBytes, sum.block, kBytes,  // finds: LINT-47
                        ACL_MEMCPY_DEVICE_TO_HOST));
}

// ---- Results.

void ReadAtTheEnd() {
  Filled x(1);
  Matrix y;
  Begin();
  RUN_OP(main_stream, aclnnRelu, x.tensor, y.tensor);  // finds: LINT-17
  const aclmdlRI model = End();
  for (int i = 0; i < 3; ++i) {
    x.Fill(static_cast<float>(i));
    Execute(model);
    Wait();
  }
  for (int i = 0; i < 3; ++i) y.First();
  CHECK_ACL(aclmdlRIDestroy(model));
}

void ReadInTurn() {
  Filled x(1);
  Matrix y;
  Begin();
  RUN_OP(main_stream, aclnnRelu, x.tensor, y.tensor);
  const aclmdlRI model = End();
  for (int i = 0; i < 3; ++i) {
    x.Fill(static_cast<float>(i));
    Execute(model);
    Wait();
    y.First();
  }
  CHECK_ACL(aclmdlRIDestroy(model));
}

// ---- Memory of the host.

void Stage(float* pinned, const Matrix& to, int step) {
  for (int64_t i = 0; i < kCount; ++i) pinned[i] = static_cast<float>(step);
  CHECK_ACL(
      aclrtMemcpyAsync(to.block, kBytes, pinned, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, main_stream));
}

void StagedAgain() {
  Filled to(0);
  auto* pinned = static_cast<float*>(MallocPinned(kBytes));
  for (int step = 0; step < 3; ++step) {
    for (int64_t i = 0; i < kCount; ++i) pinned[i] = static_cast<float>(step);
    CHECK_ACL(aclrtMemcpyAsync(to.block, kBytes, pinned, kBytes,  // finds: LINT-45
                               ACL_MEMCPY_HOST_TO_DEVICE, main_stream));
    RUN_OP(main_stream, aclnnInplaceRelu, to.tensor);
  }
  Wait();
  CHECK_ACL(aclrtFreeHost(pinned));
}

void StagedAfterAWait() {
  Filled to(0);
  auto* pinned = static_cast<float*>(MallocPinned(kBytes));
  aclrtEvent copied = nullptr;
  CHECK_ACL(aclrtCreateEventExWithFlag(&copied, ACL_EVENT_SYNC));
  for (int step = 0; step < 3; ++step) {
    if (step > 0) CHECK_ACL(aclrtSynchronizeEvent(copied));
    Stage(pinned, to, step);
    CHECK_ACL(aclrtRecordEvent(copied, main_stream));
    RUN_OP(main_stream, aclnnInplaceRelu, to.tensor);
  }
  Wait();
  CHECK_ACL(aclrtDestroyEvent(copied));
  CHECK_ACL(aclrtFreeHost(pinned));
}

void StagedInTwoBuffers() {
  Filled to(0);
  float* pinned[2] = {static_cast<float*>(MallocPinned(kBytes)),
                      static_cast<float*>(MallocPinned(kBytes))};
  for (int step = 0; step < 4; ++step) {
    if (step == 2) Wait();
    Stage(pinned[step % 2], to, step);
  }
  Wait();
  for (float* one : pinned) CHECK_ACL(aclrtFreeHost(one));
}

// A graph copies its input from pinned memory, which the program fills before each execution.
void InputStagedInTurn() {
  Matrix to, out;
  auto* pinned = static_cast<float*>(MallocPinned(kBytes));
  Begin();
  CHECK_ACL(
      aclrtMemcpyAsync(to.block, kBytes, pinned, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, main_stream));
  RUN_OP(main_stream, aclnnRelu, to.tensor, out.tensor);
  const aclmdlRI model = End();
  for (int step = 0; step < 3; ++step) {
    for (int64_t i = 0; i < kCount; ++i) pinned[i] = static_cast<float>(step);
    Execute(model);
    Wait();
  }
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtFreeHost(pinned));
}

void InputStagedTooEarly() {
  Matrix to, out;
  auto* pinned = static_cast<float*>(MallocPinned(kBytes));
  Begin();
  CHECK_ACL(
      aclrtMemcpyAsync(to.block, kBytes, pinned, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, main_stream));
  RUN_OP(main_stream, aclnnRelu, to.tensor, out.tensor);
  const aclmdlRI model = End();
  for (int step = 0; step < 3; ++step) {
    for (int64_t i = 0; i < kCount; ++i) pinned[i] = static_cast<float>(step);
    CHECK_ACL(aclmdlRIExecuteAsync(model, main_stream));  // finds: LINT-45
  }
  Wait();
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtFreeHost(pinned));
}

// ---- Arguments that a graph keeps.

// A list of one number.
struct List {
  explicit List(int64_t value) : array(aclCreateIntArray(&value, 1)) {}
  ~List() { CHECK_ACL(aclDestroyIntArray(array)); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  aclIntArray* array;
};

void KeptShift() {
  Filled x(1);
  Matrix y;
  const List dim(1);
  const auto roll = [&](int64_t by) {
    const List shift(by);
    RUN_OP(main_stream, aclnnRoll, x.tensor, shift.array, dim.array, y.tensor);  // finds: LINT-22
  };
  for (int64_t by : {1, 2, 3}) roll(by);
  Wait();
  Begin();
  roll(1);
  ExecuteAndEnd(End(), 3);
  y.First();
}

void AGraphForEachShift() {
  Filled x(1);
  Matrix y;
  const List dim(1);
  const auto roll = [&](int64_t by) {
    const List shift(by);
    RUN_OP(main_stream, aclnnRoll, x.tensor, shift.array, dim.array, y.tensor);
  };
  for (int64_t by : {1, 2, 3}) roll(by);
  Wait();
  for (int64_t by : {1, 2, 3}) {
    Begin();
    roll(by);
    ExecuteAndEnd(End(), 2);
    y.First();
  }
}

void ShiftNeverUpdated() {
  Filled x(1);
  Matrix y;
  const List dim(1);
  const auto roll = [&](int64_t by) {
    const List shift(by);
    RUN_OP(main_stream, aclnnRoll, x.tensor, shift.array, dim.array, y.tensor);  // finds: LINT-22
  };
  for (int64_t by : {1, 2}) roll(by);
  Wait();
  aclrtTaskGrp group = nullptr;
  Begin();
  CHECK_ACL(aclmdlRICaptureTaskGrpBegin(main_stream));
  roll(1);
  CHECK_ACL(aclmdlRICaptureTaskGrpEnd(main_stream, &group));
  ExecuteAndEnd(End(), 2);
  y.First();
}

void ShiftUpdated() {
  Filled x(1);
  Matrix y;
  const List dim(1);
  const auto roll = [&](aclrtStream stream, int64_t by) {
    const List shift(by);
    RUN_OP(stream, aclnnRoll, x.tensor, shift.array, dim.array, y.tensor);
  };
  for (int64_t by : {1, 2}) roll(main_stream, by);
  Wait();
  aclrtTaskGrp group = nullptr;
  Begin();
  CHECK_ACL(aclmdlRICaptureTaskGrpBegin(main_stream));
  roll(main_stream, 1);
  CHECK_ACL(aclmdlRICaptureTaskGrpEnd(main_stream, &group));
  const aclmdlRI model = End();
  for (int64_t by : {2, 1}) {
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(side_stream, group));
    roll(side_stream, by);
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(side_stream));
    CHECK_ACL(aclrtSynchronizeStream(side_stream));
    Execute(model);
    Wait();
    y.First();
  }
  CHECK_ACL(aclmdlRIDestroy(model));
}

void KeptFactor() {
  Filled x(1);
  Matrix y;
  const auto scale = [&](float by) {
    aclScalar* factor = MakeScalar(by);
    RUN_OP(main_stream, aclnnMuls, x.tensor, factor, y.tensor);  // finds: LINT-14
    CHECK_ACL(aclDestroyScalar(factor));
  };
  for (float by : {0.5f, 2.0f}) scale(by);
  Wait();
  Begin();
  scale(1);
  ExecuteAndEnd(End(), 2);
  y.First();
}

// ---- State, and graphs without work.

void WarmedState() {
  Filled state(1), weight(0.5f);
  Matrix out;
  aclScalar* one = MakeScalar(1);
  const auto step = [&] {
    RUN_OP(main_stream, aclnnInplaceAdd, state.tensor, weight.tensor, one);  // finds: LINT-42
    RUN_OP(main_stream, aclnnRelu, state.tensor, out.tensor);
  };
  for (int i = 0; i < 2; ++i) step();
  Wait();
  Begin();
  step();
  ExecuteAndEnd(End(), 2);
  out.First();
  CHECK_ACL(aclDestroyScalar(one));
}

void WarmedAndReset() {
  Filled state(1), weight(0.5f);
  Matrix out;
  aclScalar* one = MakeScalar(1);
  const auto step = [&] {
    RUN_OP(main_stream, aclnnInplaceAdd, state.tensor, weight.tensor, one);
    RUN_OP(main_stream, aclnnRelu, state.tensor, out.tensor);
  };
  for (int i = 0; i < 2; ++i) step();
  Wait();
  Begin();
  step();
  const aclmdlRI model = End();
  state.Fill(1);
  ExecuteAndEnd(model, 2);
  out.First();
  CHECK_ACL(aclDestroyScalar(one));
}

void EagerStepsThatCount() {
  Filled state(1), weight(0.5f);
  Matrix out;
  aclScalar* one = MakeScalar(1);
  const auto step = [&] {
    RUN_OP(main_stream, aclnnInplaceAdd, state.tensor, weight.tensor, one);
    RUN_OP(main_stream, aclnnRelu, state.tensor, out.tensor);
  };
  for (int i = 0; i < 2; ++i) {
    step();
    Wait();
    out.First();
  }
  Begin();
  step();
  const aclmdlRI model = End();
  for (int i = 0; i < 2; ++i) {
    Execute(model);
    Wait();
    out.First();
  }
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclDestroyScalar(one));
}

void Order(aclrtEvent event, aclrtStream first, aclrtStream second) {
  CHECK_ACL(aclrtRecordEvent(event, first));
  CHECK_ACL(aclrtStreamWaitEvent(second, event));
}

void WorkOnAnotherStream() {
  Filled x(1);
  Matrix y;
  Begin();
  RUN_OP(side_stream, aclnnRelu, x.tensor, y.tensor);  // finds: LINT-44
  const aclmdlRI model = End();
  CHECK_ACL(aclrtSynchronizeStream(side_stream));
  ExecuteAndEnd(model, 2);
  y.First();
}

void WorkOnAForkedStream() {
  Filled x(1);
  Matrix y;
  aclrtEvent events[2] = {};
  for (aclrtEvent& event : events) {
    CHECK_ACL(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  }
  Begin();
  Order(events[0], main_stream, side_stream);
  RUN_OP(side_stream, aclnnRelu, x.tensor, y.tensor);
  Order(events[1], side_stream, main_stream);
  ExecuteAndEnd(End(), 2);
  y.First();
  for (aclrtEvent event : events) CHECK_ACL(aclrtDestroyEvent(event));
}

// ---- Executions beside another stream.

void ReadBesideAnExecution() {
  Filled x(1);
  Matrix y;
  auto* pinned = static_cast<float*>(MallocPinned(kBytes));
  Begin();
  RUN_OP(main_stream, aclnnRelu, x.tensor, y.tensor);
  const aclmdlRI model = End();
  Execute(model);
  CHECK_ACL(aclrtMemcpyAsync(pinned, kBytes, y.block, kBytes,  // finds: LINT-19
                             ACL_MEMCPY_DEVICE_TO_HOST, side_stream));
  CHECK_ACL(aclrtSynchronizeDevice());
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtFreeHost(pinned));
}

void ReadAfterAnExecution() {
  Filled x(1);
  Matrix y;
  auto* pinned = static_cast<float*>(MallocPinned(kBytes));
  aclrtEvent done = nullptr;
  CHECK_ACL(aclrtCreateEventExWithFlag(&done, ACL_EVENT_SYNC));
  Begin();
  RUN_OP(main_stream, aclnnRelu, x.tensor, y.tensor);
  const aclmdlRI model = End();
  Execute(model);
  Order(done, main_stream, side_stream);
  CHECK_ACL(
      aclrtMemcpyAsync(pinned, kBytes, y.block, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, side_stream));
  CHECK_ACL(aclrtSynchronizeDevice());
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtDestroyEvent(done));
  CHECK_ACL(aclrtFreeHost(pinned));
}

void ReadWithoutAWait() {
  Filled x(1);
  Matrix y;
  RUN_OP(main_stream, aclnnRelu, x.tensor, y.tensor);
  std::vector<float> host(kCount);
  CHECK_ACL(aclrtMemcpy(host.data(), kBytes, y.block, kBytes,  // finds: LINT-19
                        ACL_MEMCPY_DEVICE_TO_HOST));
  Wait();
}

constexpr void (*kPrograms[])() = {HalfFilled,           ClearedFirst,
                                   FilledPartRead,       FreedAndAllocatedAgain,
                                   PaddingPicked,        InputOfAGraphCleared,
                                   WrongResultRead,      InputOfAGraphForgotten,
                                   SumOfEarlierNan,      SumReadAllTheSame,
                                   ReadAtTheEnd,         ReadInTurn,
                                   StagedAgain,          StagedAfterAWait,
                                   StagedInTwoBuffers,   InputStagedInTurn,
                                   InputStagedTooEarly,  KeptShift,
                                   AGraphForEachShift,   ShiftNeverUpdated,
                                   ShiftUpdated,         KeptFactor,
                                   WarmedState,          WarmedAndReset,
                                   EagerStepsThatCount,  WorkOnAnotherStream,
                                   WorkOnAForkedStream,  ReadBesideAnExecution,
                                   ReadAfterAnExecution, ReadWithoutAWait};

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  for (aclrtStream* stream : {&main_stream, &side_stream}) CHECK_ACL(aclrtCreateStream(stream));
  for (auto* program : kPrograms) program();
  CHECK_ACL(aclrtSynchronizeDevice());
  for (aclrtStream stream : {main_stream, side_stream}) CHECK_ACL(aclrtDestroyStream(stream));
  FreeWorkspaces();
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  puts("done");
  return 0;
}
