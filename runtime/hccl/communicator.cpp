#include "runtime/hccl/communicator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "runtime/hccl/sleep.h"

namespace acltape::hccl {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// Seconds of an environment variable.
int64_t SecondsOf(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const long long seconds = std::strtoll(text, &end, 10);
  return *end == '\0' && seconds >= 0 && seconds < INT32_MAX ? seconds : otherwise;
}

struct Live {
  std::mutex mutex;
  std::map<HcclComm, std::shared_ptr<Communicator>> by_handle;
};
// Never destroyed, because programs destroy communicators at exit.
Live& GetLive() {
  static Live& live = *new Live;
  return live;
}

}  // namespace

int64_t ConnectionTimeout() {
  // The vendor's library waits 20 s longer than it is told, and takes 120 s at least. Shorter times
  // are taken as they are, so that tests need not wait.
  const int64_t seconds = SecondsOf("HCCL_CONNECT_TIMEOUT", 120);
  return (seconds < 120 ? seconds : seconds + 20) * kSecondNs;
}

int64_t ExecutionTimeout() { return SecondsOf("HCCL_EXEC_TIMEOUT", 1836) * kSecondNs; }

Wishes Wishes::Of(const HcclCommConfig* config) {
  Wishes wishes;
  if (config == nullptr) return wishes;
  uint64_t known = 0;
  std::memcpy(&known, config->reserved, sizeof known);
  const auto knows = [&](const void* member, size_t bytes) {
    const auto end = static_cast<const char*>(member) + bytes;
    return static_cast<uint64_t>(end - reinterpret_cast<const char*>(config)) <= known;
  };
  if (knows(config->hcclCommName, sizeof config->hcclCommName)) {
    const char* end = std::find(config->hcclCommName, std::end(config->hcclCommName), '\0');
    wishes.name.assign(config->hcclCommName, end);
  }
  if (knows(&config->hcclExecTimeOut, sizeof config->hcclExecTimeOut) &&
      config->hcclExecTimeOut >= 0) {
    wishes.execution_timeout_ns = config->hcclExecTimeOut * kSecondNs;
  }
  return wishes;
}

Communicator::Communicator(std::shared_ptr<Meeting> meeting, uint32_t rank, const Wishes& wishes,
                           int32_t device)
    : meeting_(std::move(meeting)),
      rank_(rank),
      name_(wishes.name.empty() ? meeting_->name() : wishes.name),
      device_(device),
      execution_timeout_ns_(wishes.execution_timeout_ns >= 0 ? wishes.execution_timeout_ns
                                                             : ExecutionTimeout()),
      turns_(2 * meeting_->ranks()),
      captures_(2 * meeting_->ranks() + 1) {}

Communicator::~Communicator() { Destroy(); }

bool Communicator::ReadsOthers() {
  Known known = reads_others_.load();
  if (known == Known::kNo) {
    known = Known::kTrue;
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      if (!meeting_->MayRead(rank)) known = Known::kFalse;
    }
    reads_others_.store(known);
  }
  return known == Known::kTrue;
}

void Communicator::Destroy() {
  if (!destroyed_.exchange(true)) meeting_->Leave(rank_);
}

HcclComm Communicator::Register(std::shared_ptr<Communicator> communicator) {
  const std::lock_guard<std::mutex> lock(GetLive().mutex);
  HcclComm handle = communicator.get();
  GetLive().by_handle[handle] = std::move(communicator);
  return handle;
}

std::shared_ptr<Communicator> Communicator::Find(HcclComm handle) {
  const std::lock_guard<std::mutex> lock(GetLive().mutex);
  const auto found = GetLive().by_handle.find(handle);
  return found == GetLive().by_handle.end() ? nullptr : found->second;
}

std::shared_ptr<Communicator> Communicator::FindNamed(const std::string& name, int32_t device,
                                                      std::string* why) {
  const std::lock_guard<std::mutex> lock(GetLive().mutex);
  std::set<std::string> known;
  std::vector<std::shared_ptr<Communicator>> named, on_device;
  for (const auto& [handle, each] : GetLive().by_handle) {
    known.insert(each->name());
    if (each->name() != name) continue;
    named.push_back(each);
    if (each->device() == device) on_device.push_back(each);
  }
  if (named.size() == 1) return named[0];
  if (on_device.size() == 1) return on_device[0];
  *why = "group \"" + name + "\" ";
  if (!named.empty()) {
    *why += "is the name of " + std::to_string(named.size()) + " communicators of this process, " +
            std::to_string(on_device.size()) + " of them of device " + std::to_string(device);
    return nullptr;
  }
  *why += "is no communicator of this process, which has ";
  if (known.empty()) *why += "none";
  for (const std::string& each : known) {
    *why += (each == *known.begin() ? "\"" : ", \"") + each + "\"";
  }
  return nullptr;
}

std::shared_ptr<Communicator> Communicator::Remove(HcclComm handle) {
  const std::lock_guard<std::mutex> lock(GetLive().mutex);
  const auto node = GetLive().by_handle.extract(handle);
  return node.empty() ? nullptr : node.mapped();
}

HcclResult JoinMeeting(Meeting& meeting, uint32_t rank, std::string* message) {
  if (!meeting.Join(rank)) {
    *message = "rank " + std::to_string(rank) + " has joined already";
    return HCCL_E_PARA;
  }
  const int64_t limit = ConnectionTimeout();
  const int64_t begin = Now();
  for (uint32_t other = 0; other < meeting.ranks(); ++other) {
    while (meeting.cell(other).state.load() == RankState::kAbsent) {
      const uint32_t heard = meeting.cell(rank).bell.load();
      if (meeting.cell(other).state.load() != RankState::kAbsent) break;
      SleepUntilRung(meeting, rank, heard, kSliceNs);
      if (Now() - begin < limit) continue;
      meeting.Leave(rank);
      *message = "rank " + std::to_string(other) + " of " + std::to_string(meeting.ranks()) +
                 " did not join within " + std::to_string(limit / kSecondNs) +
                 " s (HCCL_CONNECT_TIMEOUT); this is rank " + std::to_string(rank);
      return HCCL_E_TIMEOUT;
    }
  }
  return HCCL_SUCCESS;
}

}  // namespace acltape::hccl
