// The wrapped functions by which a program reports ranges and marks (marks.h). Names of aclprof
// lie in stamps, which are objects of the library; what a stamp was told is kept by its address.
//
// aclprofRangePushEx is not wrapped: it reports an operator of a framework, and has no name.
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "acl/acl_prof.h"
#include "recorder/acl/marks.h"
#include "recorder/acl/real.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"
#include "recorder/agent/tape.h"

namespace {

using namespace acltape::acl_agent;

// Positions in kMarkFunctions.
enum MarkCall : uint32_t {
  kSetMessage,
  kDestroyStamp,
  kProfilerMark,
  kProfilerMarkEx,
  kPush,
  kPop,
  kRangeStart,
  kRangeStop,
  kToolsMark,
  kToolsStart,
  kToolsEnd,
  kToolsDomainMark,
  kToolsDomainStart,
  kToolsDomainEnd,
};

constexpr char kUnnamed[] = "aclprof";

struct Message {
  char* text;
};
acltape::agent::PointerMap<Message> g_messages;

// A library may build one of its functions on another, which is wrapped too. Only the call of the
// program counts.
__thread uint32_t t_depth __attribute__((tls_model("initial-exec"))) = 0;

class ProgramCall {
 public:
  ProgramCall() { ++t_depth; }
  ~ProgramCall() { --t_depth; }
  ProgramCall(const ProgramCall&) = delete;
  ProgramCall& operator=(const ProgramCall&) = delete;
  bool outermost() const { return t_depth == 1; }
};

template <typename Function>
Function RealMark(MarkCall call) {
  return reinterpret_cast<Function>(Real(MarkFunctionNumber(call)));
}

void DropMessage(const void* stamp) {
  Message message{nullptr};
  if (g_messages.Take(stamp, &message)) free(message.text);
}

// Without memory the stamp has no message; a former one would be wrong.
void KeepMessage(const void* stamp, const char* text, uint32_t bytes) {
  using acltape::agent::PutResult;
  constexpr auto kRanges = acltape::wire::LeftOut::kRanges;
  Message message{acltape::agent::CopyText(text, bytes, kRanges)};
  if (message.text == nullptr) return DropMessage(stamp);
  Message before{nullptr};
  if (g_messages.Put(stamp, message, &before) == PutResult::kNoMemory) {
    acltape::agent::LeaveOut(kRanges);
    before = message;
  }
  free(before.text);
}

const char* NameOf(const void* stamp) {
  Message message{nullptr};
  return g_messages.Get(stamp, &message) ? message.text : kUnnamed;
}

// The vendor's library gives no numbers while none of its tools listens. Those given here have the
// highest bit, which sets them apart, and are not passed on.
constexpr uint64_t kOwnNumber = uint64_t{1} << 63;
std::atomic<uint64_t> g_own_numbers{0};

uint64_t BeginTools(uint64_t number, const char* message) {
  if (message == nullptr || *message == '\0') return number;
  if (number == 0) number = kOwnNumber | (g_own_numbers.fetch_add(1) + 1);
  BeginMarkedRange(MarkKind::kTools, number, message);
  return number;
}

bool IsOwn(uint64_t number) { return (number & kOwnNumber) != 0; }

}  // namespace

