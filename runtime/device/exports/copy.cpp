// Copies and fills (section 10 of the rules).
#include <cstring>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

constexpr size_t kMaxWidth2d = 5000000;   // CPY-08, bytes
constexpr size_t kMaxHeight2d = 5242880;  // rows

struct CopyPayload {
  void* to;
  const void* from;
  size_t bytes;
  MemoryAccess reads;
};

// Both sides of a copy that is about to run (Note [Memory that is gone]).
aclError CheckBothSides(const char* task, const void* to, size_t to_bytes, const void* from,
                        size_t from_bytes, MemoryAccess reads) {
  ACLTAPE_RETURN_IF_FAILED(CheckTaskMemory(to, to_bytes, ACL_ERROR_RT_SYS_DMA, task, "dst"));
  return CheckTaskMemory(from, from_bytes, ACL_ERROR_RT_SYS_DMA, task, "src", reads);
}

aclError RunCopy(void* argument) {
  auto* copy = static_cast<CopyPayload*>(argument);
  ACLTAPE_RETURN_IF_FAILED(
      CheckBothSides("a copy", copy->to, copy->bytes, copy->from, copy->bytes, copy->reads));
  std::memmove(copy->to, copy->from, copy->bytes);
  return ACL_SUCCESS;
}

struct Copy2dPayload {
  char* to;
  size_t to_pitch;
  const char* from;
  size_t from_pitch;
  size_t width;
  size_t height;
};

// Bytes from the first row's begin to the last row's end.
size_t SpanOf(size_t height, size_t pitch, size_t width) { return (height - 1) * pitch + width; }

aclError RunCopy2d(void* argument) {
  auto* copy = static_cast<Copy2dPayload*>(argument);
  ACLTAPE_RETURN_IF_FAILED(CheckBothSides(
      "a copy", copy->to, SpanOf(copy->height, copy->to_pitch, copy->width), copy->from,
      SpanOf(copy->height, copy->from_pitch, copy->width), MemoryAccess::kRead));
  for (size_t row = 0; row < copy->height; ++row) {
    std::memmove(copy->to + row * copy->to_pitch, copy->from + row * copy->from_pitch, copy->width);
  }
  return ACL_SUCCESS;
}

struct FillPayload {
  void* to;
  uint32_t value;
  size_t count;
};

aclError RunFill(void* argument) {
  auto* fill = static_cast<FillPayload*>(argument);
  ACLTAPE_RETURN_IF_FAILED(
      CheckTaskMemory(fill->to, fill->count, ACL_ERROR_RT_SYS_DMA, "a fill", "its address"));
  std::memset(fill->to, static_cast<int>(fill->value), fill->count);
  return ACL_SUCCESS;
}

aclError RunFill32(void* argument) {
  auto* fill = static_cast<FillPayload*>(argument);
  ACLTAPE_RETURN_IF_FAILED(
      CheckTaskMemory(fill->to, fill->count * 4, ACL_ERROR_RT_SYS_DMA, "a fill", "its address"));
  auto* to = static_cast<uint32_t*>(fill->to);
  for (size_t i = 0; i < fill->count; ++i) to[i] = fill->value;
  return ACL_SUCCESS;
}

// CPY-01, CPY-03; *nothing is set when there is nothing to do.
aclError CheckCopy(const void* to, size_t room, const void* from, size_t bytes, int kind,
                   const char* call, bool* nothing) {
  *nothing = false;
  if (kind < 0 || kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no copy kind %d here", call, kind);
  }
  if (bytes == 0) {
    *nothing = true;
    return ACL_SUCCESS;
  }
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(to, call, "dst"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(from, call, "src"));
  if (room < bytes) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes do not fit into the %zu of dst", call,
                bytes, room);
  }
  return ACL_SUCCESS;
}

// True while a capture or a task update takes what is submitted. A stream that is bound to a built
// model keeps its tasks too, but a copy that waits for the stream is not one.
bool TakesTasksForLater(const Stream& stream) {
  if (!stream.diverted()) return false;
  std::lock_guard lock(CaptureLock());
  return stream.capture != nullptr || stream.update != nullptr;
}

// CPY-06, CAP-37: what an asynchronous copy with pageable memory becomes.
aclError CopyPageable(Stream& stream, Task&& task, const char* call) {
  if (TakesTasksForLater(stream)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: stream %u captures or updates a graph and the host memory is pageable; "
                "allocate it with aclrtMallocHost or register it",
                call, stream.id());
  }
  ACLTAPE_RETURN_IF_FAILED(stream.Synchronize());
  if (UnsafeCallRefused(stream.context())) {
    return Fail(ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
                "%s: with pageable host memory this is a synchronous copy, which a running capture "
                "refuses",
                call);
  }
  return task.Run();
}

