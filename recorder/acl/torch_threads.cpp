#include "recorder/acl/torch_threads.h"

#include <dlfcn.h>
#include <stdio.h>

#include <atomic>

#include "kit/identity.h"
#include "recorder/agent/process.h"

namespace acltape::acl_agent {
namespace {

using Count = int (*)();

constexpr uint64_t kCallsBetweenReports = 256;
constexpr uint64_t kSearches = 16;  // a process that has no libtorch by then is asked no more

std::atomic<uint64_t> g_report_at{0};  // the call from which the next report is due
std::atomic<uint64_t> g_searches{0};
std::atomic<int> g_reported{0};

// at::get_num_threads() of the program's libtorch; null when it has none. The libtorch of a process
// without Python is that of the soft device's operators, whose threads the device sets.
Count FindTorchCount() {
  if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") == nullptr) return nullptr;
  const kit::LoadedTorch torch = kit::FindLoadedTorch();
  if (torch.path[0] == '\0') return nullptr;
  void* library = dlopen(torch.path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto count = reinterpret_cast<Count>(dlsym(library, "_ZN2at15get_num_threadsEv"));
  dlclose(library);  // it stays loaded: RTLD_NOLOAD took a reference alone
  return count;
}

void Write(Thread& thread, const char* key, int number) {
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  thread.tape->WriteMeta(key, text);
}

__attribute__((cold, noinline)) void Report(Thread& thread) {
  const Count torch = FindTorchCount();
  if (torch == nullptr) {
    if (g_searches.fetch_add(1, std::memory_order_relaxed) + 1 >= kSearches)
      g_report_at = UINT64_MAX;
    return;
  }
  const int threads = torch();
  if (g_reported.exchange(threads, std::memory_order_relaxed) == threads) return;
  Write(thread, "torch_threads", threads);
  const auto blas = reinterpret_cast<Count>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  if (blas != nullptr && blas() > 0) Write(thread, "blas_threads", blas());
}

}  // namespace

void ReportTorchThreads(Thread& thread, uint64_t call_id) {
  if (call_id < g_report_at.load(std::memory_order_relaxed)) return;
  if ((agent::Arena()->levels & wire::kLevelAten) != 0) {
    g_report_at = UINT64_MAX;
    return;
  }
  g_report_at = call_id + kCallsBetweenReports;
  Report(thread);
}

}  // namespace acltape::acl_agent
