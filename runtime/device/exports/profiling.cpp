// The vendor's profiling interface: what profiling_session.h collects, and ranges and marks, which
// are accepted.
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "base/hash.h"
#include "runtime/device/plain_object.h"
#include "runtime/device/profiling_session.h"

using namespace acltape::device;

struct aclprofConfig {
  uint64_t kinds;
};

struct aclprofStepInfo {};

namespace {

// A mark or range of the program, before it is reported.
struct ProfilerStamp {
  std::string message;
};

// MarkedRanges that have begun and not ended. Nested ones belong to the thread, others have
// numbers.
thread_local uint32_t pushed = 0;
struct MarkedRanges {
  std::mutex mutex;
  uint32_t newest = 0;
  std::set<uint32_t> open;
};

MarkedRanges& GetMarkedRanges() {
  static MarkedRanges& ranges = *new MarkedRanges;
  return ranges;
}

aclError CheckStamp(const void* stamp, const char* call) {
  return CheckPlain(static_cast<const ProfilerStamp*>(stamp), call, "stamp");
}

aclError PopRange(const char* call) {
  if (pushed == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: no range of this thread has begun", call);
  }
  --pushed;
  return ACL_SUCCESS;
}

}  // namespace

aclError aclprofInit(const char* profilerResultPath, size_t length) {
  ACLTAPE_CALL("aclprofInit");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(profilerResultPath, kCall, "profilerResultPath"));
  ProfilingSession::Get().Open(
      std::string(profilerResultPath, strnlen(profilerResultPath, length)));
  return ACL_SUCCESS;
}

aclError aclprofFinalize(void) {
  ProfilingSession::Get().Close();
  return ACL_SUCCESS;
}

aclprofConfig* aclprofCreateConfig(uint32_t*, uint32_t, aclprofAicoreMetrics,
                                   const aclprofAicoreEvents*, uint64_t dataTypeConfig) {
  return Plain<aclprofConfig>().Create(dataTypeConfig);
}

aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) {
  ACLTAPE_CALL("aclprofDestroyConfig");
  return DestroyPlain(profilerConfig, kCall, "profilerConfig");
}

aclError aclprofStart(const aclprofConfig* profilerConfig) {
  ACLTAPE_CALL("aclprofStart");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(profilerConfig, kCall, "profilerConfig"));
  return ProfilingSession::Get().Start() ? ACL_SUCCESS : ACL_ERROR_PROFILING_FAILURE;
}

aclError aclprofStop(const aclprofConfig* profilerConfig) {
  ACLTAPE_CALL("aclprofStop");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(profilerConfig, kCall, "profilerConfig"));
  return ProfilingSession::Get().Stop() ? ACL_SUCCESS : ACL_ERROR_PROFILING_FAILURE;
}

aclprofStepInfo* aclprofCreateStepInfo(void) { return Plain<aclprofStepInfo>().Create(); }

// Destroying NULL is nothing, as with free.
void aclprofDestroyStepInfo(aclprofStepInfo* stepinfo) {
  if (stepinfo != nullptr) DestroyPlain(stepinfo, "aclprofDestroyStepInfo", "stepinfo");
}

aclError aclprofGetStepTimestamp(aclprofStepInfo* stepInfo, aclprofStepTag, aclrtStream stream) {
  ACLTAPE_CALL("aclprofGetStepTimestamp");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(stepInfo, kCall, "stepInfo"));
  Stream* found = nullptr;
  return FindStream(stream, kCall, &found);
}

aclError aclprofSetConfig(aclprofConfigType configType, const char* config, size_t) {
  ACLTAPE_CALL("aclprofSetConfig");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(config, kCall, "config"));
  if (configType > ACL_PROF_ARGS_MIN && configType < ACL_PROF_ARGS_MAX) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no setting %d", kCall,
              static_cast<int>(configType));
}

void* aclprofCreateStamp(void) { return Plain<ProfilerStamp>().Create(); }

// Destroying NULL is nothing, as with free.
void aclprofDestroyStamp(void* stamp) {
  if (stamp != nullptr)
    DestroyPlain(static_cast<ProfilerStamp*>(stamp), "aclprofDestroyStamp", "stamp");
}

aclError aclprofSetStampTraceMessage(void* stamp, const char* msg, uint32_t msgLen) {
  ACLTAPE_CALL("aclprofSetStampTraceMessage");
  ACLTAPE_RETURN_IF_FAILED(CheckStamp(stamp, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(msg, kCall, "msg"));
  static_cast<ProfilerStamp*>(stamp)->message.assign(msg, strnlen(msg, msgLen));
  return ACL_SUCCESS;
}

aclError aclprofMark(void* stamp) {
  ACLTAPE_CALL("aclprofMark");
  return CheckStamp(stamp, kCall);
}

aclError aclprofMarkEx(const char* msg, size_t, aclrtStream stream) {
  ACLTAPE_CALL("aclprofMarkEx");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(msg, kCall, "msg"));
  Stream* found = nullptr;
  return FindStream(stream, kCall, &found);
}

aclError aclprofPush(void* stamp) {
  ACLTAPE_CALL("aclprofPush");
  ACLTAPE_RETURN_IF_FAILED(CheckStamp(stamp, kCall));
  ++pushed;
  return ACL_SUCCESS;
}

aclError aclprofPop(void) {
  ACLTAPE_CALL("aclprofPop");
  return PopRange(kCall);
}

aclError aclprofRangePushEx(aclprofEventAttributes* attr) {
  ACLTAPE_CALL("aclprofRangePushEx");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(attr, kCall, "attr"));
  ++pushed;
  return ACL_SUCCESS;
}

aclError aclprofRangePop(void) {
  ACLTAPE_CALL("aclprofRangePop");
  return PopRange(kCall);
}

aclError aclprofRangeStart(void* stamp, uint32_t* rangeId) {
  ACLTAPE_CALL("aclprofRangeStart");
  ACLTAPE_RETURN_IF_FAILED(CheckStamp(stamp, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(rangeId, kCall, "rangeId"));
  MarkedRanges& ranges = GetMarkedRanges();
  std::lock_guard lock(ranges.mutex);
  *rangeId = ++ranges.newest;
  ranges.open.insert(*rangeId);
  return ACL_SUCCESS;
}

aclError aclprofRangeStop(uint32_t rangeId) {
  ACLTAPE_CALL("aclprofRangeStop");
  MarkedRanges& ranges = GetMarkedRanges();
  std::lock_guard lock(ranges.mutex);
  if (ranges.open.erase(rangeId) != 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: no range has the number %u", kCall, rangeId);
}

// FNV-1a: equal texts have equal numbers in every process. NULL has the number 0.
uint64_t aclprofStr2Id(const char* message) {
  if (message == nullptr) {
    Fail(ACL_ERROR_INVALID_PARAM, "aclprofStr2Id: message is NULL");
    return 0;
  }
  acltape::base::Fnv1a hash;
  for (; *message != '\0'; ++message) hash.Add(static_cast<unsigned char>(*message));
  return hash.hash();
}
