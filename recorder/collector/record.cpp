#include "recorder/collector/record.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "kit/place.h"
#include "meaning/options.h"
#include "recorder/collector/arena_owner.h"
#include "recorder/collector/arena_server.h"
#include "recorder/collector/backlog.h"
#include "recorder/collector/child_process.h"
#include "recorder/collector/keeper.h"
#include "recorder/collector/left_out.h"
#include "recorder/collector/size_limit.h"
#include "recorder/collector/slot_drain.h"
#include "recorder/collector/soft_findings.h"
#include "recorder/collector/spare_time.h"
#include "recorder/collector/spool.h"
#include "recorder/collector/trace_builder.h"
#include "recorder/wire/arena_request.h"
#include "recorder/wire/clock.h"
#include "storage/json_text.h"
#include "storage/process_identity.h"
#include "storage/reader.h"
#include "storage/writer.h"

namespace acltape::collector {
namespace {

using storage::Severity;

constexpr int64_t kMillisecond = 1000000;

int64_t Now() { return static_cast<int64_t>(wire::MonotonicNs()); }

int64_t WallNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

void Sleep(int64_t ns) {
  const timespec pause{0, static_cast<long>(ns)};
  nanosleep(&pause, nullptr);
}

// Shows recorded threads that the collector lives, and answers processes that ask for the arena,
// even while a large payload is compressed.
class Heartbeat {
 public:
  // Error kDevice when the system starts no thread.
  Heartbeat(wire::ArenaHeader& header, ArenaServer& server) : server_(server) {
    try {
      thread_ = std::thread([this, &header] {
        while (!stop_.load(std::memory_order_relaxed)) {
          header.heartbeat.fetch_add(1, std::memory_order_relaxed);
          server_.Serve(25);
        }
      });
    } catch (const std::system_error& error) {
      throw Error(ErrorKind::kDevice,
                  fmt::format("cannot start a thread ({})", error.code().message()));
    }
  }
  ~Heartbeat() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
    server_.Close();
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  ArenaServer& server_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

std::string CommandText(const std::vector<std::string>& command) {
  std::string text = "[";
  for (const std::string& word : command) {
    if (text.size() > 1) text += ',';
    storage::AppendQuoted(text, word);
  }
  text += ']';
  return text;
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "";
}

// Variables that change what a program computes or how fast, as a JSON object.
std::string EnvironmentText() {
  static constexpr const char* kNames[] = {"OMP_NUM_THREADS",
                                           "MKL_NUM_THREADS",
                                           "OPENBLAS_NUM_THREADS",
                                           "TASK_QUEUE_ENABLE",
                                           "ASCEND_TOOLKIT_HOME",
                                           "ASCEND_HOME_PATH",
                                           "ASCEND_LAUNCH_BLOCKING",
                                           "ASCEND_VISIBLE_DEVICES",
                                           "ASCEND_RT_VISIBLE_DEVICES",
                                           "ACL_DEVICE_SYNC_TIMEOUT",
                                           "PYTORCH_NPU_ALLOC_CONF",
                                           "LD_LIBRARY_PATH",
                                           "LD_PRELOAD",
                                           "PYTHONPATH",
                                           "RANK",
                                           "WORLD_SIZE",
                                           "LOCAL_RANK"};
  std::string text = "{";
  for (const char* name : kNames) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    if (text.size() > 1) text += ',';
    storage::AppendQuoted(text, name);
    text += ':';
    storage::AppendQuoted(text, value);
  }
  text += '}';
  return text;
}

std::string_view StacksName(wire::StackPolicy policy) {
  constexpr std::string_view kNames[] = {"none", "top", "full"};
  return kNames[static_cast<size_t>(policy)];
}

// With a greatest size, a thread may run ahead of the collector by a small part of it only: what
// lies in rings when a window should turn makes that window larger, and windows go as a whole.
uint64_t RingBytes(const RecordOptions& options) {
  constexpr uint64_t kLeastBytes = 256 << 10;
  if (options.max_bytes <= 0) return options.ring_bytes;
  const uint64_t part = static_cast<uint64_t>(options.max_bytes) / 32;
  return std::min(options.ring_bytes, std::bit_floor(std::max(part, kLeastBytes)));
}

// Returns the choice of the recorded part of the program, as members of a JSON object.
std::string WindowText(const RecordOptions& options) {
  std::string text;
  if (options.steps) {
    const auto [first, last] = *options.steps;
    const bool open_ended = last > static_cast<uint64_t>(INT64_MAX);
    text += fmt::format(R"(,"record_steps":[{},{}])", first,
                        open_ended ? "null" : std::to_string(last));
  }
  if (options.start_closed) text += R"(,"start_closed":true)";
  if (options.delay_ns) text += fmt::format(R"(,"delay_ns":{})", *options.delay_ns);
  if (options.duration_ns) text += fmt::format(R"(,"duration_ns":{})", *options.duration_ns);
  if (options.max_bytes > 0) text += fmt::format(R"(,"max_bytes":{})", options.max_bytes);
  return text;
}

// For a trace that is mostly values. SQLite takes nearly the same time for a page of any size, and
// a value of 4 KiB would have one of 8 KiB for itself. zstd takes more time than all else together
// for values of float32, most of which it makes smaller by less than a tenth.
void MakeQuickForValues(storage::Writer::Options& options) {
  options.page_bytes = 32768;
  options.compression.part = 8;
}

void WriteFacts(storage::Writer& writer, const RecordOptions& options) {
  utsname host{};
  uname(&host);
  char folder[4096] = "";
  if (getcwd(folder, sizeof(folder)) == nullptr) folder[0] = '\0';
  const bool aten = (options.levels & wire::kLevelAten) != 0;
  const bool acl = (options.levels & wire::kLevelAcl) != 0;
  writer.SetMeta("acltape_version", ACLTAPE_VERSION);
  writer.SetMeta("command", CommandText(options.command));
  writer.SetMeta("cwd", folder);
  writer.SetMeta("host", host.nodename);
  writer.SetMeta("system", fmt::format("{} {} {}", host.sysname, host.release, host.machine));
  writer.SetMeta("cpu", CpuName());
  writer.SetMeta("cpu_count", std::to_string(sysconf(_SC_NPROCESSORS_ONLN)));
  writer.SetMeta("environment", EnvironmentText());
  writer.SetMeta("begin_wall_ns", std::to_string(WallNs()));
  writer.SetMeta("payload", std::string(wire::NameOf(options.payload)));
  writer.SetMeta("levels", aten && acl ? "aten,acl" : aten ? "aten" : acl ? "acl" : "");
  std::string recorder = fmt::format(
      R"({{"composites":{},"modules":{},"stacks":"{}","device_times":{},"ring_bytes":{},"slots":{},)"
      R"("steps_from":)",
      options.composites, options.modules, StacksName(options.stacks), options.device_times,
      RingBytes(options), options.slots);
  storage::AppendQuoted(recorder, options.steps_from);
  writer.SetMeta("recorder", recorder + WindowText(options) + "}");
  writer.AddQuirk("frame_time_at_begin",
                  "the start of an enclosing call is when it was entered, its row is written when "
                  "its first leaf ran");
  writer.AddQuirk("overwriting_is_out",
                  "self of operators that only overwrite it (copy_, fill_, zero_, random fills) "
                  "has direction out, not inout");
  writer.AddQuirk("batch_norm_writes_statistics",
                  "running_mean and running_var of native_batch_norm have direction inout, in "
                  "evaluation too");
  writer.Commit();
}

// The value of LD_PRELOAD with the agents in front of what was there. The runtime of
// AddressSanitizer ends a program in which another library comes before it, so it keeps its place.
std::string WithAgents(const std::string& agents, std::string_view before) {
  std::string first, rest;
  while (!before.empty()) {
    const size_t end = std::min(before.find_first_of(": "), before.size());
    const std::string_view library = before.substr(0, end);
    before.remove_prefix(std::min(end + 1, before.size()));
    if (library.empty()) continue;
    const std::string_view file = library.substr(library.rfind('/') + 1);
    const bool sanitizer = file.starts_with("libasan.so") || file.starts_with("libclang_rt.asan");
    if (sanitizer) {
      first.append(library) += ':';
    } else {
      (rest += ':').append(library);
    }
  }
  return first + agents + rest;
}

std::vector<std::string> ProgramEnvironment(const RecordOptions& options, const ArenaOwner& arena,
                                            const ArenaServer& server) {
  std::vector<std::string> environment = options.environment;
  environment.push_back(fmt::format("{}={}", wire::kArenaVariable, arena.path()));
  environment.push_back(fmt::format("{}={}", wire::kSocketVariable, server.address()));
  if (!options.torch_kits.empty()) {
    environment.push_back(fmt::format("{}={}", kit::kPlacesVariable, options.torch_kits));
  }
  if (!options.soft_findings.empty()) {
    environment.push_back("ACLTAPE_SOFT_FINDINGS=" + options.soft_findings);
  }
  if (!options.agent_library.empty()) {
    std::string agents = options.agent_library;
    if ((options.levels & wire::kLevelAcl) != 0 && !options.acl_agent_library.empty()) {
      agents += ":" + options.acl_agent_library;
    }
    constexpr std::string_view kPreload = "LD_PRELOAD=";
    const char* const inherited = std::getenv("LD_PRELOAD");
    std::string before = inherited == nullptr ? "" : inherited;
    std::erase_if(environment, [&](const std::string& setting) {
      if (!setting.starts_with(kPreload)) return false;
      before = setting.substr(kPreload.size());
      return true;
    });
    environment.push_back(std::string(kPreload) + WithAgents(agents, before));
  }
  return environment;
}

// How large the spool may become. A recording that drops its oldest part must not keep all of it
// elsewhere; it has no spool.
uint64_t SpoolBytes(const RecordOptions& options) {
  return options.max_bytes > 0 ? 0 : options.spool_bytes;
}

// One recording. All that must not fail once the program runs is made before it is started.
//
// Note [The program outlives every failure]. From its start on the collector answers for the
// program: somebody must empty the rings for which it waits, reap it and pass its exit code on. So
// nothing is thrown out of Run. What goes wrong there, memory that is refused included, ends the
// recording with one sentence, and the rings are emptied until the program has ended.
class Recording {
 public:
  Recording(const RecordOptions& options, ArenaOwner& arena, ArenaServer& server,
            storage::Writer& writer)
      : options_(options),
        arena_(arena),
        writer_(writer),
        heartbeat_(std::in_place, arena.header(), server),
        server_(server),
        trace_(writer, arena.header(), arena.clock(), options.steps_from),
        spool_(options.output, arena.clock(), options.steps_from, SpoolBytes(options)),
        backlog_(trace_, spool_),
        drain_(arena, backlog_),
        size_limit_(arena, trace_, options.max_bytes),
        stopped_{"recording_stopped",
                 Severity::kDataLoss,
                 1,
                 "trace",
                 "",
                 "make room, or record fewer values (@payload none)"_cli} {
    if (spool_.taking()) {
      writer.SetMeta(kSpoolKey, spool_.identity());
      writer.Commit();
    }
    trace_.SetBacklog(options.backlog_bytes);
    failure_.reserve(kMostFailure);
    stopped_.cause.reserve(kMostFailure);
  }

