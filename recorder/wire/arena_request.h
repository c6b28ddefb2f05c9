// How a process gets the arena when it cannot open the arena's path.
//
// Note [Asking for the arena]. The path "/proc/<collector>/fd/<n>" leads nowhere for another user,
// for a process that has another /proc, and after chroot to a folder without one. Such a process
// asks. The collector has a datagram socket in the abstract namespace, whose name any process of
// the same network namespace can send to. The process sends the secret that stands beside the name
// in its environment, and gets a descriptor of the arena (SCM_RIGHTS) and the number by which the
// collector knows it, which the kernel attached to its request (SCM_CREDENTIALS).
//
// Names of sockets are public (/proc/net/unix); therefore the secret. A name is free again when its
// collector is gone, so that a stranger could answer in its place. The process takes an answer from
// root and from its own user alone, and only an arena that has the same secret.
//
// A process that could not map the arena tells so: the secret, and kNotAttached after it. It is
// not recorded, and nothing else would say that it was there.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace acltape::wire {

// The environment variable that has "NAME:SECRET", two numbers of as many hexadecimal digits.
constexpr char kSocketVariable[] = "ACLTAPE_ARENA_SOCKET";
constexpr size_t kSocketDigits = 32;
constexpr size_t kSocketTextBytes = 2 * kSocketDigits + 1;  // without the NUL

constexpr char kNotAttached = '!';

// The message that comes with the descriptor.
struct ArenaAnswer {
  uint32_t pid;  // number of the process that asked, 0 when the collector cannot see it
};

struct SocketAddress {
  sockaddr_un address;
  socklen_t bytes;
};
// The address of the name at which `text` begins. A NUL in front makes it abstract.
inline SocketAddress AbstractAddress(const char* text) {
  SocketAddress result{};
  result.address.sun_family = AF_UNIX;
  memcpy(result.address.sun_path + 1, text, kSocketDigits);
  result.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kSocketDigits);
  return result;
}

// Sends `body` and a descriptor without waiting; to whom the socket is connected where `to` is
// null.
inline bool SendWithDescriptor(int socket, sockaddr_un* to, socklen_t to_bytes, const void* body,
                               size_t body_bytes, int fd) {
  iovec part{const_cast<void*>(body), body_bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_name = to;
  message.msg_namelen = to != nullptr ? to_bytes : 0;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(body_bytes);
}

inline const char* SecretOf(const char* text) { return text + kSocketDigits + 1; }

}  // namespace acltape::wire
