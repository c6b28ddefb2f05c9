#include "replayer/sides/call_server.h"

#include <exception>
#include <memory>

#include "replayer/sides/call_executor.h"
#include "replayer/sides/call_protocol.h"

namespace acltape::replayer::sides {
namespace {

CallExecutor& Opened(const std::unique_ptr<CallExecutor>& executor) {
  if (executor != nullptr) return *executor;
  throw Error(ErrorKind::kUsage, "the side was not opened");
}

// Answers one request. Returns false if the other end is gone.
bool Answer(int socket, const CallFrame& request, std::unique_ptr<CallExecutor>& executor) {
  switch (request.kind) {
    case CallMessage::kOpen:
      executor = std::make_unique<CallExecutor>(DecodeOpen(request.body));
      return SendFrame(socket, CallMessage::kReady, EncodeText(executor->Description()));
    case CallMessage::kPrepare:
      Opened(executor).Prepare(DecodePrepare(request.body));
      return SendFrame(socket, CallMessage::kDone, {});
    case CallMessage::kPerform:
      return SendFrame(socket, CallMessage::kResults,
                       EncodeResults(Opened(executor).Perform(DecodePerform(request.body))));
    default:
      throw Error(ErrorKind::kDevice, "a side was sent an answer");
  }
}

}  // namespace

int ServeCalls(int socket) {
  std::unique_ptr<CallExecutor> executor;
  for (CallFrame request; ReceiveFrame(socket, request);) {
    bool heard = false;
    try {
      heard = Answer(socket, request, executor);
    } catch (const std::exception& failure) {
      heard = SendFrame(socket, CallMessage::kFailed, EncodeText(failure.what()));
    }
    if (!heard) break;
  }
  return 0;
}

}  // namespace acltape::replayer::sides
