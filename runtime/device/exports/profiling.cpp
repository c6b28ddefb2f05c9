// Profiling and dumps of the vendor's tools: accepted, and nothing is written. A framework's
// profiler can so record what it sees itself on the host. There are no times of a device to give.
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "runtime/device/plain_object.h"

using namespace acltape::device;

struct aclprofConfig {
  uint64_t kinds;
};

struct aclprofStepInfo {};

aclError aclprofInit(const char* profilerResultPath, size_t) {
  ACLTAPE_CALL("aclprofInit");
  return CheckPointer(profilerResultPath, kCall, "profilerResultPath");
}

aclError aclprofFinalize(void) { return ACL_SUCCESS; }

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
  return CheckPlain(profilerConfig, kCall, "profilerConfig");
}

aclError aclprofStop(const aclprofConfig* profilerConfig) {
  ACLTAPE_CALL("aclprofStop");
  return CheckPlain(profilerConfig, kCall, "profilerConfig");
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

aclError aclmdlInitDump(void) {
  ACLTAPE_CALL("aclmdlInitDump");
  return ACL_SUCCESS;
}

aclError aclmdlSetDump(const char* dumpCfgPath) {
  ACLTAPE_CALL("aclmdlSetDump");
  return CheckPointer(dumpCfgPath, kCall, "dumpCfgPath");
}

aclError aclmdlFinalizeDump(void) { return ACL_SUCCESS; }

aclError aclopStartDumpArgs(uint32_t, const char*) {
  ACLTAPE_CALL("aclopStartDumpArgs");
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: the soft device writes no dumps of arguments",
              kCall);
}

aclError aclopStopDumpArgs(uint32_t) {
  ACLTAPE_CALL("aclopStopDumpArgs");
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: the soft device writes no dumps of arguments",
              kCall);
}
