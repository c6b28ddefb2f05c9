/* A profiling session around work: configuration, start, marks, ranges, stop. */
#include <unistd.h>

#include "acl/acl.h"
#include "acl/acl_prof.h"
#include "aclnnop/aclnn_add.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  char folder[] = "/tmp/acl_profile_XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  CHECK_ACL(aclprofInit(folder, strlen(folder)));
  uint32_t devices[1] = {0};
  aclprofConfig* configuration =
      aclprofCreateConfig(devices, 1, ACL_AICORE_ARITHMETIC_UTILIZATION, NULL,
                          ACL_PROF_ACL_API | ACL_PROF_TASK_TIME | ACL_PROF_MSPROFTX);
  CHECK(configuration != NULL);
  CHECK_ACL(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "200MB", 5));
  CHECK_ACL(aclprofStart(configuration));
  void* stamp = aclprofCreateStamp();
  CHECK(stamp != NULL);
  CHECK_ACL(aclprofSetStampTraceMessage(stamp, "step", 4));
  CHECK_ACL(aclprofMark(stamp));
  uint32_t range = 0;
  CHECK_ACL(aclprofPush(stamp));
  CHECK_ACL(aclprofRangeStart(stamp, &range));
  CHECK_ACL(aclprofMarkEx("work", 4, stream));
  aclprofStepInfo* step = aclprofCreateStepInfo();
  CHECK_ACL(aclprofGetStepTimestamp(step, ACL_STEP_START, stream));
  const float numbers[2] = {1, 2};
  void* x = UploadFloats(numbers, 2);
  aclTensor* tensor = MakeVector(2, x);
  aclScalar* one = MakeScalar(1);
  RUN_OP(stream, aclnnInplaceAdd, tensor, tensor, one);
  float back[2];
  DownloadFloats(back, x, 2, stream);
  CHECK(back[0] == 2 && back[1] == 4);
  CHECK_ACL(aclprofGetStepTimestamp(step, ACL_STEP_END, stream));
  aclprofDestroyStepInfo(step);
  CHECK_ACL(aclprofRangeStop(range));
  CHECK_ACL(aclprofPop());
  aclprofDestroyStamp(stamp);
  CHECK_ACL(aclprofStop(configuration));
  CHECK_ACL(aclprofDestroyConfig(configuration));
  CHECK_ACL(aclprofFinalize());
  rmdir(folder);
  CHECK_ACL(aclDestroyTensor(tensor));
  CHECK_ACL(aclDestroyScalar(one));
  CHECK_ACL(aclrtFree(x));
  return EndSession(stream);
}
