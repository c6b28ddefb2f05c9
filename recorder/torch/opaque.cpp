#include "recorder/torch/opaque.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "recorder/torch/arguments.h"
#include "recorder/torch/guard.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

namespace {

constexpr const char* kDialectPrefix = "inductor::";
constexpr uint32_t kDialect = 5;  // as in wire::OpRecord

// One description for each kernel; it lives for ever.
const OpInfo* DescribeKernel(const std::string& name, const std::string& version) {
  static auto* mutex = new std::mutex;
  static auto* known = new std::map<std::string, std::unique_ptr<OpInfo>>;
  std::lock_guard<std::mutex> lock(*mutex);
  std::unique_ptr<OpInfo>& info = (*known)[name + "." + version];
  if (info != nullptr) return info.get();
  info = std::make_unique<OpInfo>();
  info->name = kDialectPrefix + name;
  info->overload = version;
  info->schema = info->name + "." + version +
                 "(Tensor[] reads, Tensor(a!)[] updates, Tensor(b!)[] writes) -> ()";
  info->arguments.resize(3);
  info->arguments[1].written = true;
  info->arguments[2].written = true;
  info->arguments[2].overwritten = true;
  info->writes = true;
  info->random = true;
  return info.get();
}

void SayOnce(ThreadState& state, const std::string& name) {
  static std::once_flag once;
  std::call_once(once, [&] {
    state.tape->WriteLedger(1, 1, "opaque_kernel", name.c_str(),
                            "torch.compile generated kernels that are no operators of PyTorch; a "
                            "replay takes their recorded results",
                            "compile with backend=\"aot_eager\" to replay every operator");
  });
}

}  // namespace

}  // namespace acltape::torch_plugin

int acltape_torch_opaque_begin(const char* name, const char* version, const uint64_t* tensors,
                               int read, int updated, int written) {
  using namespace acltape::torch_plugin;
  using acltape::wire::LeftOut;
  ThreadState* state = CurrentThread();
  if (state == nullptr || state->in_leaf || !RecordsLeaves(*state)) return 0;
  const bool entered = Guarded(LeftOut::kCalls, [&] {
    if (state->opaque == nullptr) state->opaque = std::make_unique<OpaqueCall>();
    const OpInfo* info = DescribeKernel(name, version);
    SayOnce(*state, info->name);
    const int count = read + updated + written;
    std::vector<at::Tensor>& all = state->opaque->tensors;
    all.clear();
    for (int i = 0; i < count; ++i) {
      auto* impl = reinterpret_cast<at::TensorImpl*>(tensors[i]);
      all.emplace_back(c10::intrusive_ptr<at::TensorImpl>::reclaim_copy(impl));
    }
    EnterLeaf(*state, state->Row(info, kDialect));
  });
  if (!entered) return 0;
  LeafScope& leaf = state->opaque->leaf.emplace(*state);
  leaf.Encode([&] {
    const at::TensorList all(state->opaque->tensors);
    const size_t first_updated = read;
    const size_t first_written = read + updated;
    for (const at::TensorList list : {all.slice(0, read), all.slice(first_updated, updated),
                                      all.slice(first_written, written)}) {
      Encode(*state, list);
      ++state->position;
    }
  });
  leaf.Begin();
  return 1;
}

void acltape_torch_opaque_end(int failed) {
  using namespace acltape::torch_plugin;
  ThreadState* state = t_state;
  if (state == nullptr || state->opaque == nullptr || !state->opaque->leaf) return;
  LeafScope& leaf = *state->opaque->leaf;
  leaf.Returned();
  if (failed == 0) leaf.End();
  state->opaque->leaf.reset();  // a leaf without an end is one that failed
  state->opaque->tensors.clear();
}
