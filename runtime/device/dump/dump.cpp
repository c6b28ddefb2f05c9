#include "runtime/device/dump/dump.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/device/context.h"
#include "runtime/device/dump/dump_file.h"
#include "runtime/device/dump/dump_statistics.h"
#include "runtime/device/stream.h"
#include "runtime/device/task.h"

namespace acltape::device {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

constinit std::atomic<uint32_t> what_is_dumped{0};  // SoftDumps()

struct Dumps {
  // Held while a file is written or the callback runs, so that chunks of two files do not mix. The
  // callback may take itself away.
  std::recursive_mutex mutex;
  bool configured = false;  // by aclInit
  bool model_dump = false;  // between aclmdlInitDump and aclmdlFinalizeDump
  DumpSettings settings;
  std::string begun;  // when the settings came, as folders are called
  DumpCallback callback = nullptr;
  uint64_t tasks = 0;
  uint64_t newest_time = 0;  // in microseconds; no two files have the same

  std::string argument_folder;                     // empty: none are dumped
  std::map<std::string, uint32_t> argument_files;  // by operator
  std::set<std::string> seen_arguments;
};

Dumps& GetDumps() {
  static Dumps& dumps = *new Dumps;
  return dumps;
}

// A callback that nobody configured anything for gets outputs.
bool TensorsAreDumped(const Dumps& dumps) {
  return dumps.settings.tensors || (dumps.model_dump && dumps.callback != nullptr);
}

void Changed(const Dumps& dumps) {
  what_is_dumped.store((TensorsAreDumped(dumps) ? kSoftDumpsTensors : 0) |
                           (dumps.argument_folder.empty() ? 0 : kSoftDumpsArguments),
                       std::memory_order_relaxed);
}

// "20260721153012"
std::string DayAndTime(std::time_t time) {
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%d%H%M%S", &parts);
  return text;
}

// "20260721153012345"
std::string TimeAsText(uint64_t milliseconds) {
  char text[8];
  std::snprintf(text, sizeof(text), "%03u", static_cast<unsigned>(milliseconds % 1000));
  return DayAndTime(static_cast<std::time_t>(milliseconds / 1000)) + text;
}

void TakeSettings(Dumps& dumps, const DumpSettings& settings) {
  dumps.settings = settings;
  dumps.begun = DayAndTime(std::time(nullptr));
  Changed(dumps);
}

uint64_t NewTime(Dumps& dumps) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  dumps.newest_time = std::max(dumps.newest_time + 1, static_cast<uint64_t>(now.count()));
  return dumps.newest_time;
}

void MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), 0755);
    if (slash == std::string::npos) return;
  }
}

// False, with a line on stderr, when it cannot be written.
bool WriteFile(const std::string& path, const std::string& content) {
  MakeFolders(path.substr(0, path.rfind('/')));
  std::ofstream file(path, std::ios::binary);
  if (file.write(content.data(), static_cast<std::streamsize>(content.size())).flush()) return true;
  std::fprintf(stderr, "acltape: the dump file %s cannot be written\n", path.c_str());
  return false;
}

// Hands the file over in chunks. The rest is left out once the callback refuses one.
void HandOver(DumpCallback callback, const std::string& path, const std::string& content) {
  for (size_t offset = 0; offset < content.size(); offset += kChunkBytes) {
    const size_t bytes = std::min(kChunkBytes, content.size() - offset);
    std::vector<char> memory(sizeof(acldumpChunk) + bytes);
    auto* chunk = reinterpret_cast<acldumpChunk*>(memory.data());
    std::snprintf(chunk->fileName, sizeof(chunk->fileName), "%s", path.c_str());
    chunk->bufLen = static_cast<uint32_t>(bytes);
    chunk->isLastChunk = offset + bytes == content.size() ? 1 : 0;
    chunk->offset = static_cast<int64_t>(offset);
    std::memcpy(chunk->dataBuf, content.data() + offset, bytes);
    if (callback(chunk, static_cast<int32_t>(memory.size())) != 0) return;
  }
}

// "Add.aclnnAdd.12.3.1700000000000000": type, name, task, stream and time.
std::string DumpFileName(const char* op, uint64_t task, uint32_t stream, uint64_t time_us) {
  return TypeOfOperator(op) + "." + op + "." + std::to_string(task) + "." + std::to_string(stream) +
         "." + std::to_string(time_us);
}

std::string FolderOf(const Dumps& dumps, int32_t device) {
  if (!dumps.settings.tensors) return "";
  return dumps.settings.path + "/" + dumps.begun + "/" + std::to_string(device) + "/";
}

}  // namespace

