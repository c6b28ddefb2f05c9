/* The facts that a program learns about a call that failed: code, message, and that the device is well. */
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "session.h"

static void OnFault(aclrtExceptionInfo* info) { (void)info; }

int main(void) {
  aclrtStream stream = StartSession();
  CHECK_ACL(aclrtSetExceptionInfoCallback(OnFault));
  CHECK_ACL(aclrtExceptionInfoCallbackRegister(OnFault));
  CHECK(aclrtMalloc(NULL, 8, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
  const char* message = aclGetRecentErrMsg();
  CHECK(message != NULL && strlen(message) > 10);
  /* Shapes that do not fit are refused by the first phase, in a sentence. */
  const float numbers[6] = {1, 2, 3, 4, 5, 6};
  void* x = UploadFloats(numbers, 6);
  aclTensor* three = MakeVector(3, x);
  aclTensor* two = MakeVector(2, x);
  aclScalar* one = MakeScalar(1);
  uint64_t bytes = 0;
  aclOpExecutor* executor = NULL;
  CHECK(aclnnAddGetWorkspaceSize(three, two, one, three, &bytes, &executor) == 161002);
  message = aclGetRecentErrMsg();
  CHECK(message != NULL && strstr(message, "aclnnAdd") != NULL);
  aclrtErrorInfo error;
  memset(&error, 0, sizeof(error));
  CHECK_ACL(aclrtGetErrorVerbose(0, &error));
  CHECK(error.errorType == ACL_RT_NO_ERROR);
  RUN_OP(stream, aclnnAdd, three, three, one, three);
  float back[3];
  DownloadFloats(back, x, 3, stream);
  CHECK(back[0] == 2 && back[2] == 6);
  CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == aclrtGetLastError(ACL_RT_THREAD_LEVEL));
  CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == 0);
  CHECK_ACL(aclrtExceptionInfoCallbackUnregister(OnFault));
  CHECK_ACL(aclDestroyTensor(three));
  CHECK_ACL(aclDestroyTensor(two));
  CHECK_ACL(aclDestroyScalar(one));
  CHECK_ACL(aclrtFree(x));
  return EndSession(stream);
}
