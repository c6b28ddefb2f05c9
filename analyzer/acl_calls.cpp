#include "analyzer/acl_calls.h"

#include <unordered_map>

namespace acltape::analyzer {
namespace {

using K = AclCallKind;

constexpr AclFunction kFunctions[] = {
    // name, kind, stream, object, detail, done
    {"aclrtMemcpy", K::kCopy, -1, 0, 4},
    {"aclrtMemcpyAsync", K::kCopyAsync, 5, 0, 4},
    {"aclrtMemcpy2d", K::kCopy2d, -1, 0, 6},
    {"aclrtMemcpy2dAsync", K::kCopy2dAsync, 7, 0, 6},
    {"aclrtMemset", K::kFill, -1, 0},
    {"aclrtMemsetAsync", K::kFillAsync, 4, 0},
    {"aclrtMemsetD32", K::kFill32, -1, 0},
    {"aclrtMemsetD32Async", K::kFill32Async, 4, 0},
    {"aclrtValueWrite", K::kValueWrite, 3, 0, 2},
    {"aclrtValueWait", K::kValueWait, 3, 0, 2},

    {"aclrtCreateStream", K::kStreamCreate, 0},
    {"aclrtCreateStreamV2", K::kStreamCreate, 0},
    {"aclrtCreateStreamWithConfig", K::kStreamCreate, 0},
    {"aclrtDestroyStream", K::kStreamDestroy, 0},
    {"aclrtDestroyStreamForce", K::kStreamDestroy, 0},
    {"aclrtCreateEvent", K::kEventCreate, -1, 0},
    {"aclrtCreateEventWithFlag", K::kEventCreate, -1, 0, 1},
    {"aclrtCreateEventExWithFlag", K::kEventCreate, -1, 0, 1},
    {"aclrtDestroyEvent", K::kEventDestroy, -1, 0},
    {"aclrtCreateNotify", K::kNotifyCreate, -1, 0, 1},
    {"aclrtDestroyNotify", K::kNotifyDestroy, -1, 0},

    {"aclrtRecordEvent", K::kEventRecord, 1, 0},
    {"aclrtRecordEventWithFlag", K::kEventRecord, 1, 0, 2},
    {"aclrtStreamWaitEvent", K::kEventWait, 0, 1},
    {"aclrtStreamWaitEventWithFlag", K::kEventWait, 0, 1, 3},
    {"aclrtStreamWaitEventWithTimeout", K::kEventWait, 0, 1},
    {"aclrtResetEvent", K::kEventReset, 1, 0},
    {"aclrtRecordNotify", K::kNotifyRecord, 1, 0},
    {"aclrtWaitAndResetNotify", K::kNotifyWait, 1, 0},

    {"aclrtSynchronizeDevice", K::kDeviceSync},
    {"aclrtSynchronizeDeviceWithTimeout", K::kDeviceSync},
    {"aclrtFreeWithDevSync", K::kDeviceSync},
    {"aclrtFreeHostWithDevSync", K::kDeviceSync},
    {"aclrtSynchronizeStream", K::kStreamSync, 0},
    {"aclrtSynchronizeStreamWithTimeout", K::kStreamSync, 0},
    {"aclrtSynchronizeEvent", K::kEventSync, -1, 0},
    {"aclrtSynchronizeEventWithTimeout", K::kEventSync, -1, 0},
    {"aclrtStreamQuery", K::kStreamQuery, 0, -1, 1, 0},
    {"aclrtQueryEvent", K::kEventQuery, -1, 0, 1, 0},
    {"aclrtQueryEventStatus", K::kEventQuery, -1, 0, 1, 1},
    {"aclrtEventElapsedTime", K::kEventTime, -1, 1, 2},
    {"aclrtEventGetTimestamp", K::kEventTime, -1, 0},

    {"aclmdlRICaptureBegin", K::kCaptureBegin, 0},
    {"aclmdlRICaptureEnd", K::kCaptureEnd, 0, 1},
    {"aclmdlRICaptureTaskGrpBegin", K::kGroupBegin, 0},
    {"aclmdlRICaptureTaskGrpEnd", K::kGroupEnd, 0, 1},
    {"aclmdlRICaptureTaskUpdateBegin", K::kUpdateBegin, 0, 1},
    {"aclmdlRICaptureTaskUpdateEnd", K::kUpdateEnd, 0},
    {"aclmdlRIExecuteAsync", K::kExecute, 1, 0},
    {"aclmdlRIDestroy", K::kModelDestroy, -1, 0},

    {"aclrtLaunchHostFunc", K::kHostFunction, 0},
    {"aclrtLaunchCallback", K::kHostFunction, 3},

    {"aclrtMalloc", K::kMemory, -1, 0},
    {"aclrtMallocAlign32", K::kMemory, -1, 0},
    {"aclrtMallocCached", K::kMemory, -1, 0},
    {"aclrtMallocWithCfg", K::kMemory, -1, 0},
    {"aclrtMallocHost", K::kMemory, -1, 0},
    {"aclrtMallocHostWithCfg", K::kMemory, -1, 0},
    {"aclrtFree", K::kMemory, -1, 0},
    {"aclrtFreeHost", K::kMemory, -1, 0},
    {"aclrtMemFlush", K::kMemory, -1, 0},
    {"aclrtMemInvalidate", K::kMemory, -1, 0},
    {"aclrtHostRegister", K::kMemory, -1, 0},
    {"aclrtHostRegisterV2", K::kMemory, -1, 0},
    {"aclrtHostUnregister", K::kMemory, -1, 0},
    {"aclrtReserveMemAddress", K::kMemory, -1, 0},
    {"aclrtReleaseMemAddress", K::kMemory, -1, 0},
    {"aclrtMallocPhysical", K::kMemory},
    {"aclrtFreePhysical", K::kMemory},
    {"aclrtMapMem", K::kMemory, -1, 0},
    {"aclrtUnmapMem", K::kMemory, -1, 0},
    {"aclrtMemSetAccess", K::kMemory, -1, 0},

    {"aclInit", K::kNoEffect},
    {"aclFinalize", K::kNoEffect},
    {"aclFinalizeReference", K::kNoEffect},
    {"aclnnInit", K::kNoEffect},
    {"aclnnFinalize", K::kNoEffect},
    {"aclAppLog", K::kNoEffect},
    {"aclDataTypeSize", K::kNoEffect},
    {"aclFloat16ToFloat", K::kNoEffect},
    {"aclFloatToFloat16", K::kNoEffect},
    {"aclUpdateDataBuffer", K::kNoEffect},
    {"aclrtSetDevice", K::kNoEffect},
    {"aclrtResetDevice", K::kNoEffect},
    {"aclrtResetDeviceForce", K::kNoEffect},
    {"aclrtCreateContext", K::kNoEffect},
    {"aclrtDestroyContext", K::kNoEffect},
    {"aclrtSetCurrentContext", K::kNoEffect},
    {"aclrtCtxGetCurrentDefaultStream", K::kNoEffect},
    {"aclrtCtxGetSysParamOpt", K::kNoEffect},
    {"aclrtCtxSetSysParamOpt", K::kNoEffect},
    {"aclrtSetSysParamOpt", K::kNoEffect},
    {"aclrtDeviceCanAccessPeer", K::kNoEffect},
    {"aclrtDeviceEnablePeerAccess", K::kNoEffect},
    {"aclrtDeviceDisablePeerAccess", K::kNoEffect},
    {"aclrtDevicePeerAccessStatus", K::kNoEffect},
    {"aclrtQueryDeviceStatus", K::kNoEffect},
    {"aclrtQueryEventWaitStatus", K::kNoEffect},
    {"aclrtSetDeviceResLimit", K::kNoEffect},
    {"aclrtResetDeviceResLimit", K::kNoEffect},
    {"aclrtSetStreamResLimit", K::kNoEffect},
    {"aclrtResetStreamResLimit", K::kNoEffect},
    {"aclrtUseStreamResInCurrentThread", K::kNoEffect},
    {"aclrtUnuseStreamResInCurrentThread", K::kNoEffect},
    {"aclrtSetStreamAttribute", K::kNoEffect},
    {"aclrtSetStreamFailureMode", K::kNoEffect},
    {"aclrtSetStreamConfigOpt", K::kNoEffect},
    {"aclrtSetOpWaitTimeout", K::kNoEffect},
    {"aclrtSetDeviceSatMode", K::kNoEffect},
    {"aclrtSetStreamOverflowSwitch", K::kNoEffect},
    {"aclrtResetOverflowStatus", K::kNoEffect},
    {"aclrtResetFloatOverflowStatus", K::kNoEffect},
    {"aclrtSetOpExecuteTimeOut", K::kNoEffect},
    {"aclrtSetOpExecuteTimeOutWithMs", K::kNoEffect},
    {"aclrtSetOpExecuteTimeOutV2", K::kNoEffect},
    {"aclrtCreateStreamConfigHandle", K::kNoEffect},
    {"aclrtDestroyStreamConfigHandle", K::kNoEffect},
    {"aclrtHostGetDevicePointer", K::kNoEffect},
    {"aclrtMemGetAddressRange", K::kNoEffect},
    {"aclrtMemGetAllocationGranularity", K::kNoEffect},
    {"aclrtSubscribeReport", K::kNoEffect},
    {"aclrtUnSubscribeReport", K::kNoEffect},
    {"aclrtProcessReport", K::kNoEffect},
    {"aclrtSubscribeHostFunc", K::kNoEffect},
    {"aclrtUnSubscribeHostFunc", K::kNoEffect},
    {"aclrtProcessHostFunc", K::kNoEffect},
    {"aclrtSetExceptionInfoCallback", K::kNoEffect},
    {"aclrtExceptionInfoCallbackRegister", K::kNoEffect},
    {"aclrtExceptionInfoCallbackUnregister", K::kNoEffect},
    {"aclmdlRICaptureGetInfo", K::kNoEffect},
    {"aclmdlRICaptureThreadExchangeMode", K::kNoEffect},
    {"aclmdlRISetName", K::kNoEffect},
    {"aclmdlRIGetName", K::kNoEffect},
    {"aclmdlRIGetId", K::kNoEffect},
    {"aclmdlRIGetStreams", K::kNoEffect},
    {"aclmdlRIGetTasksByStream", K::kNoEffect},
    {"aclmdlRITaskGetType", K::kNoEffect},
    {"aclmdlRITaskGetSeqId", K::kNoEffect},
    {"aclmdlRITaskGetParams", K::kNoEffect},
    {"aclmdlRIDebugPrint", K::kNoEffect},
    {"aclmdlRIDebugJsonPrint", K::kNoEffect},
    {"aclmdlRIDestroyRegisterCallback", K::kNoEffect},
    {"aclmdlRIDestroyUnregisterCallback", K::kNoEffect},
};

// Name prefixes of functions that only query or describe.
constexpr std::string_view kNoEffectPrefixes[] = {
    "aclGet",          "aclrtGet",  "aclrtPeek",  "aclrtStreamGet", "aclrtDeviceGet",
    "aclrtPointerGet", "aclCreate", "aclDestroy", "aclInitTensor",  "aclSet",
    "aclrtAllocator",  "aclprof",   "aclsys",     "aclrtNotifyGet",
};

}  // namespace

const AclFunction& FindAclFunction(std::string_view name) {
  static const auto* const rows = [] {
    auto* map = new std::unordered_map<std::string_view, const AclFunction*>;
    for (const AclFunction& row : kFunctions) map->emplace(row.name, &row);
    return map;
  }();
  static constexpr AclFunction kOperatorRow = {"", K::kOperator};
  static constexpr AclFunction kNoEffectRow = {"", K::kNoEffect};
  static constexpr AclFunction kUnknownRow;
  const auto found = rows->find(name);
  if (found != rows->end()) return *found->second;
  if (name.starts_with("aclnn")) return kOperatorRow;
  for (const std::string_view prefix : kNoEffectPrefixes) {
    if (name.starts_with(prefix)) return kNoEffectRow;
  }
  return kUnknownRow;
}

bool WaitsOnHost(AclCallKind kind) {
  switch (kind) {
    case K::kCopy:
    case K::kCopy2d:
    case K::kFill:
    case K::kFill32:
    case K::kStreamDestroy:
    case K::kDeviceSync:
    case K::kStreamSync:
    case K::kEventSync:
    case K::kStreamQuery:
    case K::kEventQuery:
    case K::kEventTime:
      return true;
    default:
      return false;
  }
}

bool RepeatsWithTheStep(AclCallKind kind) {
  switch (kind) {
    case K::kStreamQuery:
    case K::kEventCreate:
    case K::kEventDestroy:
    case K::kEventQuery:
    case K::kMemory:
    case K::kNoEffect:
    case K::kUnknown:
      return false;
    default:
      return true;
  }
}

bool IsDeviceWork(AclCallKind kind) { return kind >= K::kOperator && kind <= K::kValueWait; }

}  // namespace acltape::analyzer