void ConfigureDumps(const DumpSettings& settings) {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  dumps.configured = settings.UsesModelDump();
  TakeSettings(dumps, settings);
}

void EndDumps() {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  dumps.configured = dumps.model_dump = false;
  dumps.callback = nullptr;
  dumps.argument_folder.clear();
  TakeSettings(dumps, {});
}

bool BeginModelDump() {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  if (dumps.configured) return false;
  dumps.model_dump = true;
  Changed(dumps);
  return true;
}

bool SetModelDump(const DumpSettings& settings) {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  if (!dumps.model_dump) return false;
  TakeSettings(dumps, settings);
  return true;
}

bool EndModelDump() {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  if (!dumps.model_dump) return false;
  dumps.model_dump = false;
  TakeSettings(dumps, {});
  return true;
}

void SetDumpCallback(DumpCallback callback) {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  dumps.callback = callback;
  Changed(dumps);
}

const char* DumpPathOf(acldumpType kind) {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  const std::vector<acldumpType>& kinds = dumps.settings.kinds;
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) return nullptr;
  return InternName(dumps.settings.path.c_str());
}

std::string ExceptionFolder(int32_t device) {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  const bool configured = std::ranges::any_of(dumps.settings.kinds, [](acldumpType kind) {
    return kind == AIC_ERR_BRIEF_DUMP || kind == AIC_ERR_NORM_DUMP || kind == AIC_ERR_DETAIL_DUMP;
  });
  if (!configured) return "";
  return dumps.settings.path + "/extra-info/data-dump/" + std::to_string(device) + "/";
}

bool WriteException(const std::string& path, const std::string& tag,
                    const std::vector<SavedTensor>& tensors) {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  const uint64_t time_us = NewTime(dumps);
  const std::string name = path.substr(path.rfind('/') + 1);
  // Files of one millisecond must not replace each other.
  uint64_t milliseconds = time_us / 1000;
  std::string file = path + ".custom." + TimeAsText(milliseconds);
  while (access(file.c_str(), F_OK) == 0) file = path + ".custom." + TimeAsText(++milliseconds);
  return WriteFile(file, SavedFileOf(name.c_str(), tag, tensors, time_us));
}

bool BeginArgumentDump(const std::string& folder) {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  if (!dumps.argument_folder.empty()) return false;
  dumps.argument_folder = folder;
  dumps.argument_files.clear();
  dumps.seen_arguments.clear();
  MakeFolders(folder);
  Changed(dumps);
  return true;
}

bool EndArgumentDump() {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  if (dumps.argument_folder.empty()) return false;
  dumps.argument_folder.clear();
  Changed(dumps);
  return true;
}

}  // namespace acltape::device

using namespace acltape::device;

uint32_t SoftDumps(void) { return what_is_dumped.load(std::memory_order_relaxed); }

void SoftDumpTensors(const char* op, const SoftTensor* tensors, size_t count, bool outputs) {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  if (!TensorsAreDumped(dumps)) return;
  if (!outputs) ++dumps.tasks;
  const bool usual = !dumps.settings.tensors;
  if (outputs ? !usual && !dumps.settings.outputs : usual || !dumps.settings.inputs) return;
  if (!dumps.settings.Wants(TypeOfOperator(op), op)) return;
  std::vector<SoftTensor> wanted;
  std::copy_if(tensors, tensors + count, std::back_inserter(wanted),
               [outputs](const SoftTensor& tensor) { return tensor.is_output == outputs; });
  if (wanted.empty()) return;
  const Runner* runner = Runner::Current();
  const Stream* stream = runner != nullptr ? runner->stream() : nullptr;
  const uint64_t time_us = NewTime(dumps);
  const int32_t device = stream != nullptr ? stream->context().device().id : 0;
  std::string path = FolderOf(dumps, device) +
                     DumpFileName(op, dumps.tasks, stream != nullptr ? stream->id() : 0, time_us);
  if (dumps.settings.statistics) {
    WriteFile(path + ".csv", StatisticsOf(op, wanted, dumps.settings.statistic_names));
  } else if (dumps.callback != nullptr) {
    HandOver(dumps.callback, path, DumpFileOf(op, wanted, time_us));
  } else {
    WriteFile(path, DumpFileOf(op, wanted, time_us));
  }
}

void SoftDumpArguments(const char* op, const char* text) {
  Dumps& dumps = GetDumps();
  const std::lock_guard lock(dumps.mutex);
  if (dumps.argument_folder.empty() || !dumps.seen_arguments.insert(text).second) return;
  const uint32_t number = dumps.argument_files[op]++;
  WriteFile(dumps.argument_folder + "/" + op + "_" + std::to_string(number) + ".json",
            std::string(text) + "\n");
}
