// The shared memory in which the ranks of one communicator meet (HCL-03).
//
// It is a file without a name (memfd_create). Each process that has a rank maps it, so nothing is
// left behind when they end. Note [Layout of a meeting]: a head; a cell for each rank; a channel
// for each ordered pair of ranks; each rank's row of counts, twice; each rank's window, twice; and
// the room of each channel, twice. Things exist twice because a rank may be one ahead of another
// one (collective.h, pairs.h). Pages that nobody touches take no memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "hccl/hccl_types.h"

namespace acltape::hccl {

// A rank's description of the call that it has come to. Ranks compare it (HCL-08).
struct Described {
  uint32_t kind = 0;     // Kind of call.h
  uint32_t dtype = 0;    // HcclDataType
  uint32_t op = 0;       // HcclReduceOp; 0 where nothing is reduced
  uint32_t root = 0;     // 0 where there is none
  uint64_t count = 0;    // elements, as the call gives them
  uint64_t capture = 0;  // 0: not captured; else counts the captured calls of the communicator
  uint64_t steps = 0;    // windows that this rank needs
  // Where its memory lies, for ranks that read it there (Note [Reading where it lies]).
  bool readable = false;
  uint64_t send = 0, recv = 0;
};

enum class RankState : uint32_t { kAbsent, kHere, kLeft };

struct alignas(64) RankCell {
  std::atomic<RankState> state;
  std::atomic<uint32_t> process;
  std::atomic<uint64_t> process_start;  // clock ticks after boot, as /proc/PID/stat has them
  std::atomic<uint64_t> pid_namespace;
  std::atomic<uint64_t> mapped_at;  // where the process has the meeting
  // Changes when another rank has done something; ranks sleep on it.
  std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
  // Written by the rank itself. They count from the communicator's beginning.
  alignas(64) std::atomic<uint64_t> arrived;  // collectives that it has come to
  std::atomic<uint64_t> filled;               // windows that it has filled
  std::atomic<uint64_t> taken;                // windows of the others that it has taken from
  Described described[2];                     // collective number n has [n % 2]
};

// From one rank to another one, or to itself.
struct alignas(64) Channel {
  std::atomic<uint64_t> offered;  // messages that the sender has come to
  std::atomic<uint64_t> filled;   // rooms
  Described sent[2];
  alignas(64) std::atomic<uint64_t> wanted;  // messages that the receiver has come to
  std::atomic<uint64_t> taken;
  Described asked[2];
};

class Meeting {
 public:
  static constexpr uint32_t kMostRanks = 1024;
  static constexpr uint64_t kWindowBytes = uint64_t{512} << 10;
  static constexpr uint64_t kRoomBytes = uint64_t{256} << 10;

  // Null when the system has no memory for it.
  static std::shared_ptr<Meeting> Create(uint32_t ranks);
  // Maps what the descriptor names, which it closes. Within a process all ranks of a meeting share
  // one mapping. Null when that is no meeting of this release.
  static std::shared_ptr<Meeting> Attach(int file);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  int file() const { return file_; }
  uint32_t ranks() const { return ranks_; }
  const char* name() const;

  // False when the rank is here already.
  bool Join(uint32_t rank);
  void Leave(uint32_t rank);
  // False when the process of the rank has ended. True where that cannot be told.
  bool Lives(uint32_t rank) const;
  // True when this process may read the memory of the rank's process.
  bool MayRead(uint32_t rank) const;

  RankCell& cell(uint32_t rank) const;
  Channel& channel(uint32_t from, uint32_t to) const;
  uint64_t* Counts(uint32_t rank, uint64_t number) const;  // one for each rank
  char* Window(uint32_t rank, uint64_t number) const;
  char* Room(uint32_t from, uint32_t to, uint64_t number) const;

  // Wakes what sleeps in this rank.
  void Ring(uint32_t rank) const;
  void RingAll() const;
  void RingOthers(uint32_t own) const;

  // The first failure stays; every rank gives its text. HCCL_SUCCESS: none.
  void Fail(HcclResult code, const std::string& text);
  HcclResult failure() const;
  std::string FailureText() const;

 private:
  struct Head;
  Meeting(int file, char* memory, uint64_t bytes, uint32_t ranks);

  const int file_;
  char* const memory_;
  const uint64_t bytes_;
  const uint32_t ranks_;
};

}  // namespace acltape::hccl