// CPY-12: both sides are device memory of two devices, and the device that copies may not access
// the other. `device` is that of the current context.
bool LacksPeerAccess(const std::optional<MemoryBlock>& to, const std::optional<MemoryBlock>& from,
                     const Device& device) {
  for (const auto* side : {&to, &from}) {
    if (!IsDevice(*side) || (*side)->device == device.id) continue;
    if ((device.peers.load() >> (*side)->device & 1) == 0) return true;
  }
  return false;
}

// Refuses the copy, or lets its task fail, or does nothing, as the profile says.
aclError CheckPeerAccess(const std::optional<MemoryBlock>& to,
                         const std::optional<MemoryBlock>& from, const char* call, Task* task) {
  if (GetProfile().devices == 1 || GetProfile().peer_copy == PeerCopy::kAllow) return ACL_SUCCESS;
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  if (!LacksPeerAccess(to, from, context->device())) return ACL_SUCCESS;
  if (GetProfile().peer_copy == PeerCopy::kTaskError) {
    task->run = [](void*) -> aclError { return ACL_ERROR_RT_LINK_ERROR; };
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: device %d may not access the other device's memory; call "
              "aclrtDeviceEnablePeerAccess first",
              call, context->device().id);
}

struct Direction {
  bool pageable;      // some host side is not pinned
  bool host_to_host;  // no device side
};

Direction DirectionOf(const std::optional<MemoryBlock>& to,
                      const std::optional<MemoryBlock>& from) {
  return {IsPageable(to) || IsPageable(from), !IsDevice(to) && !IsDevice(from)};
}

aclError RefuseHostToHost(const char* call) {
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "%s: neither address is device memory; use the synchronous copy", call);
}

// CPY-09, CPY-10; *nothing as in CheckCopy.
aclError CheckFill(const void* to, size_t room, size_t count, const char* call, bool* nothing) {
  *nothing = count == 0;
  if (*nothing) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(to, call, "the address"));
  if (count > room) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes do not fit into %zu", call, count, room);
  }
  return CheckMemory(to, count, call, "the address");
}

aclError CheckFill32(const void* to, size_t room, size_t count, const char* call, bool* nothing) {
  *nothing = count == 0;
  if (*nothing) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(to, call, "ptr"));
  if (reinterpret_cast<uintptr_t>(to) % 4 != 0 || count > room / 4) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "%s: %zu words at %p do not fit into %zu bytes, or are not aligned to 4", call,
                count, to, room);
  }
  return CheckMemory(to, count * 4, call, "ptr");
}

aclError RunSynchronously(Task&& task, const char* call) {
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  ACLTAPE_RETURN_IF_FAILED(CheckSynchronousCall(*context, call));
  return task.Run();
}

aclError Check2d(const void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                 size_t height, const char* call, bool* nothing) {
  *nothing = width == 0 || height == 0;
  if (*nothing) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(to, call, "dst"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(from, call, "src"));
  if (width > to_pitch || width > from_pitch) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: width %zu is above a pitch (%zu, %zu)", call, width,
                to_pitch, from_pitch);
  }
  // No address lies so far away.
  constexpr size_t kNoSpan = size_t{1} << 47;
  for (const size_t pitch : {to_pitch, from_pitch}) {
    size_t span = 0;
    if (__builtin_mul_overflow(height - 1, pitch, &span) || span >= kNoSpan || width >= kNoSpan) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: %zu rows of %zu bytes, %zu apart, are more than a process can have", call,
                  height, width, pitch);
    }
  }
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(to, SpanOf(height, to_pitch, width), call, "dst"));
  return CheckMemory(from, SpanOf(height, from_pitch, width), call, "src", MemoryAccess::kRead);
}

}  // namespace

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  ACLTAPE_CALL("aclrtMemcpy");
  bool nothing = false;
  ACLTAPE_RETURN_IF_FAILED(CheckCopy(dst, destMax, src, count, kind, kCall, &nothing));
  if (nothing) return ACL_SUCCESS;
  auto to = FindMemory(dst);
  auto from = FindMemory(src);
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(dst, count, kCall, "dst"));
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(src, count, kCall, "src", MemoryAccess::kRead));
  Task task = MakeTask(TaskKind::kCopy, "MEMCPY", CopyPayload{dst, src, count, ReadsOfThisThread()},
                       RunCopy);
  ACLTAPE_RETURN_IF_FAILED(CheckPeerAccess(to, from, kCall, &task));
  return RunSynchronously(std::move(task), kCall);
}

