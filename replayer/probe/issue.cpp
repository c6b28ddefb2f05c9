#include "replayer/probe/issue.h"

#include <array>

#include "analyzer/lowering/acl_leaf.h"
#include "replayer/acl/task.h"
#include "replayer/bound_call.h"

namespace acltape::replayer {
namespace {

using K = analyzer::AclCallKind;
using V = analyzer::AclVariant;

constexpr int kTimeoutMs = 20000;  // of waits: work may wait for what the stretch does not hold
constexpr uint32_t kExternalFlag = 1;

uint32_t Word(int64_t value) { return static_cast<uint32_t>(value); }
size_t Size(int64_t value) { return static_cast<size_t>(value); }
aclrtMemcpyKind CopyKind(int64_t value) { return static_cast<aclrtMemcpyKind>(value); }

size_t PlaneBytes(int64_t pitch, int64_t width, int64_t height) {
  return height == 0 ? 0 : Size((height - 1) * pitch + width);
}

void DoNothing(void*) {}

}  // namespace

struct Issuer::Row {
  K kind;
  std::optional<int32_t> (Issuer::*issue)(const Call& call);
};

const Issuer::Row Issuer::kRows[] = {
    {K::kOperator, &Issuer::Operator},
    {K::kCopy, &Issuer::Copy},
    {K::kCopyAsync, &Issuer::Copy},
    {K::kCopy2d, &Issuer::Copy2d},
    {K::kCopy2dAsync, &Issuer::Copy2d},
    {K::kFill, &Issuer::Fill},
    {K::kFillAsync, &Issuer::Fill},
    {K::kFill32, &Issuer::Fill32},
    {K::kFill32Async, &Issuer::Fill32},
    {K::kValueWrite, &Issuer::ValueWrite},
    {K::kStreamCreate, &Issuer::StreamCreate},
    {K::kStreamDestroy, &Issuer::StreamDestroy},
    {K::kEventCreate, &Issuer::EventCreate},
    {K::kEventDestroy, &Issuer::EventDestroy},
    {K::kEventRecord, &Issuer::EventRecord},
    {K::kEventWait, &Issuer::EventWait},
    {K::kEventReset, &Issuer::EventReset},
    {K::kDeviceSync, &Issuer::DeviceSync},
    {K::kStreamSync, &Issuer::StreamSync},
    {K::kEventSync, &Issuer::EventSync},
    {K::kStreamQuery, &Issuer::StreamQuery},
    {K::kEventQuery, &Issuer::EventQuery},
    {K::kEventTime, &Issuer::EventTime},
    {K::kCaptureBegin, &Issuer::CaptureBegin},
    {K::kCaptureEnd, &Issuer::CaptureEnd},
    {K::kGroupBegin, &Issuer::GroupBegin},
    {K::kGroupEnd, &Issuer::GroupEnd},
    {K::kUpdateBegin, &Issuer::UpdateBegin},
    {K::kUpdateEnd, &Issuer::UpdateEnd},
    {K::kExecute, &Issuer::Execute},
    {K::kHostFunction, &Issuer::HostFunction},
    {K::kMemory, &Issuer::Memory},
    {K::kNoEffect, &Issuer::Other},
};

std::optional<int32_t> Issuer::Issue(size_t index, bool pin) {
  for (const Row& row : kRows) {
    if (row.kind != work_.form(index).acl_kind()) continue;
    Call call;
    call.index = index;
    call.form = &work_.form(index);
    call.arguments = ArgumentsOf(work_, index);
    call.pin = pin;
    const int64_t stream = work_.calls[index].stream_id;
    const bool creates = row.kind == K::kStreamCreate;
    if (stream != 0 && !creates) call.stream = objects_.Stream(stream);
    return (this->*row.issue)(call);
  }
  return std::nullopt;
}

std::optional<int32_t> Issuer::Operator(const Call& call) {
  const storage::Reader& trace = *work_.trace;
  try {
    const BoundCall bound(device_,
                          analyzer::InvocationOf(trace, work_.op(call.index), call.arguments),
                          [&](const analyzer::LoweredTensor& tensor) {
                            return objects_.AddressOf(tensor.buffer_id, tensor.layout.FirstByte());
                          });
    bound.Run(device_, call.stream, [&](uint64_t bytes) { return objects_.Workspace(bytes); });
  } catch (const UnsupportedOperator&) {
    return std::nullopt;
  } catch (const CallFailed& failure) {
    return failure.code();
  }
  return 0;
}

std::optional<int32_t> Issuer::Copy(const Call& call) {
  const acl::Api& api = device_.api();
  const size_t bytes = Size(call.Integer(3));
  uint8_t* to = objects_.Address(call.arguments[0], bytes, call.pin);
  const uint8_t* from = objects_.Address(call.arguments[2], bytes, call.pin);
  const aclrtMemcpyKind kind = CopyKind(call.Integer(4));
  const size_t most = Size(call.Integer(1));
  if (call.form->acl_kind() == K::kCopy) return api.aclrtMemcpy(to, most, from, bytes, kind);
  return api.aclrtMemcpyAsync(to, most, from, bytes, kind, call.stream);
}

std::optional<int32_t> Issuer::Copy2d(const Call& call) {
  const acl::Api& api = device_.api();
  const int64_t to_pitch = call.Integer(1), from_pitch = call.Integer(3);
  const int64_t width = call.Integer(4), height = call.Integer(5);
  uint8_t* to = objects_.Address(call.arguments[0], PlaneBytes(to_pitch, width, height), call.pin);
  const uint8_t* from =
      objects_.Address(call.arguments[2], PlaneBytes(from_pitch, width, height), call.pin);
  const aclrtMemcpyKind kind = CopyKind(call.Integer(6));
  if (call.form->acl_kind() == K::kCopy2d) {
    return api.aclrtMemcpy2d(to, Size(to_pitch), from, Size(from_pitch), Size(width), Size(height),
                             kind);
  }
  return api.aclrtMemcpy2dAsync(to, Size(to_pitch), from, Size(from_pitch), Size(width),
                                Size(height), kind, call.stream);
}

std::optional<int32_t> Issuer::Fill(const Call& call) {
  const acl::Api& api = device_.api();
  const size_t bytes = Size(call.Integer(3));
  uint8_t* to = objects_.Address(call.arguments[0], bytes, call.pin);
  const auto value = static_cast<int32_t>(call.Integer(2));
  const size_t most = Size(call.Integer(1));
  if (call.form->acl_kind() == K::kFill) return api.aclrtMemset(to, most, value, bytes);
  return api.aclrtMemsetAsync(to, most, value, bytes, call.stream);
}

std::optional<int32_t> Issuer::Fill32(const Call& call) {
  const acl::Api& api = device_.api();
  const size_t words = Size(call.Integer(3));
  uint8_t* to = objects_.Address(call.arguments[0], 4 * words, call.pin);
  const size_t most = Size(call.Integer(1));
  const bool now = call.form->acl_kind() == K::kFill32;
  if (now && api.aclrtMemsetD32 != nullptr) {
    return api.aclrtMemsetD32(to, most, Word(call.Integer(2)), words);
  }
  if (now || api.aclrtMemsetD32Async == nullptr) return std::nullopt;
  return api.aclrtMemsetD32Async(to, most, Word(call.Integer(2)), words, call.stream);
}

std::optional<int32_t> Issuer::ValueWrite(const Call& call) {
  if (device_.api().aclrtValueWrite == nullptr) return std::nullopt;
  return device_.api().aclrtValueWrite(objects_.Address(call.arguments[0], 8, call.pin),
                                       static_cast<uint64_t>(call.Integer(1)),
                                       Word(call.Integer(2)), call.stream);
}

std::optional<int32_t> Issuer::StreamCreate(const Call& call) {
  objects_.Stream(work_.calls[call.index].stream_id);
  return 0;
}

std::optional<int32_t> Issuer::StreamDestroy(const Call& call) {
  const acl::Api& api = device_.api();
  const bool forced = call.form->acl_variant() == V::kForced;
  if (forced && api.aclrtDestroyStreamForce == nullptr) return std::nullopt;
  const int32_t code =
      forced ? api.aclrtDestroyStreamForce(call.stream) : api.aclrtDestroyStream(call.stream);
  if (code == 0) objects_.destroyed_streams.insert(work_.calls[call.index].stream_id);
  return code;
}

std::optional<int32_t> Issuer::EventCreate(const Call& call) {
  objects_.Event(call.object());
  return 0;
}

std::optional<int32_t> Issuer::EventDestroy(const Call& call) {
  const int32_t code = device_.api().aclrtDestroyEvent(objects_.Event(call.object()));
  if (code == 0) objects_.destroyed_events.insert(call.object());
  return code;
}

std::optional<int32_t> Issuer::EventRecord(const Call& call) {
  const acl::Api& api = device_.api();
  aclrtEvent event = objects_.Event(call.object());
  if (call.detail() != kExternalFlag) return api.aclrtRecordEvent(event, call.stream);
  if (api.aclrtRecordEventWithFlag == nullptr) return std::nullopt;
  return api.aclrtRecordEventWithFlag(event, call.stream, kExternalFlag);
}

std::optional<int32_t> Issuer::EventWait(const Call& call) {
  const acl::Api& api = device_.api();
  aclrtEvent event = objects_.Event(call.object());
  if (call.detail() != kExternalFlag) return api.aclrtStreamWaitEvent(call.stream, event);
  if (api.aclrtStreamWaitEventWithFlag == nullptr) return std::nullopt;
  return api.aclrtStreamWaitEventWithFlag(call.stream, event, 0, kExternalFlag);
}

std::optional<int32_t> Issuer::EventReset(const Call& call) {
  return device_.api().aclrtResetEvent(objects_.Event(call.object()), call.stream);
}

std::optional<int32_t> Issuer::DeviceSync(const Call&) {
  const acl::Api& api = device_.api();
  if (api.aclrtSynchronizeDeviceWithTimeout == nullptr) return api.aclrtSynchronizeDevice();
  return api.aclrtSynchronizeDeviceWithTimeout(kTimeoutMs);
}

std::optional<int32_t> Issuer::StreamSync(const Call& call) {
  const acl::Api& api = device_.api();
  if (api.aclrtSynchronizeStreamWithTimeout == nullptr) {
    return api.aclrtSynchronizeStream(call.stream);
  }
  return api.aclrtSynchronizeStreamWithTimeout(call.stream, kTimeoutMs);
}

std::optional<int32_t> Issuer::EventSync(const Call& call) {
  const acl::Api& api = device_.api();
  aclrtEvent event = objects_.Event(call.object());
  if (api.aclrtSynchronizeEventWithTimeout == nullptr) return api.aclrtSynchronizeEvent(event);
  return api.aclrtSynchronizeEventWithTimeout(event, kTimeoutMs);
}

std::optional<int32_t> Issuer::StreamQuery(const Call& call) {
  if (device_.api().aclrtStreamQuery == nullptr) return std::nullopt;
  aclrtStreamStatus status{};
  return device_.api().aclrtStreamQuery(call.stream, &status);
}

std::optional<int32_t> Issuer::EventQuery(const Call& call) {
  const acl::Api& api = device_.api();
  aclrtEvent event = objects_.Event(call.object());
  if (call.form->acl_variant() == V::kOldQuery) {
    if (api.aclrtQueryEvent == nullptr) return std::nullopt;
    aclrtEventStatus status{};
    return api.aclrtQueryEvent(event, &status);
  }
  if (api.aclrtQueryEventStatus == nullptr) return std::nullopt;
  aclrtEventRecordedStatus status{};
  return api.aclrtQueryEventStatus(event, &status);
}

std::optional<int32_t> Issuer::EventTime(const Call& call) {
  const acl::Api& api = device_.api();
  aclrtEvent first = objects_.Event(call.object());
  if (call.form->function->detail < 0) {
    if (api.aclrtEventGetTimestamp == nullptr) return std::nullopt;
    uint64_t time = 0;
    return api.aclrtEventGetTimestamp(first, &time);
  }
  float milliseconds = 0;
  return api.aclrtEventElapsedTime(&milliseconds, first, objects_.Event(call.detail()));
}

std::optional<int32_t> Issuer::CaptureBegin(const Call& call) {
  return objects_.BeginCapture(call.stream, static_cast<aclmdlRICaptureMode>(call.Integer(1)));
}

std::optional<int32_t> Issuer::CaptureEnd(const Call& call) {
  return objects_.EndCapture(call.stream);
}

std::optional<int32_t> Issuer::GroupBegin(const Call& call) {
  if (device_.api().aclmdlRICaptureTaskGrpBegin == nullptr) return std::nullopt;
  return device_.api().aclmdlRICaptureTaskGrpBegin(call.stream);
}

std::optional<int32_t> Issuer::GroupEnd(const Call& call) {
  if (device_.api().aclmdlRICaptureTaskGrpEnd == nullptr) return std::nullopt;
  return device_.api().aclmdlRICaptureTaskGrpEnd(call.stream, &objects_.groups[call.object()]);
}

std::optional<int32_t> Issuer::UpdateBegin(const Call& call) {
  const auto group = objects_.groups.find(call.object());
  if (group == objects_.groups.end()) return std::nullopt;
  return device_.api().aclmdlRICaptureTaskUpdateBegin(call.stream, group->second);
}

std::optional<int32_t> Issuer::UpdateEnd(const Call& call) {
  if (device_.api().aclmdlRICaptureTaskUpdateEnd == nullptr) return std::nullopt;
  return device_.api().aclmdlRICaptureTaskUpdateEnd(call.stream);
}

std::optional<int32_t> Issuer::Execute(const Call& call) {
  return device_.api().aclmdlRIExecuteAsync(objects_.Model(call.object()), call.stream);
}

std::optional<int32_t> Issuer::HostFunction(const Call& call) {
  if (device_.api().aclrtLaunchHostFunc == nullptr) return std::nullopt;
  return device_.api().aclrtLaunchHostFunc(call.stream, DoNothing, nullptr);
}

// Memory of the stretch is there before the capture; an allocation is made again to see its code.
std::optional<int32_t> Issuer::Memory(const Call& call) {
  const acl::Api& api = device_.api();
  const V variant = call.form->acl_variant();
  void* memory = nullptr;
  if (variant == V::kAllocateDevice) {
    const int32_t code = api.aclrtMalloc(&memory, Size(call.Integer(1)), ACL_MEM_MALLOC_HUGE_FIRST);
    if (code == 0) api.aclrtFree(memory);
    return code;
  }
  if (variant == V::kAllocateHost) {
    const int32_t code = api.aclrtMallocHost(&memory, Size(call.Integer(1)));
    if (code == 0) api.aclrtFreeHost(memory);
    return code;
  }
  return 0;  // frees happen behind the probe
}

std::optional<int32_t> Issuer::Other(const Call& call) {
  const acl::Api& api = device_.api();
  if (call.form->acl_variant() != V::kExchangeMode ||
      api.aclmdlRICaptureThreadExchangeMode == nullptr) {
    return 0;
  }
  auto mode = static_cast<aclmdlRICaptureMode>(call.Integer(0));
  return api.aclmdlRICaptureThreadExchangeMode(&mode);
}

}  // namespace acltape::replayer
