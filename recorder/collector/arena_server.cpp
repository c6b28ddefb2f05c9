#include "recorder/collector/arena_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "recorder/wire/arena_request.h"

namespace acltape::collector {
namespace {

// "NAME:SECRET" of random digits; empty when the system gives none.
std::string RandomAddress() {
  uint64_t words[4];
  if (getrandom(words, sizeof(words), 0) != sizeof(words)) return "";
  return fmt::format("{:016x}{:016x}:{:016x}{:016x}", words[0], words[1], words[2], words[3]);
}

// A socket that hears requests under the name of `address`; -1 when the system refuses.
int Listen(const std::string& address) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  const wire::SocketAddress name = wire::AbstractAddress(address.c_str());
  if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) == 0 &&
      bind(fd, reinterpret_cast<const sockaddr*>(&name.address), name.bytes) == 0) {
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

// Takes as long wherever the first difference is.
bool SameSecret(const char* one, const char* other) {
  unsigned difference = 0;
  for (size_t i = 0; i < wire::kSocketDigits; ++i) {
    difference |= static_cast<unsigned char>(one[i] ^ other[i]);
  }
  return difference == 0;
}

// The number of the process that sent a message, 0 when it is in no namespace that we see.
uint32_t SenderOf(const cmsghdr* part) {
  if (part == nullptr || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) {
    return 0;
  }
  ucred sender;
  std::memcpy(&sender, CMSG_DATA(part), sizeof(sender));
  return static_cast<uint32_t>(sender.pid);
}

}  // namespace

ArenaServer::ArenaServer(ArenaOwner& arena)
    : arena_(arena), tells_numbers_(arena.header().pid_namespace != 0) {
  static_assert(wire::kSocketTextBytes < wire::kSocketBytes);
  const std::string address = RandomAddress();
  if (address.empty()) return;
  socket_ = Listen(address);
  if (socket_ < 0) return;
  address_ = address;
  address.copy(arena.header().socket, wire::kSocketBytes - 1);
}

ArenaServer::~ArenaServer() { Close(); }

void ArenaServer::Close() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

ArenaServer::Next ArenaServer::ServeOne() {
  char secret[wire::kSocketDigits + 2] = {};  // one more, to notice what is longer
  sockaddr_un from{};
  iovec body{secret, sizeof(secret)};
  // There is no room for descriptors that a stranger sends along; the kernel closes them.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))] = {};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof(from);
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t bytes = recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0) return Next::kNothingWaits;
  const bool complains =
      bytes == wire::kSocketDigits + 1 && secret[wire::kSocketDigits] == wire::kNotAttached;
  const bool asks = bytes == wire::kSocketDigits && message.msg_namelen != 0;
  if ((!asks && !complains) || !SameSecret(secret, wire::SecretOf(address_.c_str()))) {
    return Next::kStranger;
  }
  if (complains) {
    arena_.header().processes_not_attached.fetch_add(1);
    return Next::kServed;
  }
  const uint32_t pid = tells_numbers_ ? SenderOf(CMSG_FIRSTHDR(&message)) : 0;
  const wire::ArenaAnswer answer{pid};
  if (!wire::SendWithDescriptor(socket_, &from, message.msg_namelen, &answer, sizeof(answer),
                                arena_.fd())) {
    arena_.header().processes_unanswered.fetch_add(1);
  }
  return Next::kServed;
}

void ArenaServer::Serve(int milliseconds) {
  pollfd waiting{socket_, POLLIN, 0};  // for a closed socket, only the time counts
  if (poll(&waiting, 1, milliseconds) <= 0) return;
  constexpr int kAtOnce = 16;
  for (int i = 0; i < kAtOnce; ++i) {
    const Next next = ServeOne();
    if (next == Next::kNothingWaits) return;
    // A stranger who sends without a pause must not keep a processor busy.
    if (next == Next::kStranger) static_cast<void>(poll(nullptr, 0, 1));
  }
}

}  // namespace acltape::collector
