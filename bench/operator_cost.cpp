// Measures the host's cost of one operator call on the soft device, and what a captured model
// saves.
//
//   operator_cost [rounds]
//
// The call is aclnnAdd on four floats, always the same: phase one, phase two, both, with tensor
// handles made for each call as a framework does, and by a repeatable executor. A model of 1, 100
// and 10,000 such tasks is enqueued (aclmdlRIExecuteAsync alone) and executed. The baseline,
// measured in the same rounds, is libtorch's add on the same tensors, called directly. All
// quantities take turns in each round; printed are minimum and median over the rounds and the ratio
// of the medians to the baseline's.
#include <ATen/ATen.h>
#include <ATen/CPUFunctions.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_add.h"
#include "base/median.h"

namespace {

constexpr int kBatch = 256;  // calls per measurement; below the depth of a stream's queue
struct ModelSize {
  int tasks;
  int executions;  // per measurement
};
constexpr ModelSize kModels[] = {{1, 256}, {100, 64}, {10000, 8}};

void Check(int status, const char* what) {
  if (status == 0) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "operator_cost: %s returned %d: %s\n", what, status,
               text == nullptr ? "" : text);
  std::exit(1);
}

double Nanoseconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(end - start).count();
}

// One number of interest: how to measure it once, in nanoseconds per call.
struct Quantity {
  std::string name;
  std::function<double()> measure;
  std::vector<double> values;
};

struct Device {
  aclrtStream stream = nullptr;
  aclTensor* a = nullptr;
  aclTensor* b = nullptr;
  aclTensor* c = nullptr;
  aclScalar* alpha = nullptr;
  float* memory = nullptr;
};

aclTensor* TensorAt(float* address) {
  const int64_t four = 4, one = 1;
  return aclCreateTensor(&four, 1, ACL_FLOAT, &one, 0, ACL_FORMAT_ND, &four, 1, address);
}

aclScalar* One() {
  float one = 1;
  return aclCreateScalar(&one, ACL_FLOAT);
}

aclOpExecutor* Prepare(const Device& d) {
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  Check(aclnnAddGetWorkspaceSize(d.a, d.b, d.alpha, d.c, &bytes, &executor), "phase one");
  return executor;
}

void Launch(const Device& d, aclOpExecutor* executor) {
  Check(aclnnAdd(nullptr, 0, executor, d.stream), "phase two");
}

void Synchronize(const Device& d) { Check(aclrtSynchronizeStream(d.stream), "synchronize"); }

Device Open() {
  Check(aclInit(nullptr), "aclInit");
  Check(aclrtSetDevice(0), "aclrtSetDevice");
  Device d;
  Check(aclrtCreateStream(&d.stream), "aclrtCreateStream");
  void* memory = nullptr;
  Check(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_NORMAL_ONLY), "aclrtMalloc");
  d.memory = static_cast<float*>(memory);
  std::fill(d.memory, d.memory + 12, 1.0f);
  d.a = TensorAt(d.memory);
  d.b = TensorAt(d.memory + 4);
  d.c = TensorAt(d.memory + 8);
  d.alpha = One();
  return d;
}

aclmdlRI Capture(const Device& d, int tasks) {
  Check(aclmdlRICaptureBegin(d.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL), "capture begin");
  for (int i = 0; i < tasks; ++i) Launch(d, Prepare(d));
  aclmdlRI model = nullptr;
  Check(aclmdlRICaptureEnd(d.stream, &model), "capture end");
  return model;
}

// kBatch executors, timed in the making or in the launching only.
double PhaseOne(const Device& d) {
  std::vector<aclOpExecutor*> executors(kBatch);
  const double time = Nanoseconds([&] {
    for (aclOpExecutor*& executor : executors) executor = Prepare(d);
  });
  for (aclOpExecutor* executor : executors) Launch(d, executor);
  Synchronize(d);
  return time / kBatch;
}

double PhaseTwo(const Device& d) {
  std::vector<aclOpExecutor*> executors(kBatch);
  for (aclOpExecutor*& executor : executors) executor = Prepare(d);
  const double time = Nanoseconds([&] {
    for (aclOpExecutor* executor : executors) Launch(d, executor);
  });
  Synchronize(d);
  return time / kBatch;
}