namespace {

aclError CopyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                   aclrtStream stream, const char* call) {
  bool nothing = false;
  ACLTAPE_RETURN_IF_FAILED(CheckCopy(dst, destMax, src, count, kind, call, &nothing));
  if (nothing || dst == src) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(dst, count, call, "dst"));
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(src, count, call, "src", MemoryAccess::kRead));
  auto to = FindMemory(dst);
  auto from = FindMemory(src);
  Direction direction = DirectionOf(to, from);
  if (kind == ACL_MEMCPY_HOST_TO_HOST || direction.host_to_host) return RefuseHostToHost(call);
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, call, &found));
  Task task = MakeTask(TaskKind::kCopy, "MEMCPY_ASYNC",
                       CopyPayload{dst, src, count, ReadsOfThisThread()}, RunCopy);
  ACLTAPE_RETURN_IF_FAILED(CheckPeerAccess(to, from, call, &task));
  if (direction.pageable) return CopyPageable(*found, std::move(task), call);
  return SubmitTask(*found, std::move(task));
}

}  // namespace

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemcpyAsync");
  return CopyAsync(dst, destMax, src, count, kind, stream, kCall);
}

// CPY-16: the older name of the same copy.
aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemcpyAsyncWithCondition");
  return CopyAsync(dst, destMax, src, count, kind, stream, kCall);
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) {
  ACLTAPE_CALL("aclrtMemcpy2d");
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_DEFAULT) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no copy kind %d here", kCall,
                static_cast<int>(kind));
  }
  bool nothing = false;
  ACLTAPE_RETURN_IF_FAILED(Check2d(dst, dpitch, src, spitch, width, height, kCall, &nothing));
  if (nothing) return ACL_SUCCESS;
  Copy2dPayload payload{
      static_cast<char*>(dst), dpitch, static_cast<const char*>(src), spitch, width, height};
  return RunSynchronously(MakeTask(TaskKind::kCopy, "MEMCPY_2D", payload, RunCopy2d), kCall);
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemcpy2dAsync");
  if (kind < ACL_MEMCPY_HOST_TO_DEVICE || kind > ACL_MEMCPY_DEFAULT) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no copy kind %d here", kCall,
                static_cast<int>(kind));
  }
  bool nothing = false;
  ACLTAPE_RETURN_IF_FAILED(Check2d(dst, dpitch, src, spitch, width, height, kCall, &nothing));
  if (nothing) return ACL_SUCCESS;
  if (width > kMaxWidth2d || height > kMaxHeight2d) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu by %zu is above %zu by %zu", kCall, width,
                height, kMaxWidth2d, kMaxHeight2d);
  }
  Direction direction = DirectionOf(FindMemory(dst), FindMemory(src));
  if (direction.host_to_host) return RefuseHostToHost(kCall);
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  Copy2dPayload payload{
      static_cast<char*>(dst), dpitch, static_cast<const char*>(src), spitch, width, height};
  Task task = MakeTask(TaskKind::kCopy, "MEMCPY_2D_ASYNC", payload, RunCopy2d);
  if (direction.pageable) return CopyPageable(*found, std::move(task), kCall);
  return SubmitTask(*found, std::move(task));
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  ACLTAPE_CALL("aclrtMemset");
  bool nothing = false;
  ACLTAPE_RETURN_IF_FAILED(CheckFill(devPtr, maxCount, count, kCall, &nothing));
  if (nothing) return ACL_SUCCESS;
  FillPayload payload{devPtr, static_cast<uint32_t>(value), count};
  return RunSynchronously(MakeTask(TaskKind::kFill, "MEMSET", payload, RunFill), kCall);
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemsetAsync");
  bool nothing = false;
  ACLTAPE_RETURN_IF_FAILED(CheckFill(devPtr, maxCount, count, kCall, &nothing));
  if (nothing) return ACL_SUCCESS;
  return SubmitPayload(stream, kCall, TaskKind::kFill, "MEMSET_ASYNC",
                       FillPayload{devPtr, static_cast<uint32_t>(value), count}, RunFill);
}

aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  ACLTAPE_CALL("aclrtMemsetD32");
  bool nothing = false;
  ACLTAPE_RETURN_IF_FAILED(CheckFill32(ptr, memSize, N, kCall, &nothing));
  if (nothing) return ACL_SUCCESS;
  return RunSynchronously(
      MakeTask(TaskKind::kFill, "MEMSET_D32", FillPayload{ptr, value, N}, RunFill32), kCall);
}

aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                             aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemsetD32Async");
  bool nothing = false;
  ACLTAPE_RETURN_IF_FAILED(CheckFill32(ptr, memSize, N, kCall, &nothing));
  if (nothing) return ACL_SUCCESS;
  return SubmitPayload(stream, kCall, TaskKind::kFill, "MEMSET_D32_ASYNC",
                       FillPayload{ptr, value, N}, RunFill32);
}
