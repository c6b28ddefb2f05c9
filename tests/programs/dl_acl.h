/*
 * The ACL functions by dlopen and dlsym instead of a link: after this header each call of a listed
 * function looks the name up in the libraries, which are opened before main. A missing library or
 * function ends the program with a message.
 *
 * Include it after the ACL headers: they declare the types of the functions.
 */
#ifndef DL_ACL_H_
#define DL_ACL_H_

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void* dl_acl_libraries[3];

__attribute__((constructor)) static void DlAclOpen(void) {
  static const char* const kNames[] = {"libascendcl.so", "libnnopbase.so", "libopapi.so"};
  for (int i = 0; i < 3; ++i) {
    dl_acl_libraries[i] = dlopen(kNames[i], RTLD_LAZY);
    if (dl_acl_libraries[i] == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      exit(1);
    }
  }
}

static inline void* DlAclFind(const char* name) {
  for (int i = 0; i < 3; ++i) {
    void* found = dlsym(dl_acl_libraries[i], name);
    if (found != NULL) return found;
  }
  fprintf(stderr, "no ACL library has %s\n", name);
  exit(1);
}

/* A macro's own name is left alone in its expansion, so the type is that of the declaration. */
#define DL_ACL(name) (*(__typeof__(&name))DlAclFind(#name))