double Both(const Device& d) {
  const double time = Nanoseconds([&] {
    for (int i = 0; i < kBatch; ++i) Launch(d, Prepare(d));
  });
  Synchronize(d);
  return time / kBatch;
}

double BothWithNewHandles(const Device& d) {
  const double time = Nanoseconds([&] {
    for (int i = 0; i < kBatch; ++i) {
      Device call = d;
      call.a = TensorAt(d.memory);
      call.b = TensorAt(d.memory + 4);
      call.c = TensorAt(d.memory + 8);
      call.alpha = One();
      Launch(call, Prepare(call));
      aclDestroyTensor(call.a);
      aclDestroyTensor(call.b);
      aclDestroyTensor(call.c);
      aclDestroyScalar(call.alpha);
    }
  });
  Synchronize(d);
  return time / kBatch;
}

double BothAndRun(const Device& d) {
  return Nanoseconds([&] {
           for (int i = 0; i < kBatch; ++i) Launch(d, Prepare(d));
           Synchronize(d);
         }) /
         kBatch;
}

double Repeated(const Device& d, aclOpExecutor* executor) {
  const double time = Nanoseconds([&] {
    for (int i = 0; i < kBatch; ++i) Launch(d, executor);
  });
  Synchronize(d);
  return time / kBatch;
}

double Baseline(const Device& d) {
  const c10::InferenceMode inference;
  const auto options = at::TensorOptions(at::kFloat);
  const at::Tensor a = at::from_blob(d.memory, {4}, options);
  const at::Tensor b = at::from_blob(d.memory + 4, {4}, options);
  at::Tensor c = at::from_blob(d.memory + 8, {4}, options);
  const at::Scalar one(1);
  return Nanoseconds([&] {
           for (int i = 0; i < kBatch; ++i) at::cpu::add_out(c, a, b, one);
         }) /
         kBatch;
}

void Print(const Quantity& quantity, double baseline) {
  const double median = acltape::base::Median(quantity.values);
  std::printf("%-44s %12.0f %12.0f %10.2f\n", quantity.name.c_str(),
              *std::min_element(quantity.values.begin(), quantity.values.end()), median,
              median / baseline);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 51;
  const Device d = Open();
  aclOpExecutor* repeatable = Prepare(d);
  Check(aclSetAclOpExecutorRepeatable(repeatable), "aclSetAclOpExecutorRepeatable");

  std::vector<Quantity> quantities = {
      {"libtorch add_out (baseline)", [&] { return Baseline(d); }, {}},
      {"phase one", [&] { return PhaseOne(d); }, {}},
      {"phase two", [&] { return PhaseTwo(d); }, {}},
      {"both phases", [&] { return Both(d); }, {}},
      {"both phases, new handles each call", [&] { return BothWithNewHandles(d); }, {}},
      {"both phases until the device is idle", [&] { return BothAndRun(d); }, {}},
      {"launch of a repeatable executor", [&] { return Repeated(d, repeatable); }, {}},
  };
  for (const auto [tasks, executions] : kModels) {
    const aclmdlRI model = Capture(d, tasks);
    const auto execute = [&d, model = model, executions = executions] {
      for (int i = 0; i < executions; ++i) Check(aclmdlRIExecuteAsync(model, d.stream), "execute");
    };
    quantities.push_back({"enqueue of a model of " + std::to_string(tasks) + " tasks",
                          [&d, execute, executions = executions] {
                            const double time = Nanoseconds(execute);
                            Synchronize(d);
                            return time / executions;
                          },
                          {}});
    quantities.push_back({"per task, executing a model of " + std::to_string(tasks),
                          [&d, execute, calls = executions * tasks] {
                            return Nanoseconds([&] {
                                     execute();
                                     Synchronize(d);
                                   }) /
                                   calls;
                          },
                          {}});
  }
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    for (Quantity& quantity : quantities) {
      const double value = quantity.measure();
      if (round >= 0) quantity.values.push_back(value);
    }
  }
  std::printf("%-44s %12s %12s %10s\n", "ns per call, aclnnAdd of 4 floats", "minimum", "median",
              "ratio");
  const double baseline = acltape::base::Median(quantities[0].values);
  for (const Quantity& quantity : quantities) Print(quantity, baseline);
  return 0;
}
