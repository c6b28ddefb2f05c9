// A communicator as one rank has it, and the table of those that this process has.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hccl/hccl.h"
#include "runtime/hccl/meeting.h"

namespace acltape::hccl {

class Part;

// Settings with which a program makes a communicator.
struct Wishes {
  std::string name;                   // empty: the meeting's
  int64_t execution_timeout_ns = -1;  // 0: none; -1: that of the environment

  // Reads the members that the caller knows; null: none.
  static Wishes Of(const HcclCommConfig* config);
};

// How long ranks wait for each other, in ns; 0: for ever.
int64_t ConnectionTimeout();  // HCCL_CONNECT_TIMEOUT
int64_t ExecutionTimeout();   // HCCL_EXEC_TIMEOUT

class Communicator {
 public:
  // `device` is the one on which the rank works.
  Communicator(std::shared_ptr<Meeting> meeting, uint32_t rank, const Wishes& wishes,
               int32_t device);
  ~Communicator();

  Meeting& meeting() const { return *meeting_; }
  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return meeting_->ranks(); }
  const std::string& name() const { return name_; }
  int32_t device() const { return device_; }
  int64_t execution_timeout_ns() const { return execution_timeout_ns_; }
  // True when this rank may read the memory of all others. Asked when all have joined; the answer
  // is kept.
  bool ReadsOthers();

  // The program has given it up: what still waits ends.
  void Destroy();
  bool destroyed() const { return destroyed_.load(); }

  // Calls of one rank use the windows, or a channel, one after the other. Each is held by the part
  // that uses it now; null: nobody.
  using Turn = std::atomic<const Part*>;
  Turn windows{nullptr};
  Turn& sending(uint32_t to) { return turns_[to]; }
  Turn& receiving(uint32_t from) { return turns_[ranks() + from]; }

  // Counts the captured calls: of collectives, and of messages to and from each rank.
  uint64_t NextCapture() { return captures_.back().fetch_add(1) + 1; }
  uint64_t NextCaptureTo(uint32_t to) { return captures_[to].fetch_add(1) + 1; }
  uint64_t NextCaptureFrom(uint32_t from) { return captures_[ranks() + from].fetch_add(1) + 1; }

  // The communicators of this process. A handle is an address; null when it is of no live one.
  static HcclComm Register(std::shared_ptr<Communicator> communicator);
  static std::shared_ptr<Communicator> Find(HcclComm handle);
  // The one of this name. Ranks of a group that are threads of this process share the name, so
  // among several it is the one of the device. Null: `why` says which names there are.
  static std::shared_ptr<Communicator> FindNamed(const std::string& name, int32_t device,
                                                 std::string* why);
  // Takes it out of the table.
  static std::shared_ptr<Communicator> Remove(HcclComm handle);

 private:
  const std::shared_ptr<Meeting> meeting_;
  const uint32_t rank_;
  const std::string name_;
  const int32_t device_;
  const int64_t execution_timeout_ns_;
  std::atomic<bool> destroyed_{false};
  enum class Known : uint8_t { kNo, kFalse, kTrue };
  std::atomic<Known> reads_others_{Known::kNo};
  std::vector<Turn> turns_;
  std::vector<std::atomic<uint64_t>> captures_;
};

// Waits until all ranks have joined the meeting. `message` says what went wrong.
HcclResult JoinMeeting(Meeting& meeting, uint32_t rank, std::string* message);

}  // namespace acltape::hccl