/* libascendcl.so */
#define aclDataTypeSize DL_ACL(aclDataTypeSize)
#define aclFinalize DL_ACL(aclFinalize)
#define aclFloat16ToFloat DL_ACL(aclFloat16ToFloat)
#define aclFloatToFloat16 DL_ACL(aclFloatToFloat16)
#define aclGetRecentErrMsg DL_ACL(aclGetRecentErrMsg)
#define aclInit DL_ACL(aclInit)
#define acldumpGetPath DL_ACL(acldumpGetPath)
#define acldumpRegCallback DL_ACL(acldumpRegCallback)
#define acldumpUnregCallback DL_ACL(acldumpUnregCallback)
#define aclmdlRICaptureBegin DL_ACL(aclmdlRICaptureBegin)
#define aclmdlRICaptureEnd DL_ACL(aclmdlRICaptureEnd)
#define aclmdlRICaptureGetInfo DL_ACL(aclmdlRICaptureGetInfo)
#define aclmdlRICaptureTaskGrpBegin DL_ACL(aclmdlRICaptureTaskGrpBegin)
#define aclmdlRICaptureTaskGrpEnd DL_ACL(aclmdlRICaptureTaskGrpEnd)
#define aclmdlRICaptureTaskUpdateBegin DL_ACL(aclmdlRICaptureTaskUpdateBegin)
#define aclmdlRICaptureTaskUpdateEnd DL_ACL(aclmdlRICaptureTaskUpdateEnd)
#define aclmdlRIDestroy DL_ACL(aclmdlRIDestroy)
#define aclmdlRIExecuteAsync DL_ACL(aclmdlRIExecuteAsync)
#define aclrtCreateEventExWithFlag DL_ACL(aclrtCreateEventExWithFlag)
#define aclrtCreateEventWithFlag DL_ACL(aclrtCreateEventWithFlag)
#define aclrtCreateStream DL_ACL(aclrtCreateStream)
#define aclrtCreateStreamWithConfig DL_ACL(aclrtCreateStreamWithConfig)
#define aclrtDestroyEvent DL_ACL(aclrtDestroyEvent)
#define aclrtDestroyStream DL_ACL(aclrtDestroyStream)
#define aclrtEventElapsedTime DL_ACL(aclrtEventElapsedTime)
#define aclrtFree DL_ACL(aclrtFree)
#define aclrtFreeHost DL_ACL(aclrtFreeHost)
#define aclrtGetCurrentContext DL_ACL(aclrtGetCurrentContext)
#define aclrtGetDeviceCount DL_ACL(aclrtGetDeviceCount)
#define aclrtGetLastError DL_ACL(aclrtGetLastError)
#define aclrtGetMemInfo DL_ACL(aclrtGetMemInfo)
#define aclrtHostRegister DL_ACL(aclrtHostRegister)
#define aclrtHostUnregister DL_ACL(aclrtHostUnregister)
#define aclrtLaunchCallback DL_ACL(aclrtLaunchCallback)
#define aclrtLaunchHostFunc DL_ACL(aclrtLaunchHostFunc)
#define aclrtMalloc DL_ACL(aclrtMalloc)
#define aclrtMallocHost DL_ACL(aclrtMallocHost)
#define aclrtMemcpy DL_ACL(aclrtMemcpy)
#define aclrtMemcpy2d DL_ACL(aclrtMemcpy2d)
#define aclrtMemcpy2dAsync DL_ACL(aclrtMemcpy2dAsync)
#define aclrtMemcpyAsync DL_ACL(aclrtMemcpyAsync)
#define aclrtMemset DL_ACL(aclrtMemset)
#define aclrtMemsetAsync DL_ACL(aclrtMemsetAsync)
#define aclrtPeekAtLastError DL_ACL(aclrtPeekAtLastError)
#define aclrtPointerGetAttributes DL_ACL(aclrtPointerGetAttributes)
#define aclrtProcessReport DL_ACL(aclrtProcessReport)
#define aclrtQueryEventStatus DL_ACL(aclrtQueryEventStatus)
#define aclrtRecordEvent DL_ACL(aclrtRecordEvent)
#define aclrtResetDevice DL_ACL(aclrtResetDevice)
#define aclrtResetDeviceForce DL_ACL(aclrtResetDeviceForce)
#define aclrtResetEvent DL_ACL(aclrtResetEvent)
#define aclrtSetCurrentContext DL_ACL(aclrtSetCurrentContext)
#define aclrtSetDevice DL_ACL(aclrtSetDevice)
#define aclrtSetStreamFailureMode DL_ACL(aclrtSetStreamFailureMode)
#define aclrtStreamWaitEvent DL_ACL(aclrtStreamWaitEvent)
#define aclrtSubscribeReport DL_ACL(aclrtSubscribeReport)
#define aclrtSynchronizeDevice DL_ACL(aclrtSynchronizeDevice)
#define aclrtSynchronizeEvent DL_ACL(aclrtSynchronizeEvent)
#define aclrtSynchronizeStream DL_ACL(aclrtSynchronizeStream)
#define aclrtSynchronizeStreamWithTimeout DL_ACL(aclrtSynchronizeStreamWithTimeout)
#define aclrtUnSubscribeReport DL_ACL(aclrtUnSubscribeReport)
#define acltdtAddDataItem DL_ACL(acltdtAddDataItem)
#define acltdtAddQueueRoute DL_ACL(acltdtAddQueueRoute)
#define acltdtBindQueueRoutes DL_ACL(acltdtBindQueueRoutes)
#define acltdtCreateChannelWithCapacity DL_ACL(acltdtCreateChannelWithCapacity)
#define acltdtCreateDataItem DL_ACL(acltdtCreateDataItem)
#define acltdtCreateDataset DL_ACL(acltdtCreateDataset)
#define acltdtCreateQueue DL_ACL(acltdtCreateQueue)
#define acltdtCreateQueueAttr DL_ACL(acltdtCreateQueueAttr)
#define acltdtCreateQueueRoute DL_ACL(acltdtCreateQueueRoute)
#define acltdtCreateQueueRouteList DL_ACL(acltdtCreateQueueRouteList)
#define acltdtCreateQueueRouteQueryInfo DL_ACL(acltdtCreateQueueRouteQueryInfo)
#define acltdtDequeueData DL_ACL(acltdtDequeueData)
#define acltdtDestroyChannel DL_ACL(acltdtDestroyChannel)
#define acltdtDestroyDataItem DL_ACL(acltdtDestroyDataItem)
#define acltdtDestroyDataset DL_ACL(acltdtDestroyDataset)
#define acltdtDestroyQueue DL_ACL(acltdtDestroyQueue)
#define acltdtDestroyQueueAttr DL_ACL(acltdtDestroyQueueAttr)
#define acltdtDestroyQueueRoute DL_ACL(acltdtDestroyQueueRoute)
#define acltdtDestroyQueueRouteList DL_ACL(acltdtDestroyQueueRouteList)
#define acltdtDestroyQueueRouteQueryInfo DL_ACL(acltdtDestroyQueueRouteQueryInfo)
#define acltdtEnqueueData DL_ACL(acltdtEnqueueData)
#define acltdtGetDataAddrFromItem DL_ACL(acltdtGetDataAddrFromItem)
#define acltdtGetDataItem DL_ACL(acltdtGetDataItem)
#define acltdtGetDataSizeFromItem DL_ACL(acltdtGetDataSizeFromItem)
#define acltdtGetDataTypeFromItem DL_ACL(acltdtGetDataTypeFromItem)
#define acltdtGetDatasetSize DL_ACL(acltdtGetDatasetSize)
#define acltdtGetDimNumFromItem DL_ACL(acltdtGetDimNumFromItem)
#define acltdtGetDimsFromItem DL_ACL(acltdtGetDimsFromItem)
#define acltdtGetQueueRouteNum DL_ACL(acltdtGetQueueRouteNum)
#define acltdtGetTensorTypeFromItem DL_ACL(acltdtGetTensorTypeFromItem)
#define acltdtQueryChannelSize DL_ACL(acltdtQueryChannelSize)
#define acltdtQueryQueueRoutes DL_ACL(acltdtQueryQueueRoutes)
#define acltdtReceiveTensor DL_ACL(acltdtReceiveTensor)
#define acltdtSendTensor DL_ACL(acltdtSendTensor)
#define acltdtSetQueueAttr DL_ACL(acltdtSetQueueAttr)
#define acltdtSetQueueRouteQueryInfo DL_ACL(acltdtSetQueueRouteQueryInfo)
#define acltdtStopChannel DL_ACL(acltdtStopChannel)
#define acltdtUnbindQueueRoutes DL_ACL(acltdtUnbindQueueRoutes)

