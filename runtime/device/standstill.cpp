#include "runtime/device/standstill.h"

#include <cstdio>
#include <string>

#include "runtime/device/futex.h"
#include "runtime/device/profile.h"
#include "runtime/device/stream.h"

namespace acltape::device {
namespace {

constexpr int64_t kDrainSliceNs = 20000000;

std::atomic<uint32_t> working{0};
std::atomic<uint32_t> waiting{0};
// Changes when a worker begins or ends a wait or its work.
std::atomic<uint64_t> moves{0};
std::atomic<bool> shared{false};

void Move(std::atomic<uint32_t>& count, uint32_t change) {
  count.fetch_add(change);
  moves.fetch_add(1);
}

}  // namespace

// Only workers count: a host thread that waits says nothing about the device.
Standstill::Wait::Wait(bool in_worker) : counts_(in_worker ? 1 : 0) {
  if (counts_ != 0) Move(waiting, 1);
}
Standstill::Wait::~Wait() {
  if (counts_ != 0) Move(waiting, ~uint32_t{0});
}
Standstill::Work::Work() { Move(working, 1); }
Standstill::Work::~Work() { Move(working, ~uint32_t{0}); }

void Standstill::MemoryIsShared() { shared.store(true); }

bool Standstill::Lasts(int64_t patience_ns) {
  const uint64_t now_moves = moves.load();
  const bool stands = !shared.load() && waiting.load() != 0 && waiting.load() == working.load();
  if (!stands || now_moves != moves_ || since_ns_ == 0) {
    moves_ = now_moves;
    since_ns_ = NowNs();
    return false;
  }
  return NowNs() - since_ns_ >= patience_ns;
}

void DropWork(const std::set<Stream*>& streams, const char* call) {
  std::string numbers;
  for (Stream* stream : streams) {
    if (stream->Idle()) continue;
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(stream->id());
    stream->Abort();
  }
  std::fprintf(stderr,
               "soft device: %s drops the work of stream %s: it waits for what nothing records or "
               "writes\n",
               call, numbers.c_str());
}

void DrainOrGiveUp(const std::set<Stream*>& streams, const char* call) {
  Standstill standstill;
  for (Stream* stream : streams) {
    while (!stream->Drained(kDrainSliceNs)) {
      if (standstill.Lasts(GetProfile().release_wait_ns)) DropWork(streams, call);
    }
  }
}

}  // namespace acltape::device
