#include <cstring>

#include "replayer/acl/work_sink.h"

namespace acltape::replayer {

void EagerSink::Submit(int64_t stream, AclTask task) {
  aclrtStream handle = session_.handles.Stream(stream);
  HostSides host;
  if (task.work == AclTask::Work::kUpload && task.content != nullptr) {
    uint8_t* piece = session_.in_flight.Piece(stream, task.bytes);
    std::memcpy(piece, task.content->data() + task.content_at, task.bytes);
    host.from = piece;
  }
  if (task.work == AclTask::Work::kDownload && task.to == nullptr) {
    host.to = session_.in_flight.Piece(stream, task.HostBytes());
  }
  IssueTask(session_.device, handle, task, host,
            [&](uint64_t bytes) { return session_.workspaces.Of(stream, bytes); });
  if (!session_.compare) return;
  for (const Take& take : task.takes) session_.Download(stream, handle, take);
}

void EagerSink::Record(int64_t stream, int64_t event) {
  session_.device.Check(session_.device.api().aclrtRecordEvent(session_.handles.Event(event),
                                                               session_.handles.Stream(stream)),
                        "aclrtRecordEvent");
}

void EagerSink::Wait(int64_t stream, int64_t event) {
  session_.device.Check(session_.device.api().aclrtStreamWaitEvent(session_.handles.Stream(stream),
                                                                   session_.handles.Event(event)),
                        "aclrtStreamWaitEvent");
}

void EagerSink::Reset(int64_t stream, int64_t event) {
  session_.device.Check(session_.device.api().aclrtResetEvent(session_.handles.Event(event),
                                                              session_.handles.Stream(stream)),
                        "aclrtResetEvent");
}

}  // namespace acltape::replayer
