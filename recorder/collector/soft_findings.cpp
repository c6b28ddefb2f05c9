#include "recorder/collector/soft_findings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace acltape::collector {
namespace {

constexpr size_t kMostLines = 100000;
constexpr size_t kMostText = 400;
constexpr size_t kMostRows = 200;

struct Kind {
  std::string_view name;
  const char* remedy;
};
constexpr Kind kKinds[] = {
    {"unwritten_read", "write the memory before it is read: zeros in place of empty, or a copy"},
    {"write_past_block", "give the kernel as much memory as it writes, or correct its sizes"},
    {"read_past_block",
     "give the task as many bytes as it reads, or a tensor of the dtype that the memory has"},
    {"outside_block", "give the task as much memory as it touches, or correct its sizes"},
    {"no_host_memory",
     "the soft device's memory is the host's: use a smaller model or batch, or a host with more"},
    {"freed_memory", "keep the memory until the work that uses it has ended"},
};

struct Line {
  std::string_view process;
  const Kind* kind = nullptr;
  std::string_view subject;
  int64_t count = 0;
  std::string_view text;
};

std::optional<Line> ParseLine(std::string_view text) {
  std::array<std::string_view, 5> words;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t end = i + 1 < words.size() ? text.find('\t') : text.size();
    if (end == std::string_view::npos) return std::nullopt;
    words[i] = text.substr(0, std::min(end, kMostText));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Line line{words[0], nullptr, words[2], 0, words[4]};
  for (const Kind& kind : kKinds) {
    if (kind.name == words[1]) line.kind = &kind;
  }
  const auto read = std::from_chars(words[3].data(), words[3].data() + words[3].size(), line.count);
  const bool number = read.ec == std::errc() && read.ptr == words[3].data() + words[3].size();
  if (line.kind == nullptr || !number || line.count < 1) return std::nullopt;
  return line;
}

}  // namespace

std::vector<storage::LedgerEntry> ReadSoftFindings(const std::string& path) {
  struct Found {
    std::map<std::string, int64_t> counts;  // by process
    std::string text;                       // the first one
  };
  std::map<std::pair<const Kind*, std::string>, Found> found;
  std::ifstream file(path);
  size_t lines = 0;
  for (std::string text; lines < kMostLines && std::getline(file, text); ++lines) {
    const std::optional<Line> line = ParseLine(text);
    if (!line) continue;
    Found& row = found[{line->kind, std::string(line->subject)}];
    if (row.counts.empty()) row.text = line->text;
    int64_t& count = row.counts[std::string(line->process)];
    count = std::max(count, line->count);
  }
  std::vector<storage::LedgerEntry> entries;
  for (const auto& [key, row] : found) {
    storage::LedgerEntry entry;
    entry.kind = key.first->name;
    entry.severity = storage::Severity::kNotice;
    entry.count = 0;
    constexpr int64_t kMost = int64_t{1} << 40;
    for (const auto& [process, count] : row.counts) {
      entry.count = std::min(kMost, entry.count + std::min(kMost, count));
    }
    entry.subject = key.second;
    entry.cause = "the soft device saw it at least so often; first: " + row.text;
    entry.remedy = key.first->remedy;
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.kind, b.count) < std::tie(b.kind, a.count);
  });
  if (entries.size() > kMostRows) entries.resize(kMostRows);
  return entries;
}

}  // namespace acltape::collector
