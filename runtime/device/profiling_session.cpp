#include "runtime/device/profiling_session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <type_traits>
#include <vector>

#include "runtime/device/context.h"
#include "runtime/device/error.h"
#include "runtime/device/stream.h"
#include "runtime/device/task.h"
#include "runtime/device/thread_state.h"

namespace acltape::device {
namespace {

namespace fs = std::filesystem;

// One profile keeps at most so many rows; the rest is counted.
constexpr size_t kMostRows = size_t{4} << 20;

std::atomic<uint64_t> newest_call{0};
thread_local constinit uint64_t innermost_call = 0;
// While this thread is in the sink: what is called there is the sink's own.
thread_local constinit bool in_sink = false;

struct Call {
  uint64_t number;
  const char* name;
  uint32_t thread;
  int64_t begin_ns, end_ns;
};

struct Span {
  const char* name;
  TaskKind kind;
  uint32_t stream;
  uint64_t call;
  uint32_t thread;
  int64_t launch_ns, begin_ns, end_ns;
};

int64_t Nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

const char* NameOf(TaskKind kind) {
  switch (kind) {
    case TaskKind::kKernel:
    case TaskKind::kRandom:
      return "kernel";
    case TaskKind::kCopy:
      return "copy";
    case TaskKind::kFill:
      return "fill";
    case TaskKind::kEventRecord:
      return "event_record";
    case TaskKind::kEventWait:
    case TaskKind::kValueWait:
      return "wait";
    case TaskKind::kModel:
      return "model";
    default:
      return "other";
  }
}

// PROF_000001_20261130101500123_ABCDEFGHIJKLMNOP
std::string NameOfProfile(int64_t wall_ns) {
  const time_t seconds = wall_ns / 1'000'000'000;
  tm parts{};
  localtime_r(&seconds, &parts);
  char time[32];
  std::strftime(time, sizeof(time), "%Y%m%d%H%M%S", &parts);
  static std::atomic<uint32_t> number{0};
  char text[96];
  std::snprintf(text, sizeof(text), "PROF_%06u_%s%03d_", number.fetch_add(1) + 1, time,
                static_cast<int>(wall_ns / 1'000'000 % 1000));
  std::string name = text;
  std::mt19937_64 random(static_cast<uint64_t>(wall_ns) * 31 + static_cast<uint64_t>(getpid()));
  for (int i = 0; i < 16; ++i) name += static_cast<char>('A' + random() % 26);
  return name;
}

struct State {
  std::mutex mutex;
  const SoftProfileSink* sink = nullptr;
  std::string results;  // empty: closed
  int depth = 0;
  std::string folder;
  int64_t begin_raw_ns = 0, begin_wall_ns = 0;
  std::vector<Call> calls;
  std::map<int, std::vector<Span>> spans;  // by device
  size_t rows = 0;
  uint64_t lost = 0;

  bool Take() {
    if (rows < kMostRows) return ++rows, true;
    ++lost;
    return false;
  }
};

State& GetState() {
  static State& state = *new State;  // outlives late tasks
  return state;
}

bool Fails(const std::string& what) {
  const std::string text =
      "the profile cannot be written: " + what + " (" + std::strerror(errno) + ")";
  SetMessage(text.c_str());
  return false;
}

bool Write(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return Fails(path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  return (written && closed) || Fails(path);
}

std::string StartInfo(const State& state) {
  char text[256];
  std::snprintf(text, sizeof(text),
                "{\"collectionTimeBegin\": \"%lld\", \"clockMonotonicRaw\": \"%lld\"}\n",
                static_cast<long long>(state.begin_wall_ns / 1000),
                static_cast<long long>(state.begin_raw_ns));
  return text;
}

// A row of a table from its cells.
template <typename... Cells>
void AddRow(std::string& text, const Cells&... cells) {
  auto add = [&text, first = true](const auto& cell) mutable {
    if (!first) text += '\t';
    first = false;
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(cell)>>) {
      text += std::to_string(cell);
    } else {
      text += cell;
    }
  };
  (add(cells), ...);
  text += '\n';
}

std::string TableOf(const std::vector<Call>& calls) {
  std::string text;
  AddRow(text, "number", "name", "thread", "begin_ns", "end_ns");
  for (const Call& call : calls) {
    AddRow(text, call.number, call.name, call.thread, call.begin_ns, call.end_ns);
  }
  return text;
}

std::string TableOf(const std::vector<Span>& spans) {
  std::string text;
  AddRow(text, "name", "kind", "stream", "call", "thread", "launch_ns", "begin_ns", "end_ns");
  for (const Span& span : spans) {
    AddRow(text, span.name, NameOf(span.kind), span.stream, span.call, span.thread, span.launch_ns,
           span.begin_ns, span.end_ns);
  }
  return text;
}

bool MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return true;
  errno = error.value();
  return Fails(path);
}

bool WriteProfile(const State& state) {
  const std::string host = state.folder + "/host";
  if (!MakeFolder(host + "/data") || !Write(host + "/start_info", StartInfo(state)) ||
      !Write(host + "/data/calls.tsv", TableOf(state.calls))) {
    return false;
  }
  for (const auto& [device, spans] : state.spans) {
    const std::string number = std::to_string(device);
    const std::string place = state.folder + "/device_" + number;
    if (!MakeFolder(place + "/data") || !Write(place + "/start_info." + number, StartInfo(state)) ||
        !Write(place + "/data/tasks.tsv", TableOf(spans))) {
      return false;
    }
  }
  return state.lost == 0 ||
         Write(host + "/data/lost", std::to_string(state.lost) + " calls and tasks\n");
}

}  // namespace

