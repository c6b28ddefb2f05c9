#include "runtime/opapi/engine/kernel.h"

#include <ATen/Parallel.h>
#include <ATen/ops/acos.h>
#include <ATen/ops/asin.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cosh.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/erfc.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/full.h>
#include <ATen/ops/lgamma.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sinh.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tan.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/trunc.h>

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

// Calls each function of MKL's vector mathematics once, for one element. MKL 2024.2, which wheels
// of PyTorch 2.10 hold, chooses the code of a function at its first call. Where that is made by
// several threads at once, one of them can run code of 11 bits, whatever was asked for (PyTorch
// issue 188792): a result of cos was wrong by 1.5e-4 in one recording of seven.
bool ChooseVectorMath() {
  using Function = at::Tensor (*)(const at::Tensor&);
  constexpr Function kFunctions[] = {
      at::acos, at::asin,   at::atan, at::cos,   at::cosh,  at::erf,  at::erfc,
      at::exp,  at::erfinv, at::log,  at::expm1, at::log1p, at::log2, at::log10,
      at::sin,  at::lgamma, at::sinh, at::sqrt,  at::tan,   at::tanh, at::trunc};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor one = at::full({1}, 0.5, type);
    for (const Function function : kFunctions) function(one);
  }
  return true;
}

}  // namespace

WorkerThread::WorkerThread() : inference_(true) {
  static const bool chosen = ChooseVectorMath();
  static_cast<void>(chosen);
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
