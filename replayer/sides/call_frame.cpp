// Sends and receives frames of the call protocol on a socket.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "replayer/sides/call_protocol.h"

namespace acltape::replayer::sides {
namespace {

constexpr uint32_t kMagic = 0x534C4341;

struct FrameHead {
  uint32_t magic = kMagic;
  uint32_t kind = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(FrameHead) == 16);

constexpr CallMessage kMessages[] = {
    CallMessage::kOpen, CallMessage::kPrepare, CallMessage::kPerform, CallMessage::kReady,
    CallMessage::kDone, CallMessage::kResults, CallMessage::kFailed};

[[noreturn]] void Fail(const std::string& what) {
  throw Error(ErrorKind::kDevice, "the process of a side " + what + ".");
}

bool SendAll(int socket, const char* next, size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = send(socket, next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
    if (sent < 0) Fail(std::string("cannot be written to: ") + std::strerror(errno));
    next += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

// Returns the number of bytes received. It is smaller than `bytes` at the end of the stream.
size_t ReceiveAll(int socket, char* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = recv(socket, to + done, bytes - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ECONNRESET) break;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) Fail("does not answer in time");
    if (got < 0) Fail(std::string("cannot be read from: ") + std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace

bool SendFrame(int socket, CallMessage kind, std::string_view body) {
  if (body.size() > kMostFrameBytes) Fail("is sent more than a message may hold");
  FrameHead head;
  head.kind = static_cast<uint32_t>(kind);
  head.bytes = body.size();
  return SendAll(socket, reinterpret_cast<const char*>(&head), sizeof head) &&
         SendAll(socket, body.data(), body.size());
}

bool ReceiveFrame(int socket, CallFrame& frame) {
  FrameHead head;
  const size_t got = ReceiveAll(socket, reinterpret_cast<char*>(&head), sizeof head);
  if (got == 0) return false;
  if (got < sizeof head) Fail("ended inside a message");
  if (head.magic != kMagic) Fail("says something that is no message");
  const auto* kind =
      std::find(std::begin(kMessages), std::end(kMessages), static_cast<CallMessage>(head.kind));
  if (kind == std::end(kMessages)) {
    Fail("sends a message of the unknown kind " + std::to_string(head.kind));
  }
  if (head.bytes > kMostFrameBytes) {
    Fail("announces a message of " + std::to_string(head.bytes) + " bytes, more than one may hold");
  }
  frame.kind = *kind;
  frame.body.resize(head.bytes);
  if (ReceiveAll(socket, frame.body.data(), frame.body.size()) < frame.body.size()) {
    Fail("ended inside a message");
  }
  return true;
}

}  // namespace acltape::replayer::sides