  // Records the program that was just started, until it has ended.
  RecordSummary Run(ChildProcess& child) noexcept;

  // Starts the keeper of a program that waits to begin.
  void KeepRings(pid_t program) noexcept;

 private:
  static constexpr size_t kMostFailure = 1000;  // bytes of the sentence of a failure

  void SayUnknownMemory();
  void DrainUntilEnd();
  void DrainRest();
  // Carries a phase out to its end. What it throws ends the recording, and the phase goes on.
  void KeepOn(void (Recording::*phase)());
  void Tick(int64_t now);
  // Opens and closes the recording when it is time, or when a signal asks for it.
  void TurnWindow();
  void SetWindow(bool open);
  // Runs `action`; what it throws ends the recording, not the program.
  template <typename Action>
  void Guard(const Action& action);
  size_t Round();
  void Write(int64_t until_ns);
  void WriteAndTick() {
    const int64_t now = Now();
    Tick(now);
    Write(now + 10 * kMillisecond);
  }
  // While the backlog is full the rings are left alone, and a program that fills them waits.
  bool BacklogIsFull() const {
    return backlog_.bytes() > BacklogBytes() || backlog_.memory() > RecordOptions::kMostInMemory;
  }
  void NoteFullBacklog() { trace_.NoteFullBacklog(backlog_.bytes() > options_.backlog_bytes); }
  // True while the backlog is small enough that its records need not be written at once.
  bool BacklogCanWait() const {
    return backlog_.bytes() <= std::min(BacklogBytes(), RecordOptions::kMostInMemory) / 4;
  }
  // The records in the spool are to fit into a quarter of its disk's room: as rows they can take
  // more. A trace of a limited size must not grow by leaps. Where the disk has too little room for
  // a spool, what waits has to fit as rows into the room that was reserved: the disk may be full
  // when it is written.
  uint64_t BacklogBytes() const {
    uint64_t most = options_.backlog_bytes;
    if (spool_.taking())
      return std::min(most, std::max(RecordOptions::kMostInMemory, spool_.room() / 4));
    most = std::min(most, RecordOptions::kMostInMemory);
    if (options_.max_bytes > 0)
      most = std::min(most, static_cast<uint64_t>(options_.max_bytes) / 2);
    return std::min(most, static_cast<uint64_t>(writer_.reserved_bytes()) / 2);
  }
  void StopOnFullDisk();
  // Says in the ledger which protection against a kill is missing.
  void NoteUnprotected(const std::string& subject, const std::string& cause,
                       const std::string& remedy);
  // Without a spool the keeper can save nothing.
  void LookAtSpool();
  std::string FullDisk() const {
    return fmt::format("no room left on the disk of '{}' while writing", options_.output);
  }
  void Fail(const std::exception& error) noexcept;
  void Close(RecordSummary& summary);

