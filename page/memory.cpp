#include "page/memory.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "storage/database.h"

namespace acltape::page {
namespace {

using nlohmann::json;

constexpr int64_t kPoints = 4000;
constexpr size_t kLargest = 40;

struct Change {
  int64_t at_ns = 0;
  int64_t bytes = 0;  // negative: freed
  int32_t role = 0;
};

struct Living {
  int64_t buffer = 0;
  int64_t bytes = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t alloc_call = 0;
  int64_t free_call = 0;
  int32_t role = 0;
};

// Numbers of the words for roles, in order of appearance.
class RoleNumbers {
 public:
  int32_t Of(const std::string& word) {
    const auto [found, added] = numbers_.emplace(word, static_cast<int32_t>(words_.size()));
    if (added) words_.push_back(word);
    return found->second;
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<std::string> words_;
};

}  // namespace

json MemoryOf(const storage::Reader& trace, const std::unordered_map<int64_t, std::string>& roles) {
  storage::Statement rows(trace.database(),
                          "SELECT buffer_id, ifnull(bytes, 0), ifnull(alloc_ns, 0), "
                          "ifnull(free_ns, 0), ifnull(alloc_call, 0), "
                          "ifnull(free_call, 0), ifnull(role, ''), device, is_foreign FROM buffer "
                          // A block is a frame for the tensors in it, which tell more.
                          "WHERE layer IS NULL OR layer <> 'block' OR buffer_id NOT IN "
                          "(SELECT block FROM buffer_row WHERE block IS NOT NULL)");
  const int64_t base_ns = std::stoll(trace.Meta("base_ns", "0"));
  RoleNumbers numbers;
  std::vector<Change> changes;
  std::vector<Living> buffers;
  int64_t untimed = 0, untimed_bytes = 0, count = 0;
  while (rows.Next()) {
    ++count;
    const int64_t bytes = rows.Integer(1);
    const int64_t begin = rows.Integer(2);
    if (begin == 0) {
      ++untimed;
      untimed_bytes += bytes;
      continue;
    }
    std::string word(rows.Text(6));
    if (const auto known = roles.find(rows.Integer(0)); word.empty() && known != roles.end()) {
      word = known->second;
    }
    if (word.empty()) word = "no leaf uses it";
    const int32_t role = numbers.Of(word);
    const int64_t end = rows.Integer(3);
    buffers.push_back({rows.Integer(0), bytes, begin, end, rows.Integer(4), rows.Integer(5), role});
  }
  // Memory that was there before the recording has no time of its own: it counts from the first
  // allocation that has one.
  int64_t earliest = INT64_MAX;
  for (const Living& buffer : buffers) {
    if (buffer.begin_ns >= base_ns) earliest = std::min(earliest, buffer.begin_ns);
  }
  if (earliest == INT64_MAX) earliest = base_ns;
  for (Living& buffer : buffers) {
    buffer.begin_ns = std::max(buffer.begin_ns, earliest);
    if (buffer.end_ns != 0) buffer.end_ns = std::max(buffer.end_ns, buffer.begin_ns);
    changes.push_back({buffer.begin_ns, buffer.bytes, buffer.role});
    if (buffer.end_ns != 0) changes.push_back({buffer.end_ns, -buffer.bytes, buffer.role});
  }
  json memory;
  memory["buffers"] = count;
  memory["untimed"] = untimed;
  memory["untimed_bytes"] = untimed_bytes;
  memory["roles"] = numbers.words();
  if (changes.empty()) return memory;
  // Memory that is freed at a moment is gone before the allocations of that moment.
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.bytes < b.bytes;
  });
  const int64_t first = changes.front().at_ns;
  const int64_t span = std::max<int64_t>(changes.back().at_ns - first, 1);
  std::vector<int64_t> now(numbers.words().size(), 0), most = now;
  int64_t alive = 0, most_alive = 0, most_at = first, bucket = 0;
  int64_t peak = 0, peak_at = first;
  json points = json::array();
  const auto close = [&](int64_t at_ns) { points.push_back(json::array({at_ns, most})); };
  for (const Change& change : changes) {
    const int64_t its = (change.at_ns - first) * (kPoints - 1) / span;
    if (its != bucket) {
      close(most_at);
      bucket = its;
      most = now;
      most_alive = alive;
      most_at = change.at_ns;
    }
    alive += change.bytes;
    now[static_cast<size_t>(change.role)] += change.bytes;
    if (alive >= most_alive) {
      most_alive = alive;
      most = now;
      most_at = change.at_ns;
    }
    if (alive > peak) {
      peak = alive;
      peak_at = change.at_ns;
    }
  }
  close(most_at);
  points.push_back(json::array({changes.back().at_ns, now}));
  memory["points"] = std::move(points);
  memory["peak_bytes"] = peak;
  memory["peak_ns"] = peak_at;
  memory["end_bytes"] = alive;
  std::erase_if(buffers, [&](const Living& buffer) {
    return buffer.begin_ns > peak_at || (buffer.end_ns != 0 && buffer.end_ns <= peak_at);
  });
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const Living& a, const Living& b) { return a.bytes > b.bytes; });
  memory["at_peak"] = buffers.size();
  if (buffers.size() > kLargest) buffers.resize(kLargest);
  memory["largest"] = json::array();
  for (const Living& buffer : buffers) {
    memory["largest"].push_back({buffer.buffer, buffer.bytes, buffer.role, buffer.alloc_call,
                                 buffer.free_call, buffer.begin_ns, buffer.end_ns});
  }
  return memory;
}

}  // namespace acltape::page
