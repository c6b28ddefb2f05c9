#include "replayer/acl_level/task.h"

namespace acltape::replayer::acl_level {

void Issue(const DeviceWork& work, const Transfer& copy, OnStream on) {
  if (copy.rows != 0) {
    work.CopyRows(copy.to, copy.to_pitch, copy.from, copy.from_pitch, copy.width, copy.rows,
                  copy.kind, on)
        .Check();
  } else if (copy.bytes != 0) {
    work.Copy(copy.to, copy.bytes, copy.from, copy.bytes, copy.kind, on).Check();
  }
}

void IssueMemoryWork(const DeviceWork& work, const AclTask& task, OnStream on) {
  uint8_t* to = task.copy.to;
  const size_t bytes = task.copy.bytes;
  switch (task.work) {
    case AclTask::Work::kFill:
      work.Fill(to, bytes, static_cast<int32_t>(task.value), bytes, on).Check();
      return;
    case AclTask::Work::kFill32:
      work.FillWords(to, bytes, static_cast<uint32_t>(task.value), bytes / 4, on).Check();
      return;
    case AclTask::Work::kValueWrite:
      work.WriteValue(to, task.value, task.flag, *on).Check();
      return;
    case AclTask::Work::kReduce:
      work.Reduce(to, task.copy.from, bytes, static_cast<aclrtReduceKind>(task.value),
                  static_cast<aclDataType>(task.flag), *on)
          .Check();
      return;
    case AclTask::Work::kRandom:
      work.DrawNumbers(*task.random, *on).Check();
      return;
    default:
      Issue(work, task.copy, on);
      return;
  }
}

}  // namespace acltape::replayer::acl_level
