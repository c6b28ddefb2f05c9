#include "runtime/device/queues.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/device/control.h"
#include "runtime/device/error.h"
#include "runtime/device/model.h"

namespace acltape::device {
namespace {

uint32_t NeededBy(const Model& model) {
  auto needed = static_cast<uint32_t>(model.hidden_streams.size());
  if (model.conditions.empty()) return needed;
  for (const Model::Node& node : model.nodes) {
    if (node.control == nullptr) continue;
    for (const Model* sub_graph : node.control->SubGraphs()) needed += NeededBy(*sub_graph);
  }
  return needed;
}

}  // namespace

aclError Queues::Bind(Model& model, const char* call) {
  // The usual case, without a lock. The launch counts as running already: see TryBind.
  if (model.has_queues.load(std::memory_order_acquire)) return ACL_SUCCESS;
  uint32_t needed = NeededBy(model);
  if (needed > count_) {
    return Fail(
        ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
        "%s: model %u needs %u hardware queues and the device has %u; capture fewer streams", call,
        model.id(), needed, count_);
  }
  while (!TryBind(model, needed)) {
    if (Exiting()) {
      return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: the process is ending", call);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ACL_SUCCESS;
}

bool Queues::TryBind(Model& model, uint32_t needed) {
  std::lock_guard lock(mutex_);
  auto own = std::find_if(holders_.begin(), holders_.end(),
                          [&](const Holder& holder) { return holder.model == &model; });
  if (own != holders_.end()) {
    model.has_queues.store(true, std::memory_order_release);
    return true;
  }
  for (auto holder = holders_.begin(); free_ < needed && holder != holders_.end();) {
    // First the mark, then the question: a launch takes its place first and then looks at the mark,
    // so that one of the two sees the other.
    holder->model->has_queues.store(false, std::memory_order_release);
    if (holder->model->Running()) {
      holder->model->has_queues.store(true, std::memory_order_release);
      ++holder;
      continue;
    }
    free_ += holder->queues;
    holder = holders_.erase(holder);
  }
  if (free_ < needed) return false;
  free_ -= needed;
  holders_.push_back({&model, needed});
  model.has_queues.store(true, std::memory_order_release);
  return true;
}

void Queues::Release(Model& model) {
  std::lock_guard lock(mutex_);
  auto own = std::find_if(holders_.begin(), holders_.end(),
                          [&](const Holder& holder) { return holder.model == &model; });
  if (own == holders_.end()) return;
  free_ += own->queues;
  holders_.erase(own);
}

}  // namespace acltape::device
