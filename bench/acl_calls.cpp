// Times calls of the ACL interface: a plain ACL program, which bench/acl_recorder_overhead.py runs
// bare and recorded. Prints one line per kind of call: name, median ns, minimum ns, calls per
// round.
//
// usage: acl_calls [rounds]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"

namespace {

void Check(int code, const char* call) {
  if (code == 0) return;
  std::fprintf(stderr, "acl_calls: %s returned %d\n", call, code);
  std::exit(1);
}

void Time(const char* name, int rounds, int calls, const std::function<void()>& call,
          const std::function<void()>& settle) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count() / calls);
    settle();
  }
  std::sort(times.begin(), times.end());
  std::printf("%s %.1f %.1f %d\n", name, times[times.size() / 2], times[0], calls);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  Check(aclInit(nullptr), "aclInit");
  Check(aclrtSetDevice(0), "aclrtSetDevice");
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  Check(aclrtCreateStream(&stream), "aclrtCreateStream");
  Check(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), "aclrtCreateEventExWithFlag");
  void *a = nullptr, *b = nullptr, *out = nullptr;
  for (void** block : {&a, &b, &out}) {
    Check(aclrtMalloc(block, 64, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  }
  const auto settle = [&] { Check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream"); };

  Time(
      "aclrtGetDevice", rounds, 1000,
      [] {
        int32_t device = 0;
        aclrtGetDevice(&device);
      },
      [] {});
  Time(
      "aclrtRecordEvent", rounds, 500, [&] { aclrtRecordEvent(event, stream); }, settle);
  Time(
      "aclrtMemcpyAsync", rounds, 500,
      [&] { aclrtMemcpyAsync(out, 64, a, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream); }, settle);
  const int64_t shape[] = {4}, strides[] = {1};
  float one = 1;
  const auto tensor = [&](void* data) {
    return aclCreateTensor(shape, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 1, data);
  };
  // Calls an operator the way a framework does: with six objects and in two phases.
  const auto add = [&] {
    aclTensor *x = tensor(a), *y = tensor(b), *z = tensor(out);
    aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
    uint64_t workspace = 0;
    aclOpExecutor* executor = nullptr;
    Check(aclnnAddGetWorkspaceSize(x, y, alpha, z, &workspace, &executor), "aclnnAdd, phase one");
    Check(aclnnAdd(nullptr, 0, executor, stream), "aclnnAdd");
    aclDestroyTensor(x);
    aclDestroyTensor(y);
    aclDestroyTensor(z);
    aclDestroyScalar(alpha);
  };
  Time("aclnnAdd", rounds, 200, add, settle);
  // The same with a wait after each twenty: the device's time counts too.
  int calls = 0;
  Time(
      "aclnnAdd,waited", rounds, 200,
      [&] {
        add();
        if (++calls % 20 == 0) settle();
      },
      settle);
  Check(aclrtDestroyEvent(event), "aclrtDestroyEvent");
  Check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  for (void* block : {a, b, out}) aclrtFree(block);
  aclrtResetDevice(0);
  aclFinalize();
  return 0;
}
