#include "page/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "page/layers.h"
#include "storage/columns.h"
#include "storage/database.h"

namespace acltape::page {
namespace {

using nlohmann::json;

constexpr int64_t kPoints = 4000;
constexpr size_t kLargest = 40;
constexpr size_t kMostInside = 6000;  // tensors in blocks
constexpr size_t kMostDrawnBlocks = 500;

struct Change {
  int64_t at_ns = 0;
  int64_t bytes = 0;  // negative: freed
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

struct Times {
  int64_t begin_ns = 0;  // the first call begins
  int64_t end_ns = 0;    // the last one ends
};

Times TimesOfCalls(const storage::Reader& trace) {
  const int64_t base_ns = std::stoll(trace.Meta("base_ns", "0"));
  storage::Statement row(trace.database(),
                         "SELECT ifnull(min(begin_ns), 0), "
                         "ifnull(max(begin_ns + ifnull(duration_ns, 0)), 0) FROM call_row");
  row.Next();
  return {base_ns + row.Integer(0), base_ns + row.Integer(1)};
}

// Bytes over time: at most kPoints moments, each the one of its interval with most bytes.
class Curve {
 public:
  Curve(std::vector<Change> changes, size_t roles) : now_(roles, 0), most_(roles, 0) {
    // Memory that is freed at a moment is gone before the allocations of that moment.
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.bytes < b.bytes;
    });
    const int64_t first = changes.front().at_ns;
    const int64_t span = std::max<int64_t>(changes.back().at_ns - first, 1);
    int64_t most_alive = 0, most_at = first, bucket = 0;
    peak_at = first;
    for (const Change& change : changes) {
      const int64_t its = (change.at_ns - first) * (kPoints - 1) / span;
      if (its != bucket) {
        points.push_back(json::array({most_at, most_}));
        bucket = its;
        most_ = now_;
        most_alive = alive;
        most_at = change.at_ns;
      }
      alive += change.bytes;
      now_[static_cast<size_t>(change.role)] += change.bytes;
      if (alive >= most_alive) {
        most_alive = alive;
        most_ = now_;
        most_at = change.at_ns;
      }
      if (alive > peak) {
        peak = alive;
        peak_at = change.at_ns;
      }
    }
    points.push_back(json::array({most_at, most_}));
    points.push_back(json::array({changes.back().at_ns, now_}));
  }

  json points = json::array();
  int64_t peak = 0;
  int64_t peak_at = 0;
  int64_t alive = 0;  // in the end