std::atomic<bool> ProfilingSession::on_{false};

ProfilingSession& ProfilingSession::Get() {
  static ProfilingSession session;
  return session;
}

int64_t ProfilingSession::NowNs() { return Nanoseconds(CLOCK_MONOTONIC_RAW); }

void ProfilingSession::Open(const std::string& folder) {
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  state.results = folder;
}

bool ProfilingSession::Start() {
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  if (state.depth > 0 || state.results.empty()) return ++state.depth, true;
  state.begin_wall_ns = Nanoseconds(CLOCK_REALTIME);
  state.begin_raw_ns = NowNs();
  state.folder = state.results + "/" + NameOfProfile(state.begin_wall_ns);
  if (!MakeFolder(state.folder)) return false;
  state.calls.clear();
  state.spans.clear();
  state.rows = 0;
  state.lost = 0;
  if (const Context* context = CurrentContext(nullptr)) state.spans[context->device().id];
  state.depth = 1;
  on_.store(true);
  return true;
}

bool ProfilingSession::Stop() {
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  if (state.depth == 0 || --state.depth > 0 || state.folder.empty()) return true;
  on_.store(state.sink != nullptr);
  const bool written = WriteProfile(state);
  state.folder.clear();
  return written;
}

void ProfilingSession::Close() {
  State& state = GetState();
  {
    const std::lock_guard lock(state.mutex);
    if (state.depth > 1) state.depth = 1;
  }
  Stop();
  const std::lock_guard lock(state.mutex);
  state.results.clear();
}

void ProfilingSession::SetSink(const SoftProfileSink* sink) {
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  state.sink = sink;
  on_.store(sink != nullptr || !state.folder.empty());
}

void ProfilingSession::NoteCall(uint64_t number, const char* name, int64_t begin_ns,
                                int64_t end_ns) {
  State& state = GetState();
  const uint32_t thread = SystemThreadId();
  const std::lock_guard lock(state.mutex);
  if (state.sink != nullptr) {
    in_sink = true;
    state.sink->call(number, name, thread, begin_ns, end_ns);
    in_sink = false;
  }
  if (state.folder.empty() || !state.Take()) return;
  state.calls.push_back({number, name, thread, begin_ns, end_ns});
}

// A task of a graph was launched when the graph was.
void ProfilingSession::NoteTask(const Task& task, const Runner& runner, int64_t begin_ns,
                                int64_t end_ns) {
  const Stream& stream = *runner.stream();
  const Task& launched = runner.launched() != nullptr ? *runner.launched() : task;
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  const int device = stream.context().device().id;
  if (state.sink != nullptr) {
    in_sink = true;
    state.sink->task(launched.submitted_by, task.name, NameOf(task.kind),
                     static_cast<uint32_t>(device), stream.id(), begin_ns, end_ns);
    in_sink = false;
  }
  if (state.folder.empty() || !state.Take()) return;
  state.spans[device].push_back({task.name, task.kind, stream.id(), launched.submitted_by,
                                 launched.thread_id, launched.submitted_ns, begin_ns, end_ns});
}

uint64_t ProfiledCall::NumberOfInnermost() { return innermost_call; }

void ProfiledCall::Begin() {
  if (in_sink) return;
  around_ = innermost_call;
  number_ = innermost_call = newest_call.fetch_add(1) + 1;
  begin_ns_ = ProfilingSession::NowNs();
}

void ProfiledCall::End() {
  innermost_call = around_;
  ProfilingSession::Get().NoteCall(number_, name_, begin_ns_, ProfilingSession::NowNs());
}

}  // namespace acltape::device

void SoftSetProfileSink(const SoftProfileSink* sink) {
  acltape::device::ProfilingSession::Get().SetSink(sink);
}
