#include "replayer/acl/acl_session.h"

namespace acltape::replayer {
namespace {

analyzer::AclProgram LoadChecked(const storage::Reader& trace) {
  analyzer::AclProgram program = analyzer::LoadAclProgram(trace);
  analyzer::CheckContents(program);
  AdoptRecordedThreads(trace);
  return program;
}

}  // namespace

void* StreamWorkspaces::Own(uint64_t bytes) {
  blocks_.emplace_back(device_, Block::Kind::kDevice, bytes);
  return blocks_.back().data();
}

void* StreamWorkspaces::Of(int64_t stream, uint64_t bytes) {
  Current& current = streams_[stream];
  if (bytes > current.bytes) {
    current.bytes = bytes + bytes / 2;
    current.data = Own(current.bytes);
  }
  return current.data;
}

AclSession::AclSession(const storage::Reader& trace, const ReplayOptions& replay_options,
                       ReplayReport& replay_report)
    : options(replay_options),
      report(replay_report),
      program(LoadChecked(trace)),
      device(replay_options.device_lib),
      rooms(device, program),
      handles(device, program),
      binder(device, program, rooms),
      verifier(program, rooms, options, report,
               [this](const std::string& digest) { return binder.Payload(digest); }),
      workspaces(device),
      in_flight(
          device, [this](const Take& take, const uint8_t* bytes) { verifier.Check(take, bytes); },
          [this] {
            if (MayWait()) SynchronizeAll();
          }) {}

bool AclSession::CheckWait(int code, const char* call) {
  if (code == 0) return true;
  if (program.task_errors.count(code) == 0) device.Check(code, call);
  ++report.acl.task_errors;
  return false;
}

bool AclSession::SynchronizeAll() {
  bool good = false;
  // Without a limit the host would wait for ever, if some work waits for an event that never comes.
  constexpr int kTimeoutMs = 60000;
  if (program.waits_for_later_work && device.api().aclrtSynchronizeDeviceWithTimeout != nullptr) {
    good = CheckWait(device.api().aclrtSynchronizeDeviceWithTimeout(kTimeoutMs),
                     "aclrtSynchronizeDeviceWithTimeout");
  } else {
    good = CheckWait(device.api().aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
  }
  in_flight.SyncedAll();
  return good;
}

void AclSession::Download(int64_t stream, aclrtStream handle, const Take& take) {
  if (!take.host) {
    in_flight.Download(stream, handle, take);
    return;
  }
  if (MayWait()) {
    CheckWait(device.api().aclrtSynchronizeStream(handle), "aclrtSynchronizeStream");
    verifier.Check(take, take.address);
  } else {
    in_flight.CheckLater(stream, take, take.address);
  }
}

}  // namespace acltape::replayer