  const RecordOptions& options_;
  ArenaOwner& arena_;
  storage::Writer& writer_;
  std::optional<Heartbeat> heartbeat_;
  ArenaServer& server_;
  ChildProcess* child_ = nullptr;
  TraceBuilder trace_;
  Spool spool_;
  Backlog backlog_;
  SlotDrain drain_;
  SizeLimit size_limit_;
  Keeper keeper_;
  bool told_of_spool_ = false;  // why there is none
  int64_t begin_ = 0;
  std::optional<int64_t> opens_;  // the next times at which the recording opens and closes
  std::optional<int64_t> closes_;
  int64_t last_tick_ = 0;
  bool said_unknown_memory_ = false;
  int64_t last_commit_ = 0;
  int64_t last_living_ = 0;
  bool outlived_ = false;
  bool disk_was_full_ = false;
  std::string failure_;           // has room for any sentence
  storage::LedgerEntry stopped_;  // its row of the ledger, the same
};

// The trace cannot be written any more. The program runs on as if nothing was: its agents stop, and
// what they still send is thrown away. Allocates nothing, because that may be what failed.
void Recording::Fail(const std::exception& error) noexcept {
  if (!failure_.empty()) return;
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const bool told = dynamic_cast<const Error*>(&error) != nullptr;
  if (!told) failure_ = "the recording stopped: ";
  const std::string_view cause = no_memory ? "the system has no memory for it" : error.what();
  failure_ += cause.substr(0, kMostFailure - failure_.size());
  stopped_.cause = failure_;
  arena_.header().stop.store(1);
  drain_.Discard();
  keeper_.End();
  spool_.Remove();
  writer_.FinishAfterFailure(stopped_);
}

void Recording::KeepOn(void (Recording::*phase)()) {
  for (;;) {
    try {
      (this->*phase)();
      return;
    } catch (const std::exception& error) {
      Fail(error);
      Sleep(kMillisecond);
    }
  }
}

template <typename Action>
void Recording::Guard(const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    Fail(error);
  }
}

size_t Recording::Round() {
  size_t drained = 0;
  Guard([&] { drained = drain_.Round(); });
  return drained;
}

void Recording::Write(int64_t until_ns) {
  Guard([&] {
    backlog_.Write(until_ns);
    StopOnFullDisk();
  });
}

void Recording::KeepRings(pid_t program) noexcept {
  Guard([&] {
    LookAtSpool();
    if (!spool_.taking()) return;
    Takeover job{arena_, server_};
    job.spool = spool_.file();
    job.program_pid = static_cast<uint32_t>(program);
    job.program_start = storage::ProcessStartTime(program);
    job.outlive_ms = options_.outlive_ms;
    const int error = keeper_.Start(job, writer_.claim());
    spool_.SetProgram(job.program_pid, job.program_start, error);
    if (error == 0) return;
    NoteUnprotected("rings",
                    fmt::format("no process could be started that keeps what lies in the threads' "
                                "rings ({}); it is lost when acltape and the program are killed "
                                "together",
                                std::strerror(error)),
                    "allow one process more");
  });
}

void Recording::NoteUnprotected(const std::string& subject, const std::string& cause,
                                const std::string& remedy) {
  writer_.AddLedger({"unprotected", Severity::kInfo, 1, subject, cause, remedy});
  writer_.Commit();
}

void Recording::LookAtSpool() {
  if (spool_.taking() || told_of_spool_) return;
  told_of_spool_ = true;
  keeper_.End();
  NoteUnprotected("spool",
                  fmt::format("no file beside the trace has what was received: {}; what the trace "
                              "does not have yet is lost when acltape is killed",
                              spool_.why_not()),
                  "make room on the disk of the trace, and record without @max-size"_cli);
}

// Records that were received become rows all the same, in the room that was reserved. Contents do
// not.
void Recording::StopOnFullDisk() {
  if (disk_was_full_ || !writer_.disk_is_full()) return;
  disk_was_full_ = true;
  arena_.header().stop.store(1);
  spool_.GiveUp("its disk is full");
  trace_.Note(Severity::kDataLoss, "recording_stopped", "trace", FullDisk(),
              "make room, or record fewer values (@payload none)"_cli);
}

void Recording::SetWindow(bool open) {
  wire::ArenaHeader& header = arena_.header();
  if (!(open ? wire::OpenWindow(header) : wire::CloseWindow(header))) return;
  const int64_t now = Now();
  closes_.reset();
  if (open && options_.duration_ns) closes_ = now + *options_.duration_ns;
  if (options_.window_changed) options_.window_changed(open, now - begin_);
}

void Recording::TurnWindow() {
  if (ChildProcess::TakeToggles() % 2 != 0) {
    opens_.reset();
    SetWindow((arena_.header().window.load() & 1) == 0);
  }
  const int64_t now = Now();
  if (opens_ && now >= *opens_) {
    opens_.reset();
    SetWindow(true);
  } else if (closes_ && now >= *closes_) {
    SetWindow(false);
  }
}

void Recording::Tick(int64_t now) {
  if (failure_.empty()) {
    Guard([&] { size_limit_.Look(now, static_cast<int64_t>(backlog_.bytes())); });
  }
  if (now - last_tick_ < 100 * kMillisecond) return;
  last_tick_ = now;
  if (now - last_living_ >= 250 * kMillisecond) {
    last_living_ = now;
    drain_.CheckLiving();
  }
  if (failure_.empty() && now - last_commit_ >= 1000 * kMillisecond) {
    last_commit_ = now;
    Guard([&] {
      LookAtSpool();
      trace_.buffers().WriteLiving();
      trace_.handles().WriteLiving();
      trace_.windows().Write();
      writer_.Commit();
      StopOnFullDisk();
    });
  }
  SayUnknownMemory();
  if (options_.progress) {
    options_.progress({trace_.calls(), trace_.leaves(),
                       failure_.empty() ? writer_.payload_bytes() : 0, now - begin_});
  }
}

void Recording::SayUnknownMemory() {
  wire::ArenaHeader& header = arena_.header();
  if (said_unknown_memory_ || header.unknown_memory.load() != 2) return;
  said_unknown_memory_ = true;
  // The program could write here: the name ends where the room does.
  const char* name = header.unknown_memory_name;
  const std::string memory(name, strnlen(name, sizeof(header.unknown_memory_name)));
  if (options_.memory_not_known) options_.memory_not_known(memory);
}

void Recording::DrainUntilEnd() {
  // Each look at the rings may take a processor from the program: the pause between two grows until
  // a ring is an eighth full by then. A ring holds tens of milliseconds of the fastest producer.
  constexpr int64_t kLongestPause = 8 * kMillisecond;
  constexpr int64_t kSlice =
      2 * kMillisecond;  // longest time of writing, before the rings are looked at again
  const uint64_t ring_bytes = arena_.header().ring_bytes;
  SpareTime spare(Now());
  int64_t pause = kMillisecond / 4;
  for (;;) {
    const bool full = BacklogIsFull();
    if (full) NoteFullBacklog();
    const size_t drained = full ? 0 : Round();
    if (child_->HasEnded()) return;
    TurnWindow();
    const int64_t now = Now();
    Tick(now);
    const bool can_wait = drained > 0 && BacklogCanWait();
    // A ring that filled to a half since the last look would be full before a slice is over. The
    // program does not wait while there is room for what waits.
    const bool hurried = drained > ring_bytes / 2;
    const int64_t left = full ? kSlice : hurried ? 0 : std::min(kSlice, spare.Left(now, can_wait));
    if (left > 0 && !backlog_.empty()) {
      Write(now + left);
      if (!backlog_.empty()) continue;
    }
    if (drained > ring_bytes / 8) pause = std::max(pause / 2, kMillisecond / 8);
    if (drained < ring_bytes / 32) pause = std::min(pause * 2, kLongestPause);
    Sleep(pause);
  }
}

// The program has ended; processes it started may still run, and even record without a pause.
void Recording::DrainRest() {
  const int64_t deadline = Now() + options_.outlive_ms * kMillisecond;
  for (;;) {
    while (BacklogIsFull()) {
      NoteFullBacklog();
      WriteAndTick();
    }
    // The living are looked for first. So the records of a thread that is gone by now are all in
    // its ring, and the round below drains that ring to its end.
    drain_.CheckLiving();
    const size_t drained = Round();
    if (drain_.LivingSlots() == 0) break;
    const int64_t now = Now();
    if (now >= deadline) {
      outlived_ = true;
      break;
    }
    WriteAndTick();
    if (drained == 0 && backlog_.empty()) Sleep(kMillisecond);
  }
  if (outlived_) {
    arena_.header().stop.store(1);
    const int64_t end = Now() + 200 * kMillisecond;
    while (Round() > 0 && Now() < end) {
    }
  }
  drain_.FinishAll();
  if (failure_.empty()) {
    Guard([&] { backlog_.AppendClosed(CountsOf(arena_.header(), outlived_)); });
  }
  keeper_.End();
  while (!backlog_.empty()) WriteAndTick();
}

void Recording::Close(RecordSummary& summary) {
  const wire::ArenaHeader& header = arena_.header();
  if (outlived_) NoteOutlived(trace_);
  server_.Serve(0);
  NoteLeftOut(header, trace_);
  if (drain_.unmapped_rings() > 0) {
    trace_.Note(Severity::kDataLoss, "rings_not_mapped", "threads",
                "the system refused the recorder the memory of a thread's ring, the thread was not "
                "recorded",
                "allow acltape more address space or mappings, or record with smaller rings",
                drain_.unmapped_rings());
  }
  if (header.torch_processes.load() == 0 && header.acl_processes.load() == 0 &&
      !trace_.met_torch()) {
    trace_.Note(Severity::kNotice, "no_operators", options_.command[0],
                header.attached_processes.load() == 0
                    ? "the recorder came into no process of the program"
                    : "no process that the recorder came into loaded libtorch or an ACL library",
                "check that the command runs the program that was meant, dynamically linked; "
                "set-user-id programs and what they start cannot be recorded");
  }
  if (child_->signal() != 0) {
    trace_.Note(Severity::kNotice, "program_killed", options_.command[0],
                fmt::format("signal {} ended the program", child_->signal()),
                "the trace holds every call that was complete");
  }
  if (!options_.soft_findings.empty()) {
    for (const auto& entry : ReadSoftFindings(options_.soft_findings)) writer_.AddLedger(entry);
  }
  size_limit_.Finish();
  if (size_limit_.windows_dropped() > 0) {
    trace_.Note(Severity::kNotice, "oldest_dropped", "trace",
                fmt::format("the trace came to its greatest size, so the calls of its {} oldest "
                            "windows were dropped",
                            size_limit_.windows_dropped()),
                "allow a larger @max-size, or record fewer values or steps"_cli,
                size_limit_.calls_dropped());
  }
  StopOnFullDisk();
  trace_.Finish();
  writer_.SetMeta("exit_code", std::to_string(child_->exit_code()));
  writer_.SetMeta("signal", std::to_string(child_->signal()));
  writer_.SetMeta("end_wall_ns", std::to_string(WallNs()));
  writer_.SetMeta("wall_ns", std::to_string(Now() - begin_));
  writer_.SetMeta("torch_processes", std::to_string(header.torch_processes.load()));
  writer_.SetMeta("acl_processes", std::to_string(header.acl_processes.load()));
  summary.state = child_->signal() != 0 || trace_.data_lost() ? "partial" : "complete";
  writer_.Finish(summary.state);
}

RecordSummary Recording::Run(ChildProcess& child) noexcept {
  child_ = &child;
  begin_ = Now();
  if (options_.delay_ns) opens_ = begin_ + *options_.delay_ns;
  const bool open_now = !options_.start_closed && !options_.delay_ns;
  if (options_.duration_ns && open_now) closes_ = begin_ + *options_.duration_ns;
  KeepOn(&Recording::DrainUntilEnd);
  KeepOn(&Recording::DrainRest);
  heartbeat_.reset();

  RecordSummary summary;
  summary.exit_code = child.exit_code();
  summary.signal = child.signal();
  if (failure_.empty()) Guard([&] { Close(summary); });
  if (failure_.empty() && disk_was_full_) Guard([&] { failure_ = FullDisk(); });
  if (!failure_.empty()) summary.state = "partial";
  summary.payload_bytes = writer_.payload_bytes();
  summary.failure = std::move(failure_);
  summary.calls = trace_.calls();
  summary.leaves = trace_.leaves();
  summary.attached_processes = arena_.header().attached_processes.load();
  summary.torch_processes = arena_.header().torch_processes.load();
  summary.acl_processes = arena_.header().acl_processes.load();
  summary.windows = trace_.windows().count();
  summary.never_opened = arena_.header().window.load() == 0;
  SayUnknownMemory();
  summary.steps_seen = arena_.header().steps_seen.load();
  summary.wall_ns = Now() - begin_;
  return summary;
}

void ReadBack(const std::string& path, RecordSummary& summary) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) summary.file_bytes = status.st_size;
  try {
    summary.ledger = storage::Reader(path).Ledger();
  } catch (const std::exception&) {
    // The failure is told already.
  }
}

}  // namespace

