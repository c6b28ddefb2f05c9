#include "runtime/device/function.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <tuple>

namespace acltape::device {
namespace {

// Lies in front of a copied argument block.
struct alignas(64) BlockHeader {
  size_t bytes;
};

BlockHeader* HeaderOf(void* block) { return static_cast<BlockHeader*>(block) - 1; }

void DropBlock(void* block) { std::free(HeaderOf(block)); }

}  // namespace

Task KernelTaskWithArgs(const char* name, aclError (*run)(void*), const void* args, size_t bytes) {
  size_t room = (sizeof(BlockHeader) + bytes + 63) / 64 * 64;
  auto* header = static_cast<BlockHeader*>(std::aligned_alloc(alignof(BlockHeader), room));
  if (header == nullptr) throw std::bad_alloc();
  header->bytes = bytes;
  if (bytes != 0) std::memcpy(header + 1, args, bytes);
  Task task;
  task.run = run;
  task.drop = DropBlock;
  task.argument = header + 1;
  task.name = InternName(name);
  task.kind = TaskKind::kKernel;
  return task;
}

bool TakesBytes(const Task& kernel) { return kernel.drop == DropBlock; }

size_t ArgumentBytes(const Task& kernel) {
  return TakesBytes(kernel) ? HeaderOf(kernel.argument)->bytes : sizeof(void*);
}

Function* FunctionOf(const Task& kernel) {
  using Key = std::tuple<const char*, aclError (*)(void*), bool>;
  static std::mutex& mutex = *new std::mutex;
  static auto& functions = *new std::map<Key, Function>;
  std::lock_guard lock(mutex);
  auto [found, made] = functions.try_emplace({kernel.name, kernel.run, TakesBytes(kernel)});
  Function& function = found->second;
  if (made) function = {kernel.name, kernel.run, TakesBytes(kernel), nullptr};
  if (function.handle == nullptr) {
    function.handle = AllocateHandle(HandleKind::kFunction, &function);
  }
  return function.handle != nullptr ? &function : nullptr;
}

}  // namespace acltape::device
