#include "runtime/opapi/engine/kernel.h"

#include <ATen/Parallel.h>

#include <cstdlib>
#include <string>

namespace acltape::opapi {
namespace {

constexpr aclError kCoreException = ACL_ERROR_RT_AICORE_EXCEPTION;  // rule ERR-04

// ACLTAPE_SOFT_THREADS, else OMP_NUM_THREADS, else libtorch's own choice.
int ComputeThreads() {
  static const int threads = [] {
    for (const char* name : {"ACLTAPE_SOFT_THREADS", "OMP_NUM_THREADS"}) {
      const char* text = std::getenv(name);
      const int value = text == nullptr ? 0 : std::atoi(text);
      if (value > 0) return value;
    }
    return at::get_num_threads();
  }();
  return threads;
}

}  // namespace

WorkerThread::WorkerThread() : inference_(true) {
  // OpenMP keeps its number of threads per calling thread, and how a reduction is split among
  // threads decides its last bits.
  at::set_num_threads(ComputeThreads());
}

aclError ReportKernelException() noexcept {
  try {
    throw;
  } catch (const c10::Error& error) {
    SoftSetErrorMessage(error.what_without_backtrace());
  } catch (const std::exception& error) {
    SoftSetErrorMessage(error.what());
  } catch (...) {
    SoftSetErrorMessage("A kernel failed with an unknown exception.");
  }
  return kCoreException;
}

}  // namespace acltape::opapi