RecordSummary Record(const RecordOptions& options) {
  if (options.command.empty()) throw Error(ErrorKind::kUsage, "no program to record was named");
  FindProgram(options.command[0]);
  ArenaOptions arena_options;
  arena_options.slots = options.slots;
  arena_options.ring_bytes = RingBytes(options);
  arena_options.levels = options.levels;
  arena_options.payload = options.payload;
  arena_options.composites = options.composites;
  arena_options.modules = options.modules;
  arena_options.stacks = options.stacks;
  arena_options.open = !options.start_closed && !options.delay_ns;
  arena_options.steps = options.steps;
  arena_options.limit_size = options.max_bytes > 0;
  arena_options.steps_from = options.steps_from;
  arena_options.device_times = options.device_times;
  arena_options.patience_ns = options.patience_ns;
  ArenaOwner arena(arena_options);
  ArenaServer server(arena);

  storage::Writer::Options writer_options;
  writer_options.overwrite = options.overwrite;
  writer_options.base_ns = static_cast<int64_t>(arena.header().base_ns);
  if (options.payload == wire::PayloadPolicy::kAll) MakeQuickForValues(writer_options);
  storage::Writer writer(options.output, writer_options);
  std::optional<Recording> recording;
  std::optional<ChildProcess> child;
  try {
    WriteFacts(writer, options);
    recording.emplace(options, arena, server, writer);
    child.emplace(options.command, ProgramEnvironment(options, arena, server),
                  [&](pid_t program) { recording->KeepRings(program); });
  } catch (...) {
    recording.reset();
    writer.Discard();
    throw;
  }
  RecordSummary summary = recording->Run(*child);
  recording.reset();
  ReadBack(options.output, summary);
  return summary;
}

}  // namespace acltape::collector
