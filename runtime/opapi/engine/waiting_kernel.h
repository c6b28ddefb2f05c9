// A kernel that waits for other ranks in the middle of its work (runtime/waiting_launch.h). Free of
// libtorch, like bound_kernel.h.
#pragma once

#include "runtime/opapi/engine/bound_kernel.h"

namespace acltape::opapi {

class WaitingKernel : public Kernel {
 public:
  // Before the launch: whether a capture keeps it.
  virtual void Launched(bool captured) = 0;
  // Goes on as far as it can without waiting for long; true when a run would return at once.
  virtual bool Ready() = 0;
  // It cannot run. The other ranks are told, so that they do not wait for it.
  virtual void GiveUp(const char* why) = 0;

 protected:
  using Kernel::Kernel;
};

}  // namespace acltape::opapi
