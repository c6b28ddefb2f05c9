#include "runtime/device/findings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace acltape::device {
namespace {

struct Seen {
  uint64_t count = 0;
  std::string text;  // about the first time
};

struct Findings {
  std::mutex mutex;
  pid_t process = 0;  // a child counts for itself
  std::map<std::pair<std::string, std::string>, Seen> seen;
};

Findings& GetFindings() {
  static Findings& findings = *new Findings;  // outlives late tasks
  return findings;
}

const char* FileOfFindings() {
  static const char* const path = std::getenv("ACLTAPE_SOFT_FINDINGS");
  return path != nullptr && *path != '\0' ? path : nullptr;
}

// A word of a line must not end it.
std::string OnOneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

constexpr size_t kMostSaid = 5;

// Kinds of which a process tells at its end, and what it says of each.
struct SaidAtEnd {
  std::string_view kind;
  const char* advice;
};
constexpr SaidAtEnd kSaidAtEnd[] = {
    // Nothing else tells of what did not fail.
    {kReadPastBlock,
     "a device reads there what happens to lie there; ACLTAPE_SOFT_BLOCKS=exact makes it a "
     "failure"},
    // A framework tells of the device's memory, of which there may be enough.
    {kNoHostMemory,
     "the soft device's memory is memory of this host; with ACLTAPE_SOFT_HOST_MEMORY=1024G a "
     "program can take more than the host has, as long as it does not use it"},
};

void SayAtEnd() {
  Findings& findings = GetFindings();
  std::lock_guard lock(findings.mutex);
  if (findings.process != getpid()) return;
  for (const SaidAtEnd& kind : kSaidAtEnd) {
    size_t count = 0;
    for (const auto& [key, seen] : findings.seen) {
      if (key.first != kind.kind || ++count > kMostSaid) continue;
      std::fprintf(stderr, "acltape soft device: %s: %s; seen %llu times\n", key.second.c_str(),
                   seen.text.c_str(), static_cast<unsigned long long>(seen.count));
    }
    if (count > kMostSaid) {
      std::fprintf(stderr, "acltape soft device: so did %zu others\n", count - kMostSaid);
    }
    if (count != 0) std::fprintf(stderr, "acltape soft device: %s\n", kind.advice);
  }
}

bool IsSaidAtEnd(std::string_view kind) {
  return std::any_of(std::begin(kSaidAtEnd), std::end(kSaidAtEnd),
                     [&](const SaidAtEnd& said) { return said.kind == kind; });
}

}  // namespace

bool KeepsFindings() { return FileOfFindings() != nullptr; }

void ReportFinding(const char* kind, const std::string& subject, const std::string& text) {
  const bool said_at_end = !KeepsFindings();
  if (said_at_end && !IsSaidAtEnd(kind)) return;
  std::string line;
  {
    Findings& findings = GetFindings();
    std::lock_guard lock(findings.mutex);
    if (findings.process != getpid()) {
      findings.process = getpid();
      findings.seen.clear();
    }
    Seen& seen = findings.seen[{kind, subject}];
    if (seen.count++ == 0) seen.text = OnOneLine(text);
    if (said_at_end) {
      [[maybe_unused]] static const int registered = std::atexit(SayAtEnd);
      return;
    }
    if ((seen.count & (seen.count - 1)) != 0) return;
    line = std::to_string(getpid()) + '\t' + kind + '\t' + OnOneLine(subject) + '\t' +
           std::to_string(seen.count) + '\t' + seen.text + '\n';
  }
  // Each line is one write at the end of the file, so lines of several processes do not mix.
  const int file = open(FileOfFindings(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
  close(file);
}

}  // namespace acltape::device
