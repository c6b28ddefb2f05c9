#include "recorder/torch/tensor_memory.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "recorder/torch/guard.h"

namespace acltape::torch_plugin {

namespace {

// Reads a member of TensorImpl that is public only through a function which a subclass can replace.
struct InsideTensor : at::TensorImpl {
  static c10::Device Device(const at::TensorImpl& tensor) {
    const auto& device = tensor.*(&InsideTensor::device_opt_);
    return device.has_value() ? *device : c10::Device(c10::DeviceType::CPU);
  }
};

bool IsKnown(c10::DeviceType kind) {
  return kind == c10::DeviceType::CPU || kind == c10::DeviceType::PrivateUse1;
}

// Tensors without values: shapes are worked out with them, as torch.compile does.
bool HasNoValues(c10::DeviceType kind) { return kind == c10::DeviceType::Meta; }

void NoteMemory(ThreadState& state, const std::string& memory) {
  static auto* mutex = new std::mutex;
  static auto* told = new std::set<std::string>;
  {
    std::lock_guard<std::mutex> lock(*mutex);
    if (!told->insert(memory).second) return;
  }
  // The recorder says it at once (recorder/collector), the ledger at the end.
  wire::ArenaHeader& arena = *state.tape->arena;
  uint32_t none = 0;
  if (arena.unknown_memory.compare_exchange_strong(none, 1)) {
    memory.copy(arena.unknown_memory_name, sizeof(arena.unknown_memory_name) - 1);
    arena.unknown_memory.store(2);
  }
  const std::string cause = "tensors in the memory '" + memory +
                            "', which the recorder does not know: their calls are recorded with "
                            "shapes and times alone, without memory and values";
  state.tape->WriteLedger(
      1, 1, "memory_not_known", memory.c_str(), cause.c_str(),
      "what needs values (replay, prove, diff, bisect) can say nothing of these "
      "calls; run the program on an NPU, the soft device or the CPU with "
      "ordinary tensors");
}

}  // namespace

c10::Device DeviceOfTensor(const at::TensorImpl& tensor) { return InsideTensor::Device(tensor); }

std::string UnknownMemory(const at::TensorImpl& tensor, bool has_buffer, bool opaque) {
  const c10::Device device = DeviceOfTensor(tensor);
  if (!IsKnown(device.type())) return device.str();
  if (!opaque) return "";
  const c10::DispatchKeySet keys = tensor.key_set();
  if (keys.has(c10::DispatchKey::MkldnnCPU)) return "mkldnn";
  if (keys.has(c10::DispatchKey::NestedTensor)) return "nested";
  if (keys.has(c10::DispatchKey::Sparse)) return "sparse";
  return has_buffer ? "" : "opaque";
}

void NoteDevice(ThreadState& state, c10::Device device) {
  if (device.type() == c10::DeviceType::CPU || HasNoValues(device.type())) return;
  uint16_t place = ThreadState::kPlaceElsewhere;
  if (device.type() == c10::DeviceType::PrivateUse1) {
    place =
        static_cast<uint16_t>(meaning::kPlaceHost + 1 + (device.has_index() ? device.index() : 0));
  }
  state.place = std::max(state.place, place);
}

void NotePlace(ThreadState& state, const at::TensorImpl& tensor, const std::string& memory) {
  const c10::Device device = DeviceOfTensor(tensor);
  if (!memory.empty() && !HasNoValues(device.type())) {
    Guarded(wire::LeftOut::kContents, [&] { NoteMemory(state, memory); });
  }
  NoteDevice(state, device);
}

}  // namespace acltape::torch_plugin