 private:
  std::vector<int64_t> now_, most_;
};

// The memory of one place: a device or the host, and one layer of it.
json PlaceOf(const Place& place, const std::vector<LivingBuffer>& buffers, const Times& times,
             size_t roles) {
  std::vector<Change> changes;
  int64_t before = 0, before_bytes = 0;
  for (const LivingBuffer& buffer : buffers) {
    if (buffer.begin_ns < times.begin_ns) {
      ++before;
      before_bytes += buffer.bytes;
    }
    changes.push_back({std::max(buffer.begin_ns, times.begin_ns), buffer.bytes, buffer.role});
    // A buffer that is freed after the last call lived as long as the program, as far as the page
    // shows it.
    if (buffer.end_ns != 0 && buffer.end_ns <= times.end_ns) {
      changes.push_back({std::max(buffer.end_ns, times.begin_ns), -buffer.bytes, buffer.role});
    }
  }
  const Curve curve(std::move(changes), roles);
  std::vector<LivingBuffer> at_peak;
  std::copy_if(buffers.begin(), buffers.end(), std::back_inserter(at_peak),
               [&](const LivingBuffer& buffer) {
                 return std::max(buffer.begin_ns, times.begin_ns) <= curve.peak_at &&
                        (buffer.end_ns == 0 || buffer.end_ns > curve.peak_at);
               });
  std::stable_sort(at_peak.begin(), at_peak.end(),
                   [](const LivingBuffer& a, const LivingBuffer& b) { return a.bytes > b.bytes; });
  json view{
      {"device", place.device},    {"layer", LayerName(place.layer)}, {"buffers", buffers.size()},
      {"before", before},          {"before_bytes", before_bytes},    {"points", curve.points},
      {"peak_bytes", curve.peak},  {"peak_ns", curve.peak_at},        {"end_bytes", curve.alive},
      {"at_peak", at_peak.size()}, {"largest", json::array()}};
  if (at_peak.size() > kLargest) at_peak.resize(kLargest);
  for (const LivingBuffer& buffer : at_peak) {
    view["largest"].push_back({buffer.id, buffer.bytes, buffer.role, buffer.alloc_call,
                               buffer.free_call, buffer.begin_ns, buffer.end_ns});
  }
  return view;
}

// Blocks with the tensors in them: {"blocks": [[buffer, bytes, begin, end, call], ...], "inside":
// [[place of the block, buffer, offset, bytes, begin, end, call, role], ...], "inside_in_all": N}.
json AllocatorOf(const std::map<Place, std::vector<LivingBuffer>>& places) {
  json view{{"blocks", json::array()}, {"inside", json::array()}};
  size_t in_all = 0;
  for (const auto& [place, tensors] : places) {
    if (place.layer != Layer::kTensor || place.device == 0) continue;
    const auto found = places.find({place.device, Layer::kBlock});
    if (found == places.end()) continue;
    std::vector<LivingBuffer> blocks = found->second;
    std::stable_sort(
        blocks.begin(), blocks.end(),
        [](const LivingBuffer& a, const LivingBuffer& b) { return a.bytes > b.bytes; });
    if (blocks.size() > kMostDrawnBlocks) blocks.resize(kMostDrawnBlocks);
    const size_t first = view["blocks"].size();
    std::map<int64_t, size_t> by_id;
    for (const LivingBuffer& block : blocks) {
      by_id.emplace(block.id, first + by_id.size());
      view["blocks"].push_back(
          {block.id, block.bytes, block.begin_ns, block.end_ns, block.alloc_call, place.device});
    }
    std::map<int64_t, const LivingBuffer*> known;
    for (const LivingBuffer& block : blocks) known.emplace(block.id, &block);
    std::vector<const LivingBuffer*> inside;
    for (const LivingBuffer& tensor : tensors) {
      if (by_id.contains(tensor.block)) inside.push_back(&tensor);
    }
    in_all += inside.size();
    std::stable_sort(inside.begin(), inside.end(),
                     [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
    if (inside.size() > kMostInside) inside.resize(kMostInside);
    for (const LivingBuffer* tensor : inside) {
      view["inside"].push_back(
          {by_id.at(tensor->block), tensor->id, tensor->address - known.at(tensor->block)->address,
           tensor->bytes, tensor->begin_ns, tensor->end_ns, tensor->alloc_call, tensor->role});
    }
  }
  view["inside_in_all"] = in_all;
  return view;
}

}  // namespace

json MemoryOf(const storage::Reader& trace, const std::unordered_map<int64_t, std::string>& roles) {
  const bool layers = storage::HasColumns(trace, "buffer", "layer,block");
  storage::Statement rows(
      trace.database(),
      fmt::format("SELECT buffer_id, ifnull(bytes, 0), ifnull(alloc_ns, 0), ifnull(free_ns, 0), "
                  "ifnull(alloc_call, 0), ifnull(free_call, 0), ifnull(role, ''), device, "
                  "ifnull(address, 0), {} FROM buffer",
                  layers ? "ifnull(layer, ''), ifnull(block, 0)" : "'', 0"));
  RoleNumbers numbers;
  const int32_t unused = numbers.Of("no leaf uses it");
  std::vector<LivingBuffer> buffers;
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
    buffers.push_back({.id = rows.Integer(0),
                       .device = rows.Integer(7),
                       .address = rows.Integer(8),
                       .bytes = bytes,
                       .begin_ns = begin,
                       .end_ns = rows.Integer(3),
                       .alloc_call = rows.Integer(4),
                       .free_call = rows.Integer(5),
                       .block = rows.Integer(10),
                       .layer = LayerNamed(rows.Text(9)),
                       .role = word.empty() ? unused : numbers.Of(word)});
  }
  if (!layers) InferLayers(trace, buffers);
  std::map<Place, std::vector<LivingBuffer>> places;
  for (const LivingBuffer& buffer : buffers) {
    places[{buffer.device, buffer.layer}].push_back(buffer);
  }
  // Leaves use the tensors in a block, and not the block.
  for (auto& [place, held] : places) {
    if (place.layer != Layer::kBlock || !places.contains({place.device, Layer::kTensor})) continue;
    for (LivingBuffer& block : held) {
      if (block.role == unused) block.role = numbers.Of("block of the allocator");
    }
  }
  const Times times = TimesOfCalls(trace);
  json memory;
  memory["buffers"] = count;
  memory["untimed"] = untimed;
  memory["untimed_bytes"] = untimed_bytes;
  memory["roles"] = numbers.words();
  memory["places"] = json::array();
  for (const auto& [place, held] : places) {
    memory["places"].push_back(PlaceOf(place, held, times, numbers.words().size()));
  }
  memory["allocator"] = AllocatorOf(places);
  return memory;
}

}  // namespace acltape::page
