#include "analyzer/diff/matching.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace acltape::analyzer::diff {
namespace {

// Sums the values of all readers of a node.
template <typename ValueOf>
uint64_t SumOfConsumers(const Flow& flow, size_t node, const ValueOf& value_of) {
  uint64_t sum = 0;
  for (const FlowConsumer& consumer : flow.ConsumersOf(node)) sum += value_of(consumer);
  return sum;
}

}  // namespace

Matching::Matching(const Flow& a, const Flow& b) : flows{&a, &b} {
  std::array<std::unordered_set<std::string_view>, 2> digests;
  for (int side = 0; side < 2; ++side) {
    const Flow& flow = *flows[side];
    partner[side].assign(flow.size(), -1);
    identity[side].assign(flow.size(), 0);
    group_of[side].assign(flow.size(), -1);
    external_partner[side].assign(flow.externals.size(), -1);
    for (const FlowExternal& external : flow.externals) {
      if (!external.digest.empty()) digests[side].insert(external.digest);
    }
    for (const FlowNode& node : flow.nodes) {
      if (node.content != 0) contents_[side].insert(node.content);
    }
  }
  for (int side = 0; side < 2; ++side) {
    for (const FlowExternal& external : flows[side]->externals) {
      const bool shared = digests[1 - side].count(external.digest) != 0;
      external_key_[side].push_back(
          shared ? std::hash<std::string>()(external.digest)
                 : MixHash(static_cast<uint64_t>(external.elements), external.parameter ? 2 : 1));
    }
  }
}

bool Matching::Loose(int side, size_t node) const {
  if (group_of[side][node] >= 0) return false;
  const int32_t other = partner[side][node];
  return other < 0 || flows[side]->label(node).op != flows[1 - side]->label(other).op;
}

void Matching::PairExternals(int32_t a, int32_t b) {
  if (a < 0 || b < 0 || external_partner[0][a] >= 0 || external_partner[1][b] >= 0) return;
  external_partner[0][a] = b;
  external_partner[1][b] = a;
  external_key_[0][a] = external_key_[1][b] = NewIdentity();
}

void Matching::Pair(int32_t a, int32_t b) {
  partner[0][a] = b;
  partner[1][b] = a;
  identity[0][a] = identity[1][b] = NewIdentity();
  if (flows[0]->label(a).op != flows[1]->label(b).op) return;
  const auto left = flows[0]->InputsOf(a);
  const auto right = flows[1]->InputsOf(b);
  if (left.size() != right.size()) return;
  for (size_t i = 0; i < left.size(); ++i) {
    PairExternals(left[i].resolved.external, right[i].resolved.external);
  }
}

void Matching::Unpair(int32_t a) {
  const int32_t b = partner[0][a];
  if (b < 0) return;
  partner[0][a] = partner[1][b] = -1;
  identity[0][a] = identity[1][b] = 0;
}

void Matching::AddGroup(NodeGroup group) {
  const auto number = static_cast<int32_t>(groups.size());
  for (int side = 0; side < 2; ++side) {
    std::sort(group.nodes[side].begin(), group.nodes[side].end());
    for (const int32_t node : group.nodes[side]) {
      if (partner[side][node] >= 0) Unpair(side == 0 ? node : partner[side][node]);
      group_of[side][node] = number;
    }
  }
  const uint64_t outputs = NewIdentity();
  for (int side = 0; side < 2; ++side) identity[side][group.nodes[side].back()] = outputs;
  groups.push_back(std::move(group));
}

uint64_t Matching::LabelOf(int side, size_t node, bool exact) const {
  const FormLabel& label = flows[side]->label(node);
  const uint64_t content = flows[side]->nodes[node].content;
  const bool shared = content != 0 && contents_[1 - side].count(content) != 0;
  const uint64_t hash = exact ? label.exact : label.loose;
  return shared ? MixHash(hash, content) : hash;
}

uint64_t Matching::SourceKey(int side, const FlowInput& input) const {
  const FlowSource& source = input.resolved;
  if (source.node >= 0) {
    const uint64_t known = identity[side][source.node];
    return known == 0 ? 0 : MixHash(known, static_cast<uint64_t>(source.output));
  }
  return source.external >= 0 ? external_key_[side][source.external] : 1;
}

