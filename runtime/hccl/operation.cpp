#include "runtime/hccl/operation.h"

#include "runtime/hccl/sleep.h"
#include "runtime/waiting_launch.h"

namespace acltape::hccl {
namespace {

// How often a waiting operation looks at the others' processes.
constexpr int64_t kLookNs = 200'000'000;
// In a graph that has other streams an attempt waits at most so long.
constexpr int64_t kPatienceNs = 50'000;

// The stream's error when its communicator has failed (HCL-09).
aclError StreamErrorOf(HcclResult failure) {
  return failure == HCCL_E_TIMEOUT ? ACL_ERROR_RT_FFTS_PLUS_TIMEOUT
                                   : ACL_ERROR_RT_SUSPECT_REMOTE_ERROR;
}

// "ranks 0 and 2 wait".
std::string Wait(const std::vector<uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i != 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text + (ranks.size() == 1 ? " waits" : " wait");
}

}  // namespace

void Operation::Reads(const void* first, uint64_t bytes, const char* argument) {
  if (bytes != 0) uses_.push_back({first, bytes, argument, /*only_read=*/1});
}

void Operation::Writes(void* first, uint64_t bytes, const char* argument) {
  if (bytes == 0) return;
  uses_.push_back({first, bytes, argument, /*only_read=*/0});
  outputs_.push_back({first, bytes});
}

HcclResult Operation::Launch(std::unique_ptr<Operation> operation, aclrtStream stream) {
  const char* name = operation->name_;
  return SoftLaunchWaiting(stream, name, Run, Ready, Drop, operation.release()) == ACL_SUCCESS
             ? HCCL_SUCCESS
             : HCCL_E_RUNTIME;
}

aclError Operation::Run(void* bound) {
  auto& self = *static_cast<Operation*>(bound);
  const Meeting& meeting = self.communicator_->meeting();
  const uint32_t rank = self.communicator_->rank();
  self.Begin();
  while (true) {
    const uint32_t heard = meeting.cell(rank).bell.load();
    if (self.Advance()) return self.Result();
    SoftTaskSleeps(true);
    SleepUntilRung(meeting, rank, heard, kSliceNs);
    SoftTaskSleeps(false);
  }
}

bool Operation::Ready(void* bound) {
  auto& self = *static_cast<Operation*>(bound);
  const Meeting& meeting = self.communicator_->meeting();
  const uint32_t rank = self.communicator_->rank();
  self.Begin();
  const int64_t limit = Now() + kPatienceNs;
  while (true) {
    const uint32_t heard = meeting.cell(rank).bell.load();
    if (self.Advance()) return true;
    const int64_t left = limit - Now();
    if (left <= 0) return false;
    SleepUntilRung(meeting, rank, heard, left);
  }
}

void Operation::Drop(void* bound) { delete static_cast<Operation*>(bound); }

void Operation::Begin() {
  if (running_) return;
  running_ = true;
  result_.reset();
  message_.clear();
  begin_ns_ = looked_ns_ = Now();
  ended_.assign(parts_.size(), false);
  const aclError bad = SoftCheckMemory(name_, uses_.data(), uses_.size());
  if (bad != ACL_SUCCESS) {
    // The others must not wait for it until their time is up.
    const char* why = SoftErrorMessage();
    communicator_->meeting().Fail(HCCL_E_REMOTE, "rank " + std::to_string(communicator_->rank()) +
                                                     " could not take part: " + why);
    End(bad, why);
    return;
  }
  for (const auto& part : parts_) part->Begin();
}

bool Operation::Advance() {
  if (result_) return true;
  if (communicator_->destroyed()) {
    return End(ACL_ERROR_RT_STREAM_ABORT,
               "communicator \"" + communicator_->name() + "\" was destroyed before it ended");
  }
  Meeting& meeting = communicator_->meeting();
  bool all = meeting.failure() == HCCL_SUCCESS;
  for (size_t i = 0; all && i < parts_.size(); ++i) {
    if (!ended_[i]) ended_[i] = parts_[i]->Advance();
  }
  for (const bool ended : ended_) all = all && ended;
  if (all) return End(ACL_SUCCESS, "");
  if (meeting.failure() == HCCL_SUCCESS) {
    if (SoftTaskInterrupted()) {
      meeting.Fail(HCCL_E_REMOTE, "rank " + std::to_string(communicator_->rank()) +
                                      " of communicator \"" + communicator_->name() +
                                      "\" was aborted in " + parts_[0]->Describe());
      return End(ACL_ERROR_RT_STREAM_ABORT, "");
    }
    if (Now() - looked_ns_ >= kLookNs) LookForMissing();
  }
  if (meeting.failure() == HCCL_SUCCESS) return false;
  return End(StreamErrorOf(meeting.failure()), meeting.FailureText());
}

bool Operation::End(aclError result, const std::string& message) {
  if (result != ACL_SUCCESS) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!ended_[i]) parts_[i]->GiveUp();
    }
  }
  result_ = result;
  message_ = message;
  return true;
}

void Operation::LookForMissing() {
  looked_ns_ = Now();
  Meeting& meeting = communicator_->meeting();
  const int64_t limit = communicator_->execution_timeout_ns();
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (ended_[i]) continue;
    for (const Part::Missing& missing : parts_[i]->WaitsFor()) {
      const RankCell& other = meeting.cell(missing.rank);
      const std::string who = Wait(parts_[i]->Waiting()) + " in " + parts_[i]->Describe() +
                              " of communicator \"" + communicator_->name() + "\" for rank " +
                              std::to_string(missing.rank) + " (process " +
                              std::to_string(other.process.load()) + "), which ";
      if (other.state.load() == RankState::kLeft) {
        meeting.Fail(HCCL_E_REMOTE, who + missing.how_far + " and has destroyed the communicator");
      } else if (!meeting.Lives(missing.rank)) {
        meeting.Fail(HCCL_E_REMOTE, who + missing.how_far + "; its process has ended");
      } else if (limit != 0 && looked_ns_ - begin_ns_ >= limit) {
        meeting.Fail(HCCL_E_TIMEOUT, "EI0002: " + who + missing.how_far + ", for " +
                                         std::to_string(limit / 1'000'000'000) +
                                         " s (HCCL_EXEC_TIMEOUT)");
      }
    }
  }
}

aclError Operation::Result() {
  running_ = false;
  if (!message_.empty()) SoftSetErrorMessage(message_.c_str());
  if (*result_ == ACL_SUCCESS && !outputs_.empty() && SoftFlipsBits(name_)) {
    SoftFlipBits(name_, outputs_.data(), outputs_.size());
  }
  return *result_;
}

}  // namespace acltape::hccl
