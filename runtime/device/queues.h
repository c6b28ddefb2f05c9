// Hardware queues, which models take at their first launch (EXE-09, EXE-10).
//
// A model needs one queue for each of its hidden streams while it runs. It keeps them for its next
// launch, until a launch of another model runs short and takes them from it while it is idle.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "acl/acl.h"

namespace acltape::device {

class Model;

class Queues {
 public:
  explicit Queues(uint32_t count) : count_(count), free_(count) {}

  // Gives a launched model its queues, waiting in steps of 1 ms while other models run. 207005 when
  // the device does not have so many at all, or the process ends.
  aclError Bind(Model& model, const char* call);
  // Called before the model is destroyed.
  void Release(Model& model);

 private:
  struct Holder {
    Model* model;
    uint32_t queues;
  };

  bool TryBind(Model& model, uint32_t needed);

  const uint32_t count_;
  std::mutex mutex_;  // taken before a model's own
  uint32_t free_;
  std::vector<Holder> holders_;  // in the order of their first launch
};

}  // namespace acltape::device