RangeHashes HashRange(const Matching& matching, const Segment& segment, bool exact, int depth) {
  RangeHashes hashes;
  for (int side = 0; side < 2; ++side) {
    const Flow& flow = *matching.flows[side];
    const NodeRange range = segment.nodes[side];
    const auto label_of = [&](size_t node) { return matching.LabelOf(side, node, exact); };
    std::vector<uint64_t> own(range.size());
    for (size_t i = 0; i < range.size(); ++i) {
      const uint64_t known = matching.identity[side][range.first + i];
      own[i] = known != 0 ? known : label_of(range.first + i);
    }
    const auto inside = [&](int64_t node) {
      return node >= static_cast<int64_t>(range.first) && node < static_cast<int64_t>(range.end);
    };
    // `from` has the hashes of sources inside the range that have no identity.
    const auto up_of = [&](size_t node, const std::vector<uint64_t>& from) {
      uint64_t hash = label_of(node);
      const auto key = [&](const FlowSource& source) -> uint64_t {
        const uint64_t known = matching.identity[side][source.node];
        uint64_t value = known;
        if (known == 0) {
          value =
              inside(source.node) ? from[source.node - range.first] : flow.label(source.node).op;
        }
        return MixHash(value, static_cast<uint64_t>(source.output));
      };
      for (const FlowInput& input : flow.InputsOf(node)) {
        uint64_t value =
            input.resolved.node >= 0 ? key(input.resolved) : matching.SourceKey(side, input);
        for (uint32_t i = input.first_other; i < input.end_other; ++i) {
          value += key(flow.other_sources[i]);
        }
        if (exact && !input.copied) value = MixHash(value, static_cast<uint64_t>(input.offset));
        hash = MixHash(hash, value);
      }
      return hash;
    };
    // Sums the hashes of readers. A reader after the range counts by its operator, and a copy by
    // its own sum.
    const auto sum_of = [&](size_t node, const std::vector<uint64_t>& from,
                            const std::vector<uint64_t>& sums) {
      return SumOfConsumers(flow, node, [&](const FlowConsumer& consumer) -> uint64_t {
        if (!inside(consumer.node)) return MixHash(flow.label(consumer.node).op, 7);
        const size_t i = consumer.node - range.first;
        if (flow.label(consumer.node).copies) return sums[i];
        return MixHash(from[i], static_cast<uint64_t>(consumer.input));
      });
    };
    auto& up = hashes.up[side];
    auto& down = hashes.down[side];
    std::vector<uint64_t> sums(range.size());
    if (depth == kWhole) {
      up = own;
      for (size_t i = 0; i < range.size(); ++i) up[i] = up_of(range.first + i, up);
      down = own;
      for (size_t i = range.size(); i-- > 0;) {
        sums[i] = sum_of(range.first + i, down, sums);
        down[i] = MixHash(own[i], sums[i]);
      }
      continue;
    }
    up = own;
    down = own;
    for (int level = 0; level < depth; ++level) {
      std::vector<uint64_t> next(range.size());
      for (size_t i = 0; i < range.size(); ++i) next[i] = up_of(range.first + i, up);
      up = std::move(next);
      next.assign(range.size(), 0);
      for (size_t i = range.size(); i-- > 0;) {
        sums[i] = sum_of(range.first + i, down, sums);
        next[i] = MixHash(own[i], sums[i]);
      }
      down = std::move(next);
    }
  }
  return hashes;
}

Fit FitOf(const Matching& matching, int32_t a, int32_t b) {
  const Flow& left = *matching.flows[0];
  const Flow& right = *matching.flows[1];
  const FormLabel& x = left.label(a);
  const FormLabel& y = right.label(b);
  if (x.copies != y.copies) return {};
  const auto left_inputs = left.InputsOf(a);
  const auto right_inputs = right.InputsOf(b);
  const size_t most = std::max(left_inputs.size(), right_inputs.size());
  size_t same = 0;
  size_t known = 0;
  for (size_t i = 0; i < std::min(left_inputs.size(), right_inputs.size()); ++i) {
    const uint64_t p = matching.SourceKey(0, left_inputs[i]);
    const uint64_t q = matching.SourceKey(1, right_inputs[i]);
    known += p != 0 || q != 0;
    same += p != 0 && p == q;
  }
  size_t readers = 0;
  size_t same_readers = 0;
  for (const FlowConsumer& consumer : left.ConsumersOf(a)) {
    if (readers == 8) break;
    const int32_t image = matching.partner[0][consumer.node];
    if (image < 0) continue;
    ++readers;
    const auto inputs = right.InputsOf(image);
    const auto slot = static_cast<size_t>(consumer.input);
    same_readers +=
        slot < inputs.size() && (inputs[slot].source.node == b || inputs[slot].resolved.node == b);
  }
  Fit fit;
  fit.inputs = known > 0 && same == most;
  fit.consumers = readers > 0 && same_readers == readers;
  const double input_share = most == 0 ? 0 : static_cast<double>(same) / static_cast<double>(most);
  const double reader_share =
      readers == 0 ? 0 : static_cast<double>(same_readers) / static_cast<double>(readers);
  const double place = 2 * input_share + 2 * reader_share;
  if (x.op == y.op) {
    if (x.loose != y.loose && place == 0) return fit;
    fit.score = 4 + (x.loose == y.loose ? 2 : 0) + (x.exact == y.exact ? 1 : 0) + place;
    return fit;
  }
  // The operators differ, but both results have equally many elements at the same place of the
  // dataflow.
  if (x.writes.empty() || y.writes.empty() ||
      x.writes[0].layout->ElementCount() != y.writes[0].layout->ElementCount()) {
    return fit;
  }
  if (fit.inputs || fit.consumers) fit.score = 0.5 + place / 2;
  return fit;
}

}  // namespace acltape::analyzer::diff
