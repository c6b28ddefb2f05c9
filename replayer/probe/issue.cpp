#include "replayer/probe/issue.h"

#include <array>

#include "analyzer/lowering/acl_leaf.h"
#include "generated/meaning/parameter_positions.h"
#include "replayer/acl_level/task.h"
#include "replayer/device/bound_call.h"
#include "replayer/device/patience.h"

namespace acltape::replayer::probe {
namespace {

using K = analyzer::AclCallKind;
using V = analyzer::AclVariant;

namespace position = meaning::position;

uint32_t Word(int64_t value) { return static_cast<uint32_t>(value); }
size_t Size(int64_t value) { return static_cast<size_t>(value); }
aclrtMemcpyKind CopyKind(int64_t value) { return static_cast<aclrtMemcpyKind>(value); }

size_t PlaneBytes(int64_t pitch, int64_t width, int64_t height) {
  return height == 0 ? 0 : Size((height - 1) * pitch + width);
}

void DoNothing(void*) {}

}  // namespace

std::optional<int32_t> Issuer::Issue(size_t index, bool pin) {
  Call call;
  call.index = index;
  call.form = &work_.form(index);
  call.arguments = ArgumentsOf(work_, index);
  call.pin = pin;
  const int64_t stream = work_.calls[index].stream_id;
  if (stream != 0 && call.form->acl_kind() != K::kStreamCreate) {
    call.stream = objects_.Stream(stream);
  }
  return Issue(call);
}

Issuer::Code Issuer::Issue(const Call& call) {
  const DeviceWork& work = device_.work();
  switch (call.form->acl_kind()) {
    case K::kOperator:
      return Operator(call);
    case K::kCopy:
    case K::kCopyAsync:
      return Copy(call);
    case K::kCopy2d:
    case K::kCopy2dAsync:
      return CopyRows(call);
    case K::kFill:
    case K::kFillAsync: {
      namespace fill = position::aclrtMemset;
      const size_t bytes = Size(call.Integer(fill::kCount));
      return work
          .Fill(objects_.Address(call.arguments[fill::kDevPtr], bytes, call.pin),
                Size(call.Integer(fill::kMaxCount)),
                static_cast<int32_t>(call.Integer(fill::kValue)), bytes, call.on())
          .code();
    }
    case K::kFill32:
    case K::kFill32Async: {
      namespace fill = position::aclrtMemsetD32;
      const size_t words = Size(call.Integer(fill::kN));
      return work
          .FillWords(objects_.Address(call.arguments[fill::kPtr], 4 * words, call.pin),
                     Size(call.Integer(fill::kMemSize)), Word(call.Integer(fill::kValue)), words,
                     call.on())
          .code();
    }
    case K::kValueWrite: {
      namespace write = position::aclrtValueWrite;
      return work
          .WriteValue(objects_.Address(call.arguments[write::kDevAddr], 8, call.pin),
                      static_cast<uint64_t>(call.Integer(write::kValue)),
                      Word(call.Integer(write::kFlag)), call.stream)
          .code();
    }
    case K::kStreamCreate:
      objects_.Stream(work_.calls[call.index].stream_id);
      return 0;
    case K::kStreamDestroy:
      return StreamDestroy(call);
    case K::kEventCreate:
      objects_.EventOf(call.object());
      return 0;
    case K::kEventDestroy:
      return EventDestroy(call);
    case K::kEventRecord:
      return work.Record(EventOf(call), call.stream, call.flag()).code();
    case K::kEventWait:
      return work.Wait(EventOf(call), call.stream, call.flag()).code();
    case K::kEventReset:
      return work.Reset(EventOf(call), call.stream).code();
    case K::kDeviceSync:
      return Wait([&](int limit_ms) { return work.WaitForDevice(limit_ms); });
    case K::kStreamSync:
      return Wait([&](int limit_ms) { return work.WaitForStream(call.stream, limit_ms); });
    case K::kEventSync:
      return Wait([&](int limit_ms) { return work.WaitForEvent(EventOf(call), limit_ms); });
    case K::kStreamQuery: {
      aclrtStreamStatus status{};
      return work.Ask("", device_.api().aclrtStreamQuery, call.stream, &status).code();
    }
    case K::kEventQuery:
      return EventQuery(call);
    case K::kEventTime:
      return EventTime(call);
    case K::kCaptureBegin:
      if (call.form->acl_variant() == V::kSubGraph) return std::nullopt;
      return objects_.BeginCapture(
          call.stream,
          static_cast<aclmdlRICaptureMode>(call.Integer(position::aclmdlRICaptureBegin::kMode)));
    case K::kCaptureEnd:
      return objects_.EndCapture(call.stream);
    case K::kGroupBegin:
      return work.BeginGroup(call.stream).code();
    case K::kGroupEnd:
      return work.EndGroup(call.stream, &objects_.groups[call.object()]).code();
    case K::kUpdateBegin:
      return UpdateBegin(call);
    case K::kUpdateEnd:
      return work.EndUpdate(call.stream).code();
    case K::kExecute:
      return work.Execute(objects_.Model(call.object()), call.stream).code();
    case K::kHostFunction:
      return work.CallHost(DoNothing, call.stream).code();
    case K::kMemory:
      return Memory(call);
    case K::kPoolAllocate:
    case K::kPoolFree:
      return PoolMemory(call);
    case K::kNoEffect:
      return ExchangeMode(call);
    default:
      return std::nullopt;
  }
}

Issuer::Code Issuer::Wait(const std::function<CallResult(int limit_ms)>& wait) {
  const std::optional<CallResult> result = WaitInPieces(ProbePatience(device_.library()), wait);
  if (result) return result->code();
  stood_still_ = true;
  return std::nullopt;
}

Issuer::Code Issuer::Operator(const Call& call) {
  const storage::Reader& trace = *work_.trace;
  try {
    const BoundCall bound(
        device_, analyzer::lowering::InvocationOf(trace, work_.op(call.index), call.arguments),
        [&](const analyzer::lowering::LoweredTensor& tensor) {
          return objects_.AddressOf(tensor.memory.buffer(), tensor.layout.FirstByte());
        });
    bound.Run(device_, call.stream, [&](uint64_t bytes) { return objects_.Workspace(bytes); });
  } catch (const UnsupportedOperator&) {
    return std::nullopt;
  } catch (const CallFailed& failure) {
    return failure.code();
  }
  return 0;
}

Issuer::Code Issuer::Copy(const Call& call) {
  namespace copy = position::aclrtMemcpy;
  const size_t bytes = Size(call.Integer(copy::kCount));
  uint8_t* to = objects_.Address(call.arguments[copy::kDst], bytes, call.pin);
  const uint8_t* from = objects_.Address(call.arguments[copy::kSrc], bytes, call.pin);
  return device_.work()
      .Copy(to, Size(call.Integer(copy::kDestMax)), from, bytes,
            CopyKind(call.Integer(copy::kKind)), call.on())
      .code();
}

Issuer::Code Issuer::CopyRows(const Call& call) {
  namespace rows = position::aclrtMemcpy2d;
  const int64_t to_pitch = call.Integer(rows::kDpitch), from_pitch = call.Integer(rows::kSpitch);
  const int64_t width = call.Integer(rows::kWidth), height = call.Integer(rows::kHeight);
  uint8_t* to =
      objects_.Address(call.arguments[rows::kDst], PlaneBytes(to_pitch, width, height), call.pin);
  const uint8_t* from =
      objects_.Address(call.arguments[rows::kSrc], PlaneBytes(from_pitch, width, height), call.pin);
  return device_.work()
      .CopyRows(to, Size(to_pitch), from, Size(from_pitch), Size(width), Size(height),
                CopyKind(call.Integer(rows::kKind)), call.on())
      .code();
}

Issuer::Code Issuer::StreamDestroy(const Call& call) {
  const DeviceWork& work = device_.work();
  const bool forced = call.form->acl_variant() == V::kForced;
  const Code code =
      (forced ? work.DestroyStreamNow(call.stream) : work.DestroyStream(call.stream)).code();
  if (code == 0) objects_.ReleaseStream(work_.calls[call.index].stream_id);
  return code;
}

Issuer::Code Issuer::EventDestroy(const Call& call) {
  const Code code = device_.work().DestroyEvent(EventOf(call)).code();
  if (code == 0) objects_.EventOf(call.object()).Release();
  return code;
}

Issuer::Code Issuer::EventQuery(const Call& call) {
  aclrtEventStatus status{};
  aclrtEventRecordedStatus recorded{};
  if (call.form->acl_variant() == V::kOldQuery) {
    return device_.work().Ask("", device_.api().aclrtQueryEvent, EventOf(call), &status).code();
  }
  return device_.work()
      .Ask("", device_.api().aclrtQueryEventStatus, EventOf(call), &recorded)
      .code();
}

Issuer::Code Issuer::EventTime(const Call& call) {
  const DeviceWork& work = device_.work();
  uint64_t time = 0;
  float milliseconds = 0;
  if (call.form->function->detail < 0) {
    return work.Ask("", device_.api().aclrtEventGetTimestamp, EventOf(call), &time).code();
  }
  return work
      .Ask("", device_.api().aclrtEventElapsedTime, &milliseconds, EventOf(call),
           objects_.EventOf(call.detail()).get())
      .code();
}

Issuer::Code Issuer::UpdateBegin(const Call& call) {
  const auto group = objects_.groups.find(call.object());
  if (group == objects_.groups.end()) return std::nullopt;
  return device_.work().BeginUpdate(call.stream, group->second).code();
}

// Memory of the stretch is there before the capture; an allocation is made again to see its code.
Issuer::Code Issuer::Memory(const Call& call) {
  const acl::Api& api = device_.api();
  const V variant = call.form->acl_variant();
  void* memory = nullptr;
  if (variant == V::kAllocateDevice) {
    const int32_t code = api.aclrtMalloc(&memory, Size(call.Integer(position::aclrtMalloc::kSize)),
                                         ACL_MEM_MALLOC_HUGE_FIRST);
    if (code == 0) api.aclrtFree(memory);
    return code;
  }
  if (variant == V::kAllocateHost) {
    const int32_t code =
        api.aclrtMallocHost(&memory, Size(call.Integer(position::aclrtMallocHost::kSize)));
    if (code == 0) api.aclrtFreeHost(memory);
    return code;
  }
  return 0;  // the probe frees only after all its work
}

// Gives each call a pool of its own, because the pool does not decide whether the stream takes the
// call. The memory stays where it is, like other memory of the stretch.
Issuer::Code Issuer::PoolMemory(const Call& call) {
  const acl::Api& api = device_.api();
  if (api.aclrtMemPoolMallocAsync == nullptr || api.aclrtMemPoolFreeAsync == nullptr) {
    return std::nullopt;
  }
  aclrtMemPoolProps properties = {};
  properties.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtMemPool pool = nullptr;
  if (const int32_t code = api.aclrtMemPoolCreate(&pool, &properties); code != 0) return code;
  void* memory = nullptr;
  int32_t code = 0;
  if (call.form->acl_kind() == K::kPoolAllocate) {
    code = api.aclrtMemPoolMallocAsync(
        &memory, Size(call.Integer(position::aclrtMemPoolMallocAsync::kSize)), pool, call.stream);
    if (code == 0) code = api.aclrtMemPoolFreeAsync(memory, call.stream);
  } else if (code = api.aclrtMalloc(&memory, 1, ACL_MEM_MALLOC_HUGE_FIRST); code == 0) {
    code = api.aclrtMemPoolFreeAsync(memory, call.stream);
    if (code != 0) api.aclrtFree(memory);
  }
  api.aclrtMemPoolDestroy(pool);
  return code;
}

Issuer::Code Issuer::ExchangeMode(const Call& call) {
  const acl::Api& api = device_.api();
  if (call.form->acl_variant() != V::kExchangeMode ||
      api.aclmdlRICaptureThreadExchangeMode == nullptr) {
    return 0;
  }
  auto mode = static_cast<aclmdlRICaptureMode>(
      call.Integer(position::aclmdlRICaptureThreadExchangeMode::kMode));
  return api.aclmdlRICaptureThreadExchangeMode(&mode);
}

}  // namespace acltape::replayer::probe
