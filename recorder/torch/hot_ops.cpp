#include "recorder/torch/hot_ops.h"

#include <cstdlib>

#include "recorder/torch/dispatch_keys.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

namespace {

const c10::OperatorHandle* g_handles[kMaxHotOps];

}  // namespace

const HotOps& ChosenHotOps() {
  static const auto* chosen = new HotOps(std::getenv("ACLTAPE_BOXED") ? HotOps{} : ListHotOps());
  return *chosen;
}

const c10::OperatorHandle* HotHandle(size_t hot) { return g_handles[hot]; }

bool FindHotOp(size_t hot, const char* name, const char* overload) {
  if (g_handles[hot] != nullptr) return true;
  const auto found = c10::Dispatcher::singleton().findSchema({name, overload});
  if (found) g_handles[hot] = new c10::OperatorHandle(*found);
  return found.has_value();
}

void RegisterHotLeaves() {
  // Never destroyed: operators run until the very end of the process.
  auto* library = new torch::Library(torch::Library::IMPL, "aten", kLeafKey, __FILE__, __LINE__);
  for (const auto& [name, add] : ChosenHotOps().leaves) add(*library, name.c_str());
}

}  // namespace acltape::torch_plugin
