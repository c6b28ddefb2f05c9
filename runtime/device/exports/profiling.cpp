// Profiling and dumps of the vendor's tools: accepted, and nothing is written. A framework's
// profiler can so record what it sees itself on the host. There are no times of a device to give.
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "runtime/device/call.h"

using namespace acltape::device;

struct aclprofConfig {
  uint64_t kinds;
};

struct aclprofStepInfo {};

aclError aclprofInit(const char*, size_t) { return ACL_SUCCESS; }

aclError aclprofFinalize(void) { return ACL_SUCCESS; }

aclprofConfig* aclprofCreateConfig(uint32_t*, uint32_t, aclprofAicoreMetrics,
                                   const aclprofAicoreEvents*, uint64_t dataTypeConfig) {
  return new aclprofConfig{dataTypeConfig};
}

aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) {
  ACLTAPE_CALL("aclprofDestroyConfig");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(profilerConfig, kCall, "profilerConfig"));
  delete profilerConfig;
  return ACL_SUCCESS;
}

aclError aclprofStart(const aclprofConfig* profilerConfig) {
  ACLTAPE_CALL("aclprofStart");
  return CheckPointer(profilerConfig, kCall, "profilerConfig");
}

aclError aclprofStop(const aclprofConfig* profilerConfig) {
  ACLTAPE_CALL("aclprofStop");
  return CheckPointer(profilerConfig, kCall, "profilerConfig");
}

aclprofStepInfo* aclprofCreateStepInfo(void) { return new aclprofStepInfo; }

void aclprofDestroyStepInfo(aclprofStepInfo* stepinfo) { delete stepinfo; }

aclError aclprofGetStepTimestamp(aclprofStepInfo*, aclprofStepTag, aclrtStream) {
  return ACL_SUCCESS;
}

aclError aclmdlInitDump(void) { return ACL_SUCCESS; }

aclError aclmdlSetDump(const char*) { return ACL_SUCCESS; }

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