/* libnnopbase.so */
#define aclCreateIntArray DL_ACL(aclCreateIntArray)
#define aclDestroyIntArray DL_ACL(aclDestroyIntArray)
#define aclCreateScalar DL_ACL(aclCreateScalar)
#define aclCreateTensor DL_ACL(aclCreateTensor)
#define aclCreateTensorList DL_ACL(aclCreateTensorList)
#define aclDestroyAclOpExecutor DL_ACL(aclDestroyAclOpExecutor)
#define aclDestroyScalar DL_ACL(aclDestroyScalar)
#define aclDestroyTensor DL_ACL(aclDestroyTensor)
#define aclDestroyTensorList DL_ACL(aclDestroyTensorList)
#define aclSetAclOpExecutorRepeatable DL_ACL(aclSetAclOpExecutorRepeatable)
#define aclSetDynamicInputTensorAddr DL_ACL(aclSetDynamicInputTensorAddr)
#define aclSetInputTensorAddr DL_ACL(aclSetInputTensorAddr)
#define aclSetOutputTensorAddr DL_ACL(aclSetOutputTensorAddr)

/* libopapi.so */
#define aclnnAbs DL_ACL(aclnnAbs)
#define aclnnAbsGetWorkspaceSize DL_ACL(aclnnAbsGetWorkspaceSize)
#define aclnnAdd DL_ACL(aclnnAdd)
#define aclnnAddGetWorkspaceSize DL_ACL(aclnnAddGetWorkspaceSize)
#define aclnnCast DL_ACL(aclnnCast)
#define aclnnCastGetWorkspaceSize DL_ACL(aclnnCastGetWorkspaceSize)
#define aclnnCat DL_ACL(aclnnCat)
#define aclnnCatGetWorkspaceSize DL_ACL(aclnnCatGetWorkspaceSize)
#define aclnnIndexSelect DL_ACL(aclnnIndexSelect)
#define aclnnIndexSelectGetWorkspaceSize DL_ACL(aclnnIndexSelectGetWorkspaceSize)
#define aclnnAdds DL_ACL(aclnnAdds)
#define aclnnAddsGetWorkspaceSize DL_ACL(aclnnAddsGetWorkspaceSize)
#define aclnnInplaceAdd DL_ACL(aclnnInplaceAdd)
#define aclnnInplaceAddGetWorkspaceSize DL_ACL(aclnnInplaceAddGetWorkspaceSize)
#define aclnnInplaceAdds DL_ACL(aclnnInplaceAdds)
#define aclnnInplaceAddsGetWorkspaceSize DL_ACL(aclnnInplaceAddsGetWorkspaceSize)
#define aclnnInplaceMul DL_ACL(aclnnInplaceMul)
#define aclnnInplaceMulGetWorkspaceSize DL_ACL(aclnnInplaceMulGetWorkspaceSize)
#define aclnnInplaceMuls DL_ACL(aclnnInplaceMuls)
#define aclnnInplaceMulsGetWorkspaceSize DL_ACL(aclnnInplaceMulsGetWorkspaceSize)
#define aclnnMatmul DL_ACL(aclnnMatmul)
#define aclnnMatmulGetWorkspaceSize DL_ACL(aclnnMatmulGetWorkspaceSize)
#define aclnnMul DL_ACL(aclnnMul)
#define aclnnMulGetWorkspaceSize DL_ACL(aclnnMulGetWorkspaceSize)
#define aclnnMuls DL_ACL(aclnnMuls)
#define aclnnMulsGetWorkspaceSize DL_ACL(aclnnMulsGetWorkspaceSize)
#define aclnnRelu DL_ACL(aclnnRelu)
#define aclnnReluGetWorkspaceSize DL_ACL(aclnnReluGetWorkspaceSize)
#define aclnnSoftmax DL_ACL(aclnnSoftmax)
#define aclnnSoftmaxGetWorkspaceSize DL_ACL(aclnnSoftmaxGetWorkspaceSize)
#define aclnnSub DL_ACL(aclnnSub)
#define aclnnSubGetWorkspaceSize DL_ACL(aclnnSubGetWorkspaceSize)
#define aclnnMm DL_ACL(aclnnMm)
#define aclnnMmGetWorkspaceSize DL_ACL(aclnnMmGetWorkspaceSize)
#define aclnnMatmulWeightNz DL_ACL(aclnnMatmulWeightNz)
#define aclnnMatmulWeightNzGetWorkspaceSize DL_ACL(aclnnMatmulWeightNzGetWorkspaceSize)
#define aclnnInplaceCopy DL_ACL(aclnnInplaceCopy)
#define aclnnInplaceCopyGetWorkspaceSize DL_ACL(aclnnInplaceCopyGetWorkspaceSize)
#define aclnnNpuFormatCast DL_ACL(aclnnNpuFormatCast)
#define aclnnNpuFormatCastGetWorkspaceSize DL_ACL(aclnnNpuFormatCastGetWorkspaceSize)
#define aclnnTransMatmulWeight DL_ACL(aclnnTransMatmulWeight)
#define aclnnTransMatmulWeightGetWorkspaceSize DL_ACL(aclnnTransMatmulWeightGetWorkspaceSize)
#define aclnnNpuFormatCastCalculateSizeAndFormat DL_ACL(aclnnNpuFormatCastCalculateSizeAndFormat)
#define aclnnCalculateMatmulWeightSizeV2 DL_ACL(aclnnCalculateMatmulWeightSizeV2)

#endif /* DL_ACL_H_ */
