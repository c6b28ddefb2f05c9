#include "runtime/hccl/rendezvous.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/hccl/communicator.h"
#include "runtime/hccl/sleep.h"

namespace acltape::hccl {
namespace {

constexpr char kRootMagic[] = "acltape soft root information 1";
constexpr uint32_t kAskMagic = 0x4B534148;

struct Question {
  uint32_t magic = kAskMagic;
  uint32_t ranks = 0;
  uint32_t rank = 0;
};
struct Answer {
  int32_t code = HCCL_SUCCESS;
  char text[252] = {};
};

struct Address {
  explicit Address(const std::string& name) {
    address.sun_family = AF_UNIX;
    const size_t bytes = std::min(name.size(), sizeof(address.sun_path) - 1);
    std::memcpy(address.sun_path + 1, name.data(), bytes);  // a leading 0: no file
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t size;
};

std::string Because(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

void Pause() {
  const timespec pause{0, 5'000'000};
  nanosleep(&pause, nullptr);
}

int OpenSocket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }

bool OfSameUser(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

// A question that does not come must not hold up the others.
void SetTimeout(int connection) {
  const timeval limit{5, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// Room for one descriptor beside a message.
struct WithFile {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{};
  msghdr message{};

  WithFile(void* data, size_t bytes) {
    part = {data, bytes};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
};

bool SendAnswer(int connection, const Answer& answer, int file) {
  Answer copy = answer;
  WithFile with(&copy, sizeof copy);
  if (file < 0) {
    with.message.msg_control = nullptr;
    with.message.msg_controllen = 0;
  } else {
    cmsghdr* header = CMSG_FIRSTHDR(&with.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  return sendmsg(connection, &with.message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof copy);
}

// False: the server has ended.
bool ReceiveAnswer(int connection, Answer* answer, int* file) {
  WithFile with(answer, sizeof *answer);
  *file = -1;
  if (recvmsg(connection, &with.message, MSG_CMSG_CLOEXEC) !=
      static_cast<ssize_t>(sizeof *answer)) {
    return false;
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&with.message); header != nullptr;
       header = CMSG_NXTHDR(&with.message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(file, CMSG_DATA(header), sizeof *file);
    }
  }
  return true;
}

// Answers the ranks of one meeting. The first question says how many there are.
class Server {
 public:
  explicit Server(int socket) : socket_(socket) {}

  void Run() {
    while (meeting_ == nullptr || served_ < meeting_->ranks()) {
      const int connection = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        break;
      }
      SetTimeout(connection);
      if (OfSameUser(connection)) AnswerTo(connection);
      close(connection);
    }
    close(socket_);
  }

 private:
  void AnswerTo(int connection) {
    Question question;
    if (recv(connection, &question, sizeof question, 0) != static_cast<ssize_t>(sizeof question) ||
        question.magic != kAskMagic || question.rank >= question.ranks ||
        question.ranks > Meeting::kMostRanks) {
      return;
    }
    Answer answer;
    if (meeting_ == nullptr) {
      meeting_ = Meeting::Create(question.ranks);
      given_.assign(question.ranks, false);
    }
    if (meeting_ == nullptr) {
      answer.code = HCCL_E_MEMORY;
      std::snprintf(answer.text, sizeof answer.text, "there is no shared memory for %u ranks",
                    question.ranks);
    } else if (question.ranks != meeting_->ranks()) {
      answer.code = HCCL_E_PARA;
      std::snprintf(answer.text, sizeof answer.text,
                    "rank %u says that there are %u ranks, another one says %u", question.rank,
                    question.ranks, meeting_->ranks());
    } else if (given_[question.rank]) {
      answer.code = HCCL_E_PARA;
      std::snprintf(answer.text, sizeof answer.text, "rank %u has joined already", question.rank);
    }
    const int file = answer.code == HCCL_SUCCESS ? meeting_->file() : -1;
    if (!SendAnswer(connection, answer, file) || file < 0) return;
    given_[question.rank] = true;
    ++served_;
  }

  const int socket_;
  std::shared_ptr<Meeting> meeting_;
  std::vector<bool> given_;
  uint32_t served_ = 0;
};

// The name may still be that of an earlier meeting, whose server ends a moment after its last rank
// has it: a program may destroy a communicator by then, and make it anew.
bool Bind(int socket, const Address& address) {
  const int64_t limit = Now() + ConnectionTimeout();
  while (bind(socket, address.get(), address.size) != 0) {
    if (errno != EADDRINUSE || Now() >= limit) return false;
    Pause();
  }
  return true;
}

}  // namespace

std::string Serve(const std::string& name, std::string* message) {
  std::string chosen = name;
  if (chosen.empty()) {
    uint64_t random[2] = {};
    if (getrandom(random, sizeof random, 0) < 0) random[0] = static_cast<uint64_t>(Now());
    char text[80];
    std::snprintf(text, sizeof text, "acltape-hccl-%d-%016llx%016llx", static_cast<int>(getpid()),
                  static_cast<unsigned long long>(random[0]),
                  static_cast<unsigned long long>(random[1]));
    chosen = text;
  }
  const int socket = OpenSocket();
  const Address address(chosen);
  if (socket < 0 || !Bind(socket, address) || listen(socket, SOMAXCONN) != 0) {
    *message = Because("no socket for the ranks to meet");
    if (socket >= 0) close(socket);
    return "";
  }
  std::thread([socket] { Server(socket).Run(); }).detach();
  return chosen;
}

HcclResult AskFor(const std::string& name, bool waits, uint32_t ranks, uint32_t rank,
                  std::shared_ptr<Meeting>* meeting, std::string* message) {
  const int64_t limit = Now() + ConnectionTimeout();
  const Address address(name);
  while (true) {
    const int connection = OpenSocket();
    if (connection < 0) {
      *message = Because("no socket");
      return HCCL_E_SYSCALL;
    }
    Question question;
    question.ranks = ranks;
    question.rank = rank;
    Answer answer;
    int file = -1;
    const bool answered = connect(connection, address.get(), address.size) == 0 &&
                          send(connection, &question, sizeof question, MSG_NOSIGNAL) ==
                              static_cast<ssize_t>(sizeof question) &&
                          ReceiveAnswer(connection, &answer, &file);
    close(connection);
    if (answered && answer.code != HCCL_SUCCESS) {
      *message = answer.text;
      return static_cast<HcclResult>(answer.code);
    }
    if (answered) {
      *meeting = file < 0 ? nullptr : Meeting::Attach(file);
      if (*meeting != nullptr) return HCCL_SUCCESS;
      *message = "the memory of the meeting cannot be mapped";
      return HCCL_E_MEMORY;
    }
    if (!waits) {
      *message = "the process that made the root information has ended, or all ranks have joined";
      return HCCL_E_TCP_CONNECT;
    }
    if (Now() >= limit) {
      *message = "rank 0 of the group did not begin within the time of HCCL_CONNECT_TIMEOUT";
      return HCCL_E_TIMEOUT;
    }
    Pause();
  }
}

void WriteRootInfo(const std::string& name, HcclRootInfo* info) {
  *info = HcclRootInfo{};
  std::snprintf(info->internal, sizeof info->internal, "%s\n%s", kRootMagic, name.c_str());
}

std::string ReadRootInfo(const HcclRootInfo& info) {
  const size_t magic = sizeof kRootMagic - 1;
  if (std::memcmp(info.internal, kRootMagic, magic) != 0 || info.internal[magic] != '\n') return "";
  const char* begin = info.internal + magic + 1;
  return {begin, std::find(begin, std::end(info.internal), '\0')};
}

}  // namespace acltape::hccl
