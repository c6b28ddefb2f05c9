#include "recorder/agent/arena_request.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "recorder/agent/clock.h"
#include "recorder/wire/arena_request.h"

namespace acltape::agent {
namespace {

constexpr uint64_t kAnswerPatienceNs = 2'000'000'000;

int MillisecondsUntil(uint64_t deadline) {
  const uint64_t now = MonotonicNs();
  return now < deadline ? static_cast<int>((deadline - now) / 1'000'000) + 1 : 0;
}

bool SendSecret(int socket, const char* text, uint64_t deadline) {
  while (send(socket, wire::SecretOf(text), wire::kSocketDigits, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    // The collector's queue is full: others ask at the same time.
    if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR) return false;
    if (MillisecondsUntil(deadline) == 0) return false;
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

// The first descriptor of a part; a second one, for which the control buffer has room, is closed.
int OnlyDescriptor(cmsghdr& part) {
  int fds[2] = {-1, -1};
  memcpy(fds, CMSG_DATA(&part),
         part.cmsg_len - CMSG_LEN(0) > sizeof(int) ? sizeof(fds) : sizeof(int));
  if (fds[1] >= 0) close(fds[1]);
  return fds[0];
}

// Takes one message from the socket. The offer has a descriptor when one came from someone who may
// answer; what a stranger sent is closed.
ArenaOffer TakeAnswer(int socket) {
  wire::ArenaAnswer answer{};
  iovec body{&answer, sizeof(answer)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t bytes = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0) return {};
  int fd = -1;
  bool trusted = false;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_RIGHTS) fd = OnlyDescriptor(*part);
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred sender;
      memcpy(&sender, CMSG_DATA(part), sizeof(sender));
      trusted = sender.uid == 0 || sender.uid == getuid();
    }
  }
  if (trusted && bytes == sizeof(answer)) return {fd, answer.pid};
  if (fd >= 0) close(fd);
  return {};
}

ArenaOffer Ask(int socket, const char* text, uint64_t deadline) {
  const int yes = 1;
  const wire::SocketAddress collector = wire::AbstractAddress(text);
  // With this option the socket gets a name of its own, to which the answer is sent. Once it is
  // connected it takes messages from the collector alone.
  if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0 ||
      connect(socket, reinterpret_cast<const sockaddr*>(&collector.address), collector.bytes) !=
          0 ||
      !SendSecret(socket, text, deadline)) {
    return {};
  }
  for (int left; (left = MillisecondsUntil(deadline)) > 0;) {
    pollfd answered{socket, POLLIN, 0};
    if (poll(&answered, 1, left) <= 0) continue;
    if ((answered.revents & POLLIN) == 0) return {};
    const ArenaOffer offer = TakeAnswer(socket);
    if (offer.fd >= 0) return offer;
  }
  return {};
}

}  // namespace

ArenaOffer AskForArena(const char* text) {
  if (strnlen(text, wire::kSocketTextBytes) != wire::kSocketTextBytes) return {};
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  const ArenaOffer offer = Ask(fd, text, MonotonicNs() + kAnswerPatienceNs);
  close(fd);
  return offer;
}

void SendNotAttached(const char* text) {
  if (strnlen(text, wire::kSocketTextBytes) != wire::kSocketTextBytes) return;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const wire::SocketAddress collector = wire::AbstractAddress(text);
  char words[wire::kSocketDigits + 1];
  memcpy(words, wire::SecretOf(text), wire::kSocketDigits);
  words[wire::kSocketDigits] = wire::kNotAttached;
  static_cast<void>(!sendto(fd, words, sizeof(words), MSG_DONTWAIT | MSG_NOSIGNAL,
                            reinterpret_cast<const sockaddr*>(&collector.address),
                            collector.bytes));
  close(fd);
}

}  // namespace acltape::agent
