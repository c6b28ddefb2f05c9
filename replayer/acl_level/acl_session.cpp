#include "replayer/acl_level/acl_session.h"

#include <optional>
#include <set>

#include "replayer/device/patience.h"

namespace acltape::replayer::acl_level {
namespace {

analyzer::AclProgram LoadChecked(const storage::Reader& trace) {
  analyzer::AclProgram program = analyzer::LoadAclProgram(trace);
  analyzer::CheckContents(program);
  AdoptRecordedSettings(trace);
  return program;
}

// A kernel that fails in an execution gives 507011; soft devices of older recordings gave 507015
// there, as outside of graphs (rule ERR-04).
bool FailedSoInTheRecording(const std::set<int32_t>& recorded, int32_t code) {
  constexpr int32_t kKernel = ACL_ERROR_RT_AICORE_EXCEPTION;
  constexpr int32_t kExecution = ACL_ERROR_RT_MODEL_EXECUTE;
  if (recorded.contains(code)) return true;
  return (code == kKernel && recorded.contains(kExecution)) ||
         (code == kExecution && recorded.contains(kKernel));
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
      device(replay_options.device_lib, RecordedSaturation(trace)),
      rooms(device, program),
      handles(device, program),
      ranks(options.rank_meeting.empty()
                ? nullptr
                : std::make_unique<RankMeeting>(trace, device, options.rank_meeting)),
      binder(device, program, rooms, ranks.get()),
      verifier(program, rooms, options, report,
               [this](const std::string& digest) { return binder.Payload(digest); }),
      workspaces(device),
      in_flight(
          device, [this](const Take& take, const uint8_t* bytes) { verifier.Check(take, bytes); },
          [this] {
            if (MayWait()) SynchronizeAll();
          }) {}

void AclSession::Issue(int64_t stream, const AclTask& task, Workspaces kind) {
  const DeviceWork& work = device.work();
  const aclrtStream on = handles.Stream(stream);
  switch (task.work) {
    case AclTask::Work::kNothing:
      return;
    case AclTask::Work::kOperator:
      task.bound->Run(device, on, [&](uint64_t bytes) -> void* {
        if (bytes <= task.workspace_bytes) return task.workspace;
        return kind == Workspaces::kOwn ? workspaces.Own(bytes) : workspaces.Of(stream, bytes);
      });
      return;
    case AclTask::Work::kCollective:
      ranks->Issue(*task.collective, on);
      return;
    case AclTask::Work::kRecord:
      work.Record(handles.EventOf(task.event).get(), on, task.flag).Check();
      return;
    case AclTask::Work::kWait:
      work.Wait(handles.EventOf(task.event).get(), on, task.flag).Check();
      return;
    case AclTask::Work::kReset:
      work.Reset(handles.EventOf(task.event).get(), on).Check();
      return;
    default:
      IssueMemoryWork(work, task, on);
  }
}

bool AclSession::CheckWait(const CallResult& result) {
  if (result.code() == 0) return true;
  if (!result.code() || !FailedSoInTheRecording(program.task_errors, *result.code())) {
    result.Check();
  }
  ++report.acl.task_errors;
  return false;
}

CallResult AclSession::Await(const std::string& what,
                             const std::function<CallResult(int limit_ms)>& wait) {
  if (!program.waits_for_later_work) return wait(kNoLimit);
  const Patience& patience = device.library().IsSoftDevice() ? kForSoftDevice : kForOtherDevices;
  if (std::optional<CallResult> result = WaitInPieces(patience, wait)) return *result;
  throw Error(ErrorKind::kDevice,
              what +
                  " does not end: its work seems to wait for an event or a value that nothing "
                  "in the trace sets any more");
}

bool AclSession::WaitFor(int64_t stream) {
  const bool good = CheckWait(Await("stream " + std::to_string(stream), [&](int limit_ms) {
    return device.work().WaitForStream(handles.Stream(stream), limit_ms);
  }));
  in_flight.Synced(stream);
  return good;
}

bool AclSession::WaitForEvent(int64_t event) {
  return CheckWait(Await("the work before event " + std::to_string(event), [&](int limit_ms) {
    return device.work().WaitForEvent(handles.EventOf(event).get(), limit_ms);
  }));
}

bool AclSession::SynchronizeAll() {
  const bool good = CheckWait(
      Await("the device", [&](int limit_ms) { return device.work().WaitForDevice(limit_ms); }));
  in_flight.SyncedAll();
  return good;
}

void AclSession::Download(int64_t stream, aclrtStream handle, const Take& take) {
  if (!take.host) {
    in_flight.Download(stream, handle, take);
    return;
  }
  if (MayWait()) {
    CheckWait(device.work().WaitForStream(handle));
    verifier.Check(take, take.copy.from);
  } else {
    in_flight.CheckLater(stream, take, take.copy.from);
  }
}

}  // namespace acltape::replayer::acl_level
