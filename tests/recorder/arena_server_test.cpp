// Who gets the arena of a collector by asking for it, and who does not.
#include "recorder/collector/arena_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "recorder/agent/arena_request.h"
#include "recorder/wire/arena_request.h"
#include "recorder/wire/clock.h"

namespace acltape::test {
namespace {

constexpr unsigned kNobody = 65534;

class ArenaServerTest : public ::testing::Test {
 protected:
  ArenaServerTest() : arena_(Options()), server_(arena_) {}
  ~ArenaServerTest() override { Stop(); }

  static collector::ArenaOptions Options() {
    collector::ArenaOptions options;
    options.slots = 1;
    options.ring_bytes = 64 << 10;
    return options;
  }
  void Start() {
    serving_ = std::thread([this] {
      while (!stop_.load()) server_.Serve(25);
    });
  }
  void Stop() {
    stop_.store(true);
    if (serving_.joinable()) serving_.join();
  }
  agent::ArenaOffer Ask() const { return agent::AskForArena(server_.address().c_str()); }
  // Closes the offer's descriptor. True when it was the arena's.
  bool IsTheArena(const agent::ArenaOffer& offer) const {
    struct stat offered {};
    struct stat own {};
    const bool same = fstat(offer.fd, &offered) == 0 && fstat(arena_.fd(), &own) == 0 &&
                      offered.st_ino == own.st_ino && offered.st_dev == own.st_dev;
    if (offer.fd >= 0) close(offer.fd);
    return same;
  }
  // A socket that is connected to the server.
  int Stranger() const {
    const wire::SocketAddress to = wire::AbstractAddress(server_.address().c_str());
    const int stranger = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(stranger, reinterpret_cast<const sockaddr*>(&to.address), to.bytes), 0);
    return stranger;
  }

  collector::ArenaOwner arena_;
  collector::ArenaServer server_;
  std::thread serving_;
  std::atomic<bool> stop_{false};
};

int64_t OpenDescriptors() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

TEST_F(ArenaServerTest, TheSecretGetsTheArenaAndTheNumberOfTheProcess) {
  Start();
  const agent::ArenaOffer offer = Ask();
  EXPECT_EQ(offer.pid, static_cast<uint32_t>(getpid()));
  EXPECT_TRUE(IsTheArena(offer));
  EXPECT_EQ(arena_.header().processes_unanswered.load(), 0u);
}

TEST_F(ArenaServerTest, ManyMayAskAtTheSameTime) {
  Start();
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 64; ++i) {
    threads.emplace_back([&] { served += IsTheArena(Ask()) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served.load(), 64);
}

TEST_F(ArenaServerTest, AWrongSecretGetsNothing) {
  Start();
  std::string wrong = server_.address();
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const agent::ArenaOffer offer = agent::AskForArena(wrong.c_str());
  EXPECT_EQ(offer.fd, -1);
  EXPECT_EQ(offer.pid, 0u);
  EXPECT_EQ(arena_.header().processes_unanswered.load(), 0u);
}

TEST_F(ArenaServerTest, WhatIsNoAddressIsNotAsked) {
  const std::string address = server_.address();
  for (const std::string& text : {std::string(), address.substr(1), std::string("a:b")}) {
    EXPECT_EQ(agent::AskForArena(text.c_str()).fd, -1);
  }
}

TEST_F(ArenaServerTest, StrangersThatAreSilentOrSendAnythingHinderNobody) {
  Start();
  const int64_t before = OpenDescriptors();
  std::vector<int> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(Stranger());
  const std::string noise(4096, 'x');
  for (size_t bytes : {0, 1, 31, 32, 33, 4096}) {
    EXPECT_GE(send(strangers[bytes % 100], noise.data(), bytes, 0), 0);
  }
  // Descriptors that come along are not kept.
  EXPECT_TRUE(wire::SendWithDescriptor(strangers[0], nullptr, 0, "x", 1, strangers[0]));
  EXPECT_TRUE(IsTheArena(Ask()));
  for (const int stranger : strangers) close(stranger);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(ArenaServerTest, WhenTheCollectorIsGoneNobodyWaits) {
  server_.Close();
  const uint64_t begin = wire::MonotonicNs();
  EXPECT_EQ(Ask().fd, -1);
  EXPECT_LT(wire::MonotonicNs() - begin, 500'000'000u);
}

TEST_F(ArenaServerTest, ACollectorThatDoesNotAnswerIsWaitedForTwoSecondsAndCountsIt) {
  const uint64_t begin = wire::MonotonicNs();
  EXPECT_EQ(Ask().fd, -1);
  EXPECT_LT(wire::MonotonicNs() - begin, 4'000'000'000u);
  server_.Serve(0);
  EXPECT_EQ(arena_.header().processes_unanswered.load(), 1u);
}

// The name of a collector that is gone can be anybody's.
TEST_F(ArenaServerTest, AnAnswerOfAnotherUserIsNotTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  server_.Close();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    // A whole collector, except that its name is taken over and its user is another one.
    if (setuid(kNobody) != 0) _exit(1);
    const wire::SocketAddress name = wire::AbstractAddress(server_.address().c_str());
    const int false_server = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (bind(false_server, reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0) {
      _exit(2);
    }
    static_cast<void>(!write(ready[1], "r", 1));
    char secret[64];
    sockaddr_un from{};
    socklen_t from_bytes = sizeof(from);
    if (recvfrom(false_server, secret, sizeof(secret), 0, reinterpret_cast<sockaddr*>(&from),
                 &from_bytes) != wire::kSocketDigits) {
      _exit(3);
    }
    const wire::ArenaAnswer answer{1};
    _exit(wire::SendWithDescriptor(false_server, &from, from_bytes, &answer, sizeof(answer),
                                   false_server)
              ? 0
              : 4);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const int64_t before = OpenDescriptors();
  const agent::ArenaOffer offer = Ask();
  EXPECT_EQ(offer.fd, -1);
  EXPECT_EQ(OpenDescriptors(), before);
  int status = 1;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0) << "the answer was not sent";
  close(ready[0]);
  close(ready[1]);
}

TEST_F(ArenaServerTest, WhoHasTheArenaCannotShortenIt) {
  EXPECT_NE(ftruncate(arena_.fd(), 0), 0);
  EXPECT_EQ(errno, EPERM);
}

}  // namespace
}  // namespace acltape::test
