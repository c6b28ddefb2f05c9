#include "replayer/values/noise_floor.h"

#include <fmt/format.h>

#include <algorithm>

namespace acltape::replayer {

using analyzer::metrics::TensorMetrics;

Flakiness FlakinessOf(const std::vector<std::string>& results) {
  Flakiness flakiness;
  flakiness.runs = static_cast<int>(results.size());
  std::map<std::string, int> counts;
  for (const std::string& result : results) ++counts[result];
  int most = 0;
  for (const std::string& result : results) {
    if (counts[result] <= most) continue;
    most = counts[result];
    flakiness.usual = result;
  }
  flakiness.deviating = flakiness.runs - most;
  return flakiness;
}

NoiseFloor::NoiseFloor(const analyzer::Program& program, bool carried, GetPayload get_payload)
    : program_(program), carried_(carried), get_payload_(std::move(get_payload)) {}

void NoiseFloor::BeginReference() { ++runs_; }

void NoiseFloor::Observe(int64_t leaf, int write, const std::string& digest, const uint8_t* packed,
                         int64_t bytes) {
  Result& result = results_[{leaf, write}];
  const bool first = result.digests.empty();
  result.digests.push_back(digest);
  const analyzer::TensorUse& use = program_.uses[leaf].writes[write];
  if (first) {
    const storage::Snapshot* recorded = analyzer::RecordedResult(program_.leaves[leaf], use);
    const bool in_trace =
        recorded != nullptr && recorded->has_payload && recorded->digest == digest;
    if (in_trace || kept_bytes_ + bytes > kKeptBytes) return;
    kept_bytes_ += bytes;
    result.first = std::make_shared<std::vector<uint8_t>>(packed, packed + bytes);
    return;
  }
  if (digest == result.digests.front()) return;
  const Bytes before =
      result.first != nullptr ? result.first : get_payload_(result.digests.front());
  if (before == nullptr || static_cast<int64_t>(before->size()) != bytes) return;
  const storage::Layout& layout = *use.layout;
  result.spread[static_cast<int>(result.digests.size()) - 1] = analyzer::metrics::Measure(
      layout.dtype, before->data(), layout.dtype, packed, layout.ElementCount());
}

// Returns the leaves that wrote the inputs of a leaf.
std::vector<int64_t> NoiseFloor::Producers(int64_t leaf) const {
  std::vector<int64_t> producers;
  for (const analyzer::TensorUse& use : program_.uses[leaf].reads) {
    const auto buffer = program_.buffers.find(use.tensor.buffer_id);
    if (buffer == program_.buffers.end()) continue;
    const int64_t first = use.layout->FirstByte();
    const int64_t end = use.layout->EndByte();
    const std::vector<analyzer::Access>& accesses = buffer->second.accesses;
    auto access = std::lower_bound(
        accesses.begin(), accesses.end(), leaf,
        [](const analyzer::Access& each, int64_t bound) { return each.leaf < bound; });
    while (access != accesses.begin()) {
      --access;
      if (!access->write || access->end_byte <= first || end <= access->first_byte) continue;
      producers.push_back(access->leaf);
      if (access->first_byte <= first && end <= access->end_byte) break;
    }
  }
  return producers;
}

// Returns the distance between the content of a run and the usual content.
const TensorMetrics* NoiseFloor::SpreadOf(const Result& result, int run) const {
  if (run == 0) {  // the distance of the usual run from run 0
    for (const auto& [other, metrics] : result.spread) {
      if (result.digests[static_cast<size_t>(other)] == result.usual) return &metrics;
    }
    return nullptr;
  }
  if (result.DigestOf(0) != result.usual) return nullptr;  // distances to another content
  const auto found = result.spread.find(run);
  return found == result.spread.end() ? nullptr : &found->second;
}

// Evaluates the results of one leaf in all runs. The usual result is the most frequent one among
// the runs in which the inputs of the leaf were usual. If there is no such run, nothing is known
// about the leaf.
void NoiseFloor::AddLeaf(Results::iterator first, Results::iterator end,
                         std::vector<std::set<int64_t>>& deviating,
                         std::map<std::string, FlakyOperator>& operators) {
  const int64_t leaf = first->first.first;
  const std::vector<int64_t> producers = carried_ ? Producers(leaf) : std::vector<int64_t>();
  std::vector<int> clean;
  for (int run = 0; run < runs_; ++run) {
    const std::set<int64_t>& others = deviating[static_cast<size_t>(run)];
    if (std::none_of(producers.begin(), producers.end(),
                     [&](int64_t producer) { return others.count(producer) != 0; })) {
      clean.push_back(run);
    }
  }
  for (auto result = first; result != end; ++result) {
    std::vector<std::string> digests;
    digests.reserve(clean.size());
    for (const int run : clean) digests.push_back(result->second.DigestOf(run));
    result->second.usual = FlakinessOf(digests).usual;
  }
  const auto deviates = [&](int run) {
    return std::any_of(first, end, [&](const auto& result) {
      return result.second.DigestOf(run) != result.second.usual;
    });
  };
  for (int run = 0; run < runs_; ++run) {
    if (deviates(run)) deviating[static_cast<size_t>(run)].insert(leaf);
  }
  FlakyOperator& flaky = operators[program_.leaves[leaf].Name()];
  flaky.executions += static_cast<int64_t>(clean.size());
  bool any = false;
  for (const int run : clean) {
    if (!deviates(run)) continue;
    any = true;
    ++flaky.deviating;
    for (auto result = first; result != end; ++result) AddSpread(result->second, run, flaky);
  }
  if (!any) return;
  ++flaky.calls;
  if (flaky.call_id == 0) flaky.call_id = program_.leaves[leaf].call.call_id;
}

void NoiseFloor::AddSpread(const Result& result, int run, FlakyOperator& flaky) const {
  const TensorMetrics* spread =
      result.DigestOf(run) == result.usual ? nullptr : SpreadOf(result, run);
  if (spread == nullptr) return;
  flaky.values = true;
  flaky.max_abs = std::max(flaky.max_abs, spread->max_abs);
  flaky.max_rel = std::max(flaky.max_rel, spread->max_rel);
  flaky.max_ulp = std::max(flaky.max_ulp, spread->max_ulp);
  if (spread->nan_mismatches + spread->inf_mismatches > 0) flaky.special = true;
}

void NoiseFloor::EndReferences() {
  std::map<std::string, FlakyOperator> operators;
  std::vector<std::set<int64_t>> deviating(static_cast<size_t>(runs_));  // leaves, by run
  for (auto first = results_.begin(); first != results_.end();) {
    auto end = first;
    while (end != results_.end() && end->first.first == first->first.first) ++end;
    AddLeaf(first, end, deviating, operators);
    first = end;
  }
  for (auto& [op, flaky] : operators) {
    if (flaky.deviating == 0) continue;
    flaky.op = op;
    flaky_.push_back(flaky);
  }
  std::stable_sort(flaky_.begin(), flaky_.end(),
                   [](const auto& a, const auto& b) { return a.deviating > b.deviating; });
  for (const FlakyOperator& flaky : flaky_) by_op_[flaky.op] = &flaky;
}

void NoiseFloor::BeginJudged(bool carried) {
  carried_ = carried;
  noisy_.clear();
}

void NoiseFloor::NoteAccepted(int64_t leaf) { noisy_.erase(leaf); }

std::string NoiseFloor::Explain(int64_t leaf, int write, const std::string& digest,
                                const TensorMetrics* metrics) {
  const auto noise = [&](std::string reason) {
    noisy_.insert(leaf);
    return reason;
  };
  const auto known = results_.find({leaf, write});
  if (known != results_.end()) {
    const std::vector<std::string>& digests = known->second.digests;
    const bool seen = std::find(digests.begin(), digests.end(), digest) != digests.end();
    if (seen && FlakinessOf(digests).flaky()) return noise("a run of the reference had the same");
  }
  if (carried_) {
    for (const int64_t producer : Producers(leaf)) {
      if (noisy_.count(producer) == 0) continue;
      return noise(fmt::format("it reads the result of call {}, which differs by noise",
                               program_.leaves[producer].call.call_id));
    }
  }
  const auto found = by_op_.find(program_.leaves[leaf].Name());
  if (found == by_op_.end()) return "";
  const FlakyOperator& flaky = *found->second;
  const std::string rate = fmt::format("{} of {} executions in runs of the reference deviate",
                                       flaky.deviating, flaky.executions);
  if (metrics == nullptr || !flaky.values) return noise(rate);
  const bool special = metrics->nan_mismatches + metrics->inf_mismatches > 0;
  const bool within = metrics->max_rel <= kHeadroom * flaky.max_rel &&
                      static_cast<double>(metrics->max_ulp) <=
                          kHeadroom * static_cast<double>(std::max<int64_t>(flaky.max_ulp, 0));
  if (within && (!special || flaky.special)) return noise(rate);
  return "";
}

}  // namespace acltape::replayer
