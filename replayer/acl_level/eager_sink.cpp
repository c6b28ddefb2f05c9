#include <cstring>

#include "replayer/acl_level/work_sink.h"

namespace acltape::replayer::acl_level {

void EagerSink::Submit(int64_t stream, AclTask task) {
  if (task.content != nullptr) {
    uint8_t* piece = session_.in_flight.Piece(stream, task.copy.bytes);
    std::memcpy(piece, task.Content(), task.copy.bytes);
    task.copy.from = piece;
  }
  if (const size_t bytes = task.LandingBytes(); bytes != 0) {
    task.copy.to = session_.in_flight.Piece(stream, bytes);
  }
  session_.Issue(stream, task, AclSession::Workspaces::kShared);
  if (!session_.compare) return;
  for (const Take& take : task.takes) {
    session_.Download(stream, session_.handles.Stream(stream), take);
  }
}

}  // namespace acltape::replayer::acl_level