extern "C" {

aclError aclprofSetStampTraceMessage(void* stamp, const char* msg, uint32_t msgLen) {
  auto real = RealMark<decltype(&aclprofSetStampTraceMessage)>(kSetMessage);
  if (real == nullptr) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  const aclError result = real(stamp, msg, msgLen);
  if (result == ACL_SUCCESS && msg != nullptr) KeepMessage(stamp, msg, msgLen);
  return result;
}

// Forgotten before: the stamp's address may be given out again at once.
void aclprofDestroyStamp(void* stamp) {
  auto real = RealMark<decltype(&aclprofDestroyStamp)>(kDestroyStamp);
  if (real == nullptr) return;
  DropMessage(stamp);
  real(stamp);
}

aclError aclprofMark(void* stamp) {
  auto real = RealMark<decltype(&aclprofMark)>(kProfilerMark);
  if (real == nullptr) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  const ProgramCall call;
  const aclError result = real(stamp);
  if (call.outermost() && result == ACL_SUCCESS) MarkPlace(NameOf(stamp));
  return result;
}

aclError aclprofMarkEx(const char* msg, size_t msgLen, aclrtStream stream) {
  auto real = RealMark<decltype(&aclprofMarkEx)>(kProfilerMarkEx);
  if (real == nullptr) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  const ProgramCall call;
  const aclError result = real(msg, msgLen, stream);
  const bool marks = call.outermost() && result == ACL_SUCCESS && msg != nullptr;
  char* name =
      marks ? acltape::agent::CopyText(msg, msgLen, acltape::wire::LeftOut::kRanges) : nullptr;
  if (name != nullptr) MarkPlace(name);
  free(name);
  return result;
}

aclError aclprofPush(void* stamp) {
  auto real = RealMark<decltype(&aclprofPush)>(kPush);
  if (real == nullptr) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  const ProgramCall call;
  const aclError result = real(stamp);
  if (call.outermost() && result == ACL_SUCCESS)
    BeginMarkedRange(MarkKind::kNested, 0, NameOf(stamp));
  return result;
}

aclError aclprofPop(void) {
  auto real = RealMark<decltype(&aclprofPop)>(kPop);
  if (real == nullptr) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  const ProgramCall call;
  const aclError result = real();
  if (call.outermost() && result == ACL_SUCCESS) EndMarkedRange(MarkKind::kNested, 0);
  return result;
}

aclError aclprofRangeStart(void* stamp, uint32_t* rangeId) {
  auto real = RealMark<decltype(&aclprofRangeStart)>(kRangeStart);
  if (real == nullptr) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  const ProgramCall call;
  const aclError result = real(stamp, rangeId);
  if (call.outermost() && result == ACL_SUCCESS)
    BeginMarkedRange(MarkKind::kProfiler, *rangeId, NameOf(stamp));
  return result;
}

aclError aclprofRangeStop(uint32_t rangeId) {
  auto real = RealMark<decltype(&aclprofRangeStop)>(kRangeStop);
  if (real == nullptr) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  const ProgramCall call;
  const aclError result = real(rangeId);
  if (call.outermost() && result == ACL_SUCCESS) EndMarkedRange(MarkKind::kProfiler, rangeId);
  return result;
}

// The header of these defines functions of its own, which look the library's up.
ACLTAPE_AGENT_API void mstxMarkA(const char* message, aclrtStream stream) {
  const ProgramCall call;
  auto real = RealMark<void (*)(const char*, aclrtStream)>(kToolsMark);
  if (real != nullptr) real(message, stream);
  if (call.outermost() && message != nullptr) MarkPlace(message);
}

ACLTAPE_AGENT_API uint64_t mstxRangeStartA(const char* message, aclrtStream stream) {
  const ProgramCall call;
  auto real = RealMark<uint64_t (*)(const char*, aclrtStream)>(kToolsStart);
  const uint64_t number = real != nullptr ? real(message, stream) : 0;
  return call.outermost() ? BeginTools(number, message) : number;
}

ACLTAPE_AGENT_API void mstxRangeEnd(uint64_t id) {
  const ProgramCall call;
  auto real = RealMark<void (*)(uint64_t)>(kToolsEnd);
  if (real != nullptr && !IsOwn(id)) real(id);
  if (call.outermost()) EndMarkedRange(MarkKind::kTools, id);
}

ACLTAPE_AGENT_API void mstxDomainMarkA(void* handle, const char* message, aclrtStream stream) {
  const ProgramCall call;
  auto real = RealMark<void (*)(void*, const char*, aclrtStream)>(kToolsDomainMark);
  if (real != nullptr) real(handle, message, stream);
  if (call.outermost() && message != nullptr) MarkPlace(message);
}

ACLTAPE_AGENT_API uint64_t mstxDomainRangeStartA(void* handle, const char* message,
                                                 aclrtStream stream) {
  const ProgramCall call;
  auto real = RealMark<uint64_t (*)(void*, const char*, aclrtStream)>(kToolsDomainStart);
  const uint64_t number = real != nullptr ? real(handle, message, stream) : 0;
  return call.outermost() ? BeginTools(number, message) : number;
}

ACLTAPE_AGENT_API void mstxDomainRangeEnd(void* handle, uint64_t id) {
  const ProgramCall call;
  auto real = RealMark<void (*)(void*, uint64_t)>(kToolsDomainEnd);
  if (real != nullptr && !IsOwn(id)) real(handle, id);
  if (call.outermost()) EndMarkedRange(MarkKind::kTools, id);
}

}  // extern "C"

namespace acltape::acl_agent {

// The rows are in the order of MarkCall.
const WrappedFunction kMarkFunctions[] = {
    {"aclprofSetStampTraceMessage", reinterpret_cast<void*>(&::aclprofSetStampTraceMessage)},
    {"aclprofDestroyStamp", reinterpret_cast<void*>(&::aclprofDestroyStamp)},
    {"aclprofMark", reinterpret_cast<void*>(&::aclprofMark)},
    {"aclprofMarkEx", reinterpret_cast<void*>(&::aclprofMarkEx)},
    {"aclprofPush", reinterpret_cast<void*>(&::aclprofPush)},
    {"aclprofPop", reinterpret_cast<void*>(&::aclprofPop)},
    {"aclprofRangeStart", reinterpret_cast<void*>(&::aclprofRangeStart)},
    {"aclprofRangeStop", reinterpret_cast<void*>(&::aclprofRangeStop)},
    {"mstxMarkA", reinterpret_cast<void*>(&::mstxMarkA)},
    {"mstxRangeStartA", reinterpret_cast<void*>(&::mstxRangeStartA)},
    {"mstxRangeEnd", reinterpret_cast<void*>(&::mstxRangeEnd)},
    {"mstxDomainMarkA", reinterpret_cast<void*>(&::mstxDomainMarkA)},
    {"mstxDomainRangeStartA", reinterpret_cast<void*>(&::mstxDomainRangeStartA)},
    {"mstxDomainRangeEnd", reinterpret_cast<void*>(&::mstxDomainRangeEnd)},
    {nullptr, nullptr},
};

void ForgetMessageLocks() { g_messages.ForgetLocks(); }

}  // namespace acltape::acl_agent
