#include "runtime/device/function.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <tuple>

#include "runtime/device/error.h"

namespace acltape::device {
namespace {

// Lies in front of a copied argument block.
struct alignas(64) BlockHeader {
  size_t bytes;
  HostEntry entry;
};

BlockHeader* HeaderOf(void* block) { return static_cast<BlockHeader*>(block) - 1; }

void DropBlock(void* block) { std::free(HeaderOf(block)); }

aclError RunHostEntry(void* block) {
  const uint32_t code = HeaderOf(block)->entry(block);
  if (code == 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_AICPU_EXCEPTION, "the kernel returned %u", code);
}

using Key = std::tuple<const char*, aclError (*)(void*), bool, HostEntry>;

Function* Find(const Key& key) {
  static std::mutex& mutex = *new std::mutex;
  static auto& functions = *new std::map<Key, Function>;
  std::lock_guard lock(mutex);
  auto [found, made] = functions.try_emplace(key);
  Function& function = found->second;
  const auto [name, run, takes_bytes, entry] = key;
  if (made) function = {name, run, takes_bytes, entry, nullptr};
  if (function.handle == nullptr) {
    function.handle = AllocateHandle(HandleKind::kFunction, &function);
  }
  return function.handle != nullptr ? &function : nullptr;
}

}  // namespace

Task KernelTaskWithArgs(const char* name, aclError (*run)(void*), const void* args, size_t bytes,
                        HostEntry entry) {
  size_t room = (sizeof(BlockHeader) + bytes + 63) / 64 * 64;
  auto* header = static_cast<BlockHeader*>(std::aligned_alloc(alignof(BlockHeader), room));
  if (header == nullptr) throw std::bad_alloc();
  header->bytes = bytes;
  header->entry = entry;
  if (bytes != 0) std::memcpy(header + 1, args, bytes);
  Task task;
  task.run = run;
  task.drop = DropBlock;
  task.argument = header + 1;
  task.name = InternName(name);
  task.kind = TaskKind::kKernel;
  return task;
}

Task KernelTaskWithArgs(const Function& function, const void* args, size_t bytes) {
  return KernelTaskWithArgs(function.name, function.run, args, bytes, function.entry);
}

bool TakesBytes(const Task& kernel) { return kernel.drop == DropBlock; }

size_t ArgumentBytes(const Task& kernel) {
  return TakesBytes(kernel) ? HeaderOf(kernel.argument)->bytes : sizeof(void*);
}

Function* FunctionOf(const Task& kernel) {
  const bool takes_bytes = TakesBytes(kernel);
  const HostEntry entry = takes_bytes ? HeaderOf(kernel.argument)->entry : nullptr;
  return Find({kernel.name, kernel.run, takes_bytes, entry});
}

Function* FunctionOf(const char* name, HostEntry entry) {
  return Find({InternName(name), RunHostEntry, true, entry});
}

}  // namespace acltape::device
