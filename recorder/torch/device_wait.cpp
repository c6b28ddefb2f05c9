#include "recorder/torch/device_wait.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include <atomic>
#include <bit>

#include "recorder/agent/window.h"
#include "recorder/torch/python_api.h"

namespace acltape::torch_plugin {
namespace {

// The window in which the process loaded PyTorch; 0: none was open then.
uint32_t g_first_window = 0;

// False where this PyTorch has no way to wait.
template <typename Guard>
bool Wait(const Guard& guard, c10::DeviceIndex device) {
  if constexpr (requires { guard.synchronizeDevice(device); }) {
    guard.synchronizeDevice(device);
    return true;
  }
  return false;
}

// Nothing of what the thread does in it is recorded.
class Unrecorded {
 public:
  explicit Unrecorded(agent::Tape* tape) : tape_(tape), inside_(agent::t_inside) {
    agent::t_inside = true;
    agent::t_tape = agent::kNoTape;
  }
  ~Unrecorded() {
    agent::t_inside = inside_;
    agent::t_tape = tape_;
  }
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  agent::Tape* tape_;
  bool inside_;
};

// Gives the interpreter's lock to other threads, such as the one that issues the adapter's work.
class LockGivenBack {
 public:
  LockGivenBack() {
    static const auto save = Python<void* (*)()>("PyEval_SaveThread");
    static const auto own = Python<void* (*)()>("PyGILState_GetThisThreadState");
    // The state that has the lock. PyGILState_Check says yes to all threads once the program has
    // made another interpreter.
    static const auto newer = Python<void* (*)()>("PyThreadState_GetUnchecked");
    static const auto running =
        newer != nullptr ? newer : Python<void* (*)()>("_PyThreadState_UncheckedGet");
    if (save == nullptr || own == nullptr || running == nullptr) return;
    void* state = own();
    if (state != nullptr && running() == state) state_ = save();
  }
  ~LockGivenBack() {
    static const auto restore = Python<void (*)(void*)>("PyEval_RestoreThread");
    if (state_ != nullptr) restore(state_);
  }
  LockGivenBack(const LockGivenBack&) = delete;
  LockGivenBack& operator=(const LockGivenBack&) = delete;

 private:
  void* state_ = nullptr;
};

// Throws, or returns null, where no backend has registered one.
const c10::impl::DeviceGuardImplInterface* TheGuard() {
  return c10::impl::getDeviceGuardImpl(c10::DeviceType::PrivateUse1);
}

void WaitForAll() {
  using Devices = uint64_t (*)();
  static const auto devices =
      reinterpret_cast<Devices>(dlsym(RTLD_DEFAULT, "acltape_devices_to_wait_for"));
  agent::Tape* tape = agent::CurrentTape();
  if (tape == nullptr || devices == nullptr) return;
  const Unrecorded unrecorded(tape);
  for (uint64_t left = devices(); left != 0; left &= left - 1) {
    const LockGivenBack given;
    try {
      const auto* guard = TheGuard();
      if (guard != nullptr) Wait(*guard, static_cast<c10::DeviceIndex>(std::countr_zero(left)));
    } catch (...) {
      // The error belongs to the program, which meets it at its own next wait.
    }
  }
}

}  // namespace

void WaitOnceInWindow(agent::Tape& tape, c10::DeviceIndex device) {
  static std::atomic<uint32_t> waited_in[16];
  if (tape.window == g_first_window) return;
  if (waited_in[static_cast<uint8_t>(device) % 16].exchange(tape.window) == tape.window) return;
  {
    const Unrecorded unrecorded(&tape);
    const auto* guard = TheGuard();
    if (guard != nullptr && Wait(*guard, device)) return;
  }
  tape.WriteLedger(1, 1, "device_not_waited_for", "PyTorch's tensors on a device",
                   "this PyTorch has no wait for a device, so that a value from before the window "
                   "may have been read too early",
                   "open the window where the program waits for the device, or replay at the ACL "
                   "level");
}

void WaitAtWindows(agent::Tape& tape) {
  if (agent::IsOpen(tape)) g_first_window = tape.window;
  agent::g_before_edge = &WaitForAll;
}

}  // namespace acltape::torch_plugin
