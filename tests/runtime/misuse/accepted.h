// Calls that look like misuse and are none, or whose misuse cannot be detected. The page
// docs/soft_device.md lists the misuse that is not detected.
#pragma once

namespace acltape::misuse {

// A `*` stands for any text.
struct Accepted {
  const char* function;
  const char* parameter;
  const char* misuse;
  const char* why;
};

inline constexpr Accepted kAccepted[] = {
    {"aclInit", "", "right", "the process is initialised before: INIT-02"},
    {"aclrtProcessReport", "", "right", "the thread has to be subscribed to a stream"},
    {"aclrtDevice*Peer*", "", "right", "the bench has one device"},
    {"aclprof*Pop", "", "right", "nothing was pushed"},
    {"aclopStopDumpArgs", "", "right", "nothing was begun: DMP-07"},
    {"aclmdlFinalizeDump", "", "right", "nothing was begun: DMP-02"},
    {"acldump*ExceptionInfo*", "", "right", "no dump of failed operators is on: DMP-08"},
    {"aclprofGetOp*", "", "right", "no subscription gives a description: PROF-02"},
    {"aclrtMemImportFromShareableHandle*", "", "right", "handles are for other processes: IPC-05"},
    {"aclrtBinaryLoad", "", "right", "code of the device is refused: KRN-03"},
    {"aclrtBinaryLoadFromData", "", "right", "code of the device is refused: KRN-03"},
    {"aclrtMem*Managed*", "", "right", "the product has no such memory: MEM-17"},
    {"aclrtGet*FromExceptionInfo", "", "right", "only a callback that runs has one: ERR-07"},
    {"aclSetAclOpExecutorRepeatable", "", "right", "executors need operators: tests/opapi"},
    {"aclSet*TensorAddr", "", "right", "executors need operators: tests/opapi"},
    {"aclDestroyAclOpExecutor", "", "twice", "executors need operators: tests/opapi"},

    {"aclrt*", "stream", "null", "the default stream: GEN-04"},
    {"aclrtTaskUpdateAsync", "execStream", "null", "the default stream: GEN-04"},
    {"aclmdlRIExecuteAsync", "stream", "null", "the default stream: GEN-04"},
    {"aclopCompileAndExecute*", "stream", "null", "the default stream: GEN-04"},
    {"aclprofGetStepTimestamp", "stream", "null", "the default stream: GEN-04"},
    {"aclprofMarkEx", "stream", "null", "the default stream: GEN-04"},
    {"aclrtSwitchStream", "falseStream", "null", "reserved: GEN-12"},

    {"acl*Destroy*", "*", "null", "nothing, as with free: adapters do it for absent arguments"},
    {"aclrtSetExceptionInfoCallback", "callback", "null", "takes the callback away"},

    {"aclAppLog", "*", "null", "a line without it"},
    {"acl*DataBuffer", "data", "null", "a buffer without memory: an operand that is left out"},
    {"aclrtAllocatorGetByStream", "*", "null", "outputs that are not wanted"},
    {"aclFinalizeReference", "refCount", "null", "an output that is not wanted: INIT-06"},
    {"aclrtGetPrimaryCtxState", "flags", "null", "reserved: DEV-13"},
    {"aclmdlRICaptureGetInfo", "*", "null", "one output is enough: CAP-06"},
    {"aclmdlRIGetStreams", "streams", "null", "asks for the number: ENUM-01"},
    {"aclmdlRIGetTasksByStream", "tasks", "null", "asks for the number: ENUM-04"},
    {"aclrtMemGetAddressRange", "p*", "null", "outputs that are not wanted"},
    {"aclrtReg*StateCallback", "callback", "null", "takes the callback away: CB-11"},
    {"aclrtSetDeviceTaskAbortCallback", "callback", "null", "takes the callback away: ERR-10"},
    {"*", "args", "null", "the program's own value"},
    {"*", "userData", "null", "the program's own value"},
    {"acltdtCreateQueue", "attr", "null", "the attributes that a queue has usually: QUE-01"},
    {"aclrtLaunchHostFunc", "args", "null", "the program's own value"},
    {"aclrtMalloc*Cfg", "cfg", "null", "no configuration"},
    {"aclrtMallocForTaskScheduler", "cfg", "null", "no configuration"},
    {"aclrtReserveMemAddress", "expectPtr", "null", "no wish"},
    {"aclrtBinaryLoadFrom*", "options", "null", "no options: KRN-01"},
    {"aclrtBinaryGetGlobal", "dptr", "null", "one output is enough: KRN-02"},
    {"aclrtBinaryGetGlobal", "size", "null", "one output is enough: KRN-02"},
    {"aclrtLaunchKernel*", "cfg", "null", "no configuration: KRN-04"},
    {"aclrtLaunchKernelWithConfig", "reserve", "null", "reserved: KRN-04"},
    {"aclrtKernelArgsInitByUserMem", "argsHandle", "junk*", "the program's own memory: KRN-04"},
    {"aclrtKernelArgsInitByUserMem", "argsHandle", "a* object", "the program's own memory: KRN-04"},
    {"aclrtKernelArgsFinalize", "", "twice",
     "finalizing again is asked for after an update: KRN-04"},
    {"aclrtSetMemcpyDesc", "config", "null", "reserved: CPY-14"},
    {"aclrtCmoAsyncWithDesc", "reserve", "null", "reserved: CMO-01"},
    {"aclmdlRIBuildEnd", "reserve", "null", "reserved: BLD-04"},
    {"aclrtReduceAsync", "reserve", "null", "reserved: RED-02"},
    {"aclrtRandomNumAsync", "reserve", "null", "reserved: RND-04"},
    {"aclprofCreateConfig", "*", "null", "what would be profiled is nothing here"},
    {"aclCreateTensor", "stride", "null", "a dense tensor"},
    {"aclInitTensor", "stride", "null", "a dense tensor"},
    {"aclCreateTensor", "tensorData", "null", "the memory may come later"},
    {"aclInitTensor", "tensorDataAddr", "null", "the memory may come later"},
    {"aclSetRawTensorAddr", "addr", "null", "the memory may come later"},
    {"aclnnInit", "configPath", "null", "no configuration"},
    {"aclSetTensorDescName", "name", "null", "no name"},
    {"aclopSetAttrString", "attrValue", "null", "an empty text"},
    {"aclopCompileAndExecute*", "attr", "null", "no attributes"},
    {"aclopCompileAndExecute*", "opPath", "null", "operators are compiled nowhere"},

    {"aclrtExceptionInfoCallbackUnregister", "", "twice", "succeeds: ERR-07"},
    {"aclmdlRIEndTask", "", "twice", "no rule forbids a second end task"},

    {"aclInit", "", "after finalize", "begins anew"},
    {"acl*Destroy*", "", "after finalize", "gives back: INIT-09"},
    {"acl*Free*", "", "after finalize", "gives back: INIT-09"},
    {"acl*Unregister*", "", "after finalize", "gives back: INIT-09"},
    {"aclrtUnmapMem", "", "after finalize", "gives back: INIT-09"},
    {"aclrtReleaseMemAddress", "", "after finalize", "gives back: INIT-09"},
    {"aclrtUnSubscribeReport", "", "after finalize", "gives back: INIT-09"},
    {"aclrtResetDevice*", "", "after finalize", "gives back: INIT-09"},
    {"aclrtSynchronize*", "", "after finalize", "late destructors wait: INIT-09"},
    {"acl*Finalize*", "", "after finalize", "ends what is left"},
    {"aclprofStop", "", "after finalize", "ends what is left"},
    {"aclprofModelUnSubscribe", "", "after finalize", "ends what is left"},
    {"aclopStopDumpArgs", "", "after finalize", "ends what is left"},
    {"acltdtStopChannel", "", "after finalize", "wakes who waits"},
    {"acltdtUnbindQueueRoutes", "", "after finalize", "gives back: INIT-09"},
    {"aclInitCallback*", "", "after finalize", "is for the next aclInit: INIT-10"},
    {"aclrt*LastError", "", "after finalize", "tells of errors before"},
};

}  // namespace acltape::misuse
