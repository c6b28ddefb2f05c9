#include "runtime/device/findings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

namespace acltape::device {
namespace {

struct Seen {
  uint64_t count = 0;
  std::string text;  // about the first time
};

struct Findings {
  std::mutex mutex;
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

}  // namespace

bool KeepsFindings() { return FileOfFindings() != nullptr; }

void ReportFinding(const char* kind, const std::string& subject, const std::string& text) {
  if (!KeepsFindings()) return;
  std::string line;
  {
    Findings& findings = GetFindings();
    std::lock_guard lock(findings.mutex);
    Seen& seen = findings.seen[{kind, subject}];
    if (seen.count++ == 0) seen.text = OnOneLine(text);
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
