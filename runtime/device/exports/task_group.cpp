// Task groups and task update (section 16 of the rules). NULL is no default stream here (GEN-04).
#include "runtime/device/capture/task_group.h"

#include "runtime/device/call.h"

using namespace acltape::device;

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
  ACLTAPE_CALL("aclmdlRICaptureTaskGrpBegin");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  return BeginTaskGroup(*found);
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle) {
  ACLTAPE_CALL("aclmdlRICaptureTaskGrpEnd");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, kCall, "handle"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  *handle = nullptr;
  TaskGroup* group = nullptr;
  ACLTAPE_RETURN_IF_FAILED(EndTaskGroup(*found, &group));
  *handle = group->handle();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) {
  ACLTAPE_CALL("aclmdlRICaptureTaskUpdateBegin");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, kCall, "handle"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  auto* group = ObjectOf<TaskGroup>(handle, HandleKind::kTaskGroup);
  if (group == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE,
                "%s: %p is not a task group, or its model was destroyed (UPD-09)", kCall, handle);
  }
  return BeginTaskUpdate(*found, *group);
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
  ACLTAPE_CALL("aclmdlRICaptureTaskUpdateEnd");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  return EndTaskUpdate(*found);
}
