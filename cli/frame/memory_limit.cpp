#include "cli/frame/memory_limit.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <new>
#include <utility>

#include "cli/frame/command.h"
#include "cli/frame/options.h"
#include "cli/terminal/plain_sentence.h"
#include "replayer/device/device_work.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

// The memory that a command needs besides what the process has in use when it starts.
constexpr int64_t kRoomToStart = int64_t{32} << 20;

// How SQLite, libtorch and the loader of libraries say it.
constexpr std::string_view kWordsOfNoMemory[] = {
    "out of memory", "not enough memory",     "allocate memory",
    "bad_alloc",     "failed to map segment", "cannot map zero-fill pages"};

// Made in advance, because there may be no memory for it later. Empty: no limit. Never destroyed,
// since threads may ask for it while the process ends, and itself not on the heap.
std::string& Sentence() {
  alignas(std::string) static std::byte room[sizeof(std::string)];
  static std::string& sentence = *new (room) std::string;
  return sentence;
}

std::string SizeText(int64_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, 'G'}, {20, 'M'}, {10, 'K'}}) {
    if (bytes > 0 && bytes % (int64_t{1} << shift) == 0)
      return fmt::format("{}{}", bytes >> shift, unit);
  }
  return fmt::format("{} bytes", bytes);
}

// Bytes that count for RLIMIT_DATA now.
int64_t BytesInUse() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;
  file >> size >> resident >> shared >> text >> library >> data;
  return data * sysconf(_SC_PAGESIZE);
}

[[noreturn]] void EndWithSentence() {
  SayPlainly(Sentence());
  _exit(kExitDevice);
}

// The main thread has code that catches the exception. In a thread of a device or of libtorch
// nothing may, and the process would abort.
void RefuseMemory() {
  if (gettid() != getpid()) EndWithSentence();
  throw std::bad_alloc();
}

std::terminate_handler& FormerHandler() {
  static std::terminate_handler former = nullptr;
  return former;
}

// Memory was refused where no exception may leave, such as in a destructor.
[[noreturn]] void EndUncaught() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    EndWithSentence();
  } catch (...) {
  }
  if (FormerHandler() != nullptr) FormerHandler()();
  std::abort();
}

void SetLimit(int64_t bytes) {
  const int64_t least = BytesInUse() + kRoomToStart;
  if (bytes < least) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("`@max-memory` allows {}, but a command needs at least {}M to start."_cli,
                    SizeText(bytes), (least >> 20) + 1));
  }
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  // A lower limit that the process was started with stays.
  if (limit.rlim_cur < static_cast<rlim_t>(bytes)) return;
  limit.rlim_cur = static_cast<rlim_t>(bytes);
  limit.rlim_max = limit.rlim_cur;
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace

void AddMaxMemoryOption(CLI::App& command) {
  const auto has = [&](const char* name) { return command.get_option_no_throw(name) != nullptr; };
  if (!has("trace") && !has("traces") && !has("a")) return;
  AddOption(
      command, "max-memory", [](const std::string&) {},
      "Memory that the command, and each process that it starts, may use (512M, 2G); needing "
      "more ends it with a sentence (default: no bound)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->option_text("SIZE");
}

void LimitMemory(const CLI::App& command) {
  const CLI::Option* option = OptionOf(command, "@max-memory"_cli);
  const bool given = option != nullptr && option->count() > 0;
  if (given) SetLimit(option->as<int64_t>());
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  Sentence() = fmt::format("this needs more than the {} that {} allows.",
                           SizeText(static_cast<int64_t>(limit.rlim_cur)),
                           given ? "@max-memory"_cli : "`@max-memory` or `ulimit -d`"_cli);
  std::set_new_handler(RefuseMemory);
  FormerHandler() = std::set_terminate(EndUncaught);
}

bool SaysNoMemory(const Error& error) {
  const auto* call = dynamic_cast<const replayer::CallFailed*>(&error);
  if (call != nullptr && call->code() == ACL_ERROR_RT_MEMORY_ALLOCATION) return true;
  const std::string_view text = error.what();
  return std::any_of(std::begin(kWordsOfNoMemory), std::end(kWordsOfNoMemory),
                     [text](std::string_view words) { return text.find(words) != text.npos; });
}

bool MemoryIsLimited() { return !Sentence().empty(); }

std::string NeedsMoreMemory(std::string_view cause) {
  if (cause.empty()) return Sentence();
  while (cause.ends_with('.')) cause.remove_suffix(1);
  return fmt::format("{}: {}", Sentence().substr(0, Sentence().size() - 1), cause);
}

}  // namespace acltape::cli
