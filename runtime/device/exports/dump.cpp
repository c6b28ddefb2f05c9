// Dumps of what operators read and write (section 34 of the rules).
#include "runtime/device/dump/dump.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "acl/acl_op_compiler.h"
#include "runtime/device/call.h"
#include "runtime/device/configuration.h"

using namespace acltape::device;

namespace {

aclError CheckDumpType(uint32_t type, const char* call) {
  if (type == ACL_OP_DUMP_OP_AICORE_ARGS) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: dumpType is %u; there is only 1", call, type);
}

}  // namespace

aclError aclmdlInitDump(void) {
  ACLTAPE_CALL("aclmdlInitDump");
  if (BeginModelDump()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_ALREADY_RUN, "%s: aclInit was given settings for dumps", kCall);
}

aclError aclmdlSetDump(const char* dumpCfgPath) {
  ACLTAPE_CALL("aclmdlSetDump");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(dumpCfgPath, kCall, "dumpCfgPath"));
  std::string text;
  ACLTAPE_RETURN_IF_FAILED(ReadConfiguration(dumpCfgPath, kCall, &text));
  DumpSettings settings;
  ACLTAPE_RETURN_IF_FAILED(
      ReadDumpSettings(nlohmann::json::parse(text.empty() ? "{}" : text), kCall, &settings));
  if (SetModelDump(settings)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_NOT_RUN, "%s: call aclmdlInitDump first", kCall);
}

aclError aclmdlFinalizeDump(void) {
  ACLTAPE_CALL("aclmdlFinalizeDump");
  if (EndModelDump()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_NOT_RUN, "%s: call aclmdlInitDump first", kCall);
}

aclError acldumpRegCallback(acldumpMessageCallback messageCallback, int32_t flag) {
  ACLTAPE_CALL("acldumpRegCallback");
  ACLTAPE_RETURN_IF_FAILED(
      CheckPointer(reinterpret_cast<void*>(messageCallback), kCall, "messageCallback"));
  if (flag != 0) {
    return Fail(ACL_ERROR_FAILURE, "%s: flag is %d; only 0 is supported", kCall, flag);
  }
  SetDumpCallback(messageCallback);
  return ACL_SUCCESS;
}

void acldumpUnregCallback(void) { SetDumpCallback(nullptr); }

const char* acldumpGetPath(acldumpType dumpType) { return DumpPathOf(dumpType); }

aclError aclopStartDumpArgs(uint32_t dumpType, const char* path) {
  ACLTAPE_CALL("aclopStartDumpArgs");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(path, kCall, "path"));
  ACLTAPE_RETURN_IF_FAILED(CheckDumpType(dumpType, kCall));
  if (*path == '\0') return Fail(ACL_ERROR_INVALID_PARAM, "%s: path is empty", kCall);
  if (BeginArgumentDump(path)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_ALREADY_RUN, "%s: call aclopStopDumpArgs first", kCall);
}

aclError aclopStopDumpArgs(uint32_t dumpType) {
  ACLTAPE_CALL("aclopStopDumpArgs");
  ACLTAPE_RETURN_IF_FAILED(CheckDumpType(dumpType, kCall));
  if (EndArgumentDump()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_NOT_RUN, "%s: call aclopStartDumpArgs first", kCall);
}
