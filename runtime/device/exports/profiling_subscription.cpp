// Subscriptions of operators of a model (section 27 of the rules). They belong to offline models,
// which are not offered here, so none ever gets a description of an operator.
#include <mutex>
#include <set>

#include "acl/acl_prof.h"
#include "runtime/device/plain_object.h"

using namespace acltape::device;

struct aclprofSubscribeConfig {
  int8_t times;
  aclprofAicoreMetrics metrics;
  void* pipe;
};

namespace {

// Bytes of one description that a subscription would give.
constexpr size_t kDescriptionBytes = 512;

constexpr int32_t kMostTraceBytes = 18;
constexpr size_t kMostTaskInfoBytes = size_t{64} << 10;

struct ModelSubscriptions {
  std::mutex mutex;
  std::set<uint32_t> models;
};

ModelSubscriptions& GetModelSubscriptions() {
  static ModelSubscriptions& subscriptions = *new ModelSubscriptions;
  return subscriptions;
}

aclError NoDescription(const char* call) {
  return Fail(ACL_ERROR_INVALID_PARAM,
              "%s: opInfo is no description of an operator that a subscription gave", call);
}

}  // namespace

aclprofSubscribeConfig* aclprofCreateSubscribeConfig(int8_t timeInfoSwitch,
                                                     aclprofAicoreMetrics aicoreMetrics, void* fd) {
  constexpr const char* kCall = "aclprofCreateSubscribeConfig";
  if (CheckPointer(fd, kCall, "fd") != ACL_SUCCESS) return nullptr;
  if (timeInfoSwitch != 0 && timeInfoSwitch != 1) {
    Fail(ACL_ERROR_INVALID_PARAM, "%s: timeInfoSwitch is %d; valid: 0 and 1", kCall,
         timeInfoSwitch);
    return nullptr;
  }
  return Plain<aclprofSubscribeConfig>().Create(timeInfoSwitch, aicoreMetrics, fd);
}

aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig* profSubscribeConfig) {
  ACLTAPE_CALL("aclprofDestroySubscribeConfig");
  return DestroyPlain(profSubscribeConfig, kCall, "profSubscribeConfig");
}

// The number of the model is not looked at: programs subscribe before they load it.
aclError aclprofModelSubscribe(uint32_t modelId,
                               const aclprofSubscribeConfig* profSubscribeConfig) {
  ACLTAPE_CALL("aclprofModelSubscribe");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(profSubscribeConfig, kCall, "profSubscribeConfig"));
  if (profSubscribeConfig->times == 0 && profSubscribeConfig->metrics == ACL_AICORE_NONE) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: neither times nor metrics are asked for", kCall);
  }
  ModelSubscriptions& subscriptions = GetModelSubscriptions();
  const std::lock_guard lock(subscriptions.mutex);
  if (subscriptions.models.insert(modelId).second) return ACL_SUCCESS;
  return Fail(ACL_ERROR_PROF_REPEAT_SUBSCRIBE, "%s: model %u is subscribed already", kCall,
              modelId);
}

aclError aclprofModelUnSubscribe(uint32_t modelId) {
  ACLTAPE_CALL("aclprofModelUnSubscribe");
  ModelSubscriptions& subscriptions = GetModelSubscriptions();
  const std::lock_guard lock(subscriptions.mutex);
  if (subscriptions.models.erase(modelId) != 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: model %u is not subscribed", kCall, modelId);
}

aclError aclprofGetOpDescSize(size_t* opDescSize) {
  ACLTAPE_CALL("aclprofGetOpDescSize");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(opDescSize, kCall, "opDescSize"));
  *opDescSize = kDescriptionBytes;
  return ACL_SUCCESS;
}

aclError aclprofGetOpNum(const void*, size_t, uint32_t*) {
  ACLTAPE_CALL("aclprofGetOpNum");
  return NoDescription(kCall);
}

aclError aclprofGetOpTypeLen(const void*, size_t, uint32_t, size_t*) {
  ACLTAPE_CALL("aclprofGetOpTypeLen");
  return NoDescription(kCall);
}

aclError aclprofGetOpType(const void*, size_t, uint32_t, char*, size_t) {
  ACLTAPE_CALL("aclprofGetOpType");
  return NoDescription(kCall);
}

aclError aclprofGetOpNameLen(const void*, size_t, uint32_t, size_t*) {
  ACLTAPE_CALL("aclprofGetOpNameLen");
  return NoDescription(kCall);
}

aclError aclprofGetOpName(const void*, size_t, uint32_t, char*, size_t) {
  ACLTAPE_CALL("aclprofGetOpName");
  return NoDescription(kCall);
}

uint64_t aclprofGetOpStart(const void*, size_t, uint32_t) {
  NoDescription("aclprofGetOpStart");
  return 0;
}

uint64_t aclprofGetOpEnd(const void*, size_t, uint32_t) {
  NoDescription("aclprofGetOpEnd");
  return 0;
}

uint64_t aclprofGetOpDuration(const void*, size_t, uint32_t) {
  NoDescription("aclprofGetOpDuration");
  return 0;
}

size_t aclprofGetModelId(const void*, size_t, uint32_t) {
  NoDescription("aclprofGetModelId");
  return 0;
}

aclprofSubscribeOpFlag aclprofGetOpFlag(const void*, size_t, uint32_t) {
  NoDescription("aclprofGetOpFlag");
  return ACL_SUBSCRIBE_NONE;
}

const char* aclprofGetOpAttriValue(const void*, size_t, uint32_t, aclprofSubscribeOpAttri) {
  NoDescription("aclprofGetOpAttriValue");
  return nullptr;
}

// A point in a stream, for a profiler that is not there.
aclError aclrtProfTrace(void* userdata, int32_t length, aclrtStream stream) {
  ACLTAPE_CALL("aclrtProfTrace");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(userdata, kCall, "userdata"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  if (length > 0 && length <= kMostTraceBytes) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: length is %d; valid: 1 to %d", kCall, length,
              kMostTraceBytes);
}

// Takes what profiles would say about the newest task of the thread; the soft device ignores it.
aclError aclrtCacheLastTaskOpInfo(const void* const infoPtr, const size_t infoSize) {
  ACLTAPE_CALL("aclrtCacheLastTaskOpInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(infoPtr, kCall, "infoPtr"));
  if (infoSize > 0 && infoSize <= kMostTaskInfoBytes) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: infoSize is %zu; valid: 1 to %zu", kCall, infoSize,
              kMostTaskInfoBytes);
}
