// The third stage of an alignment: calls that the other program computes in fewer or more steps. A
// group is found by its surroundings. The consumers of its result on both sides are aligned, and
// both sides compute the result from the same inputs.
#include <algorithm>
#include <set>

#include "analyzer/diff/matching.h"

namespace acltape::analyzer::diff {
namespace {

constexpr size_t kMostInGroup = 16;

class GroupFinder {
 public:
  GroupFinder(Matching& matching, const Segment& segment)
      : matching_(matching), segment_(segment) {}

  size_t Find() {
    size_t found = 0;
    for (int side = 0; side < 2; ++side) {
      for (size_t node = segment_.nodes[side].first; node < segment_.nodes[side].end; ++node) {
        if (!Candidate(side, static_cast<int32_t>(node))) continue;
        found += TryRoot(side, static_cast<int32_t>(node));
      }
    }
    return found;
  }

 private:
  using Inputs = std::set<uint64_t>;

  bool Candidate(int side, int32_t node) const {
    const Flow& flow = *matching_.flows[side];
    return matching_.Loose(side, node) && !flow.label(node).copies &&
           flow.work->forms[flow.nodes[node].form].kind == LeafKind::kKernel;
  }

  // Collects the inputs of a set of nodes from outside of it, without constants of one element.
  // Returns false when a source has no counterpart.
  bool OutsideOf(int side, const std::vector<int32_t>& nodes, Inputs& inputs,
                 std::vector<int32_t>& unknown) const {
    const Flow& flow = *matching_.flows[side];
    inputs.clear();
    unknown.clear();
    for (const int32_t node : nodes) {
      for (const FlowInput& input : flow.InputsOf(node)) {
        const int32_t source = input.resolved.node;
        if (std::find(nodes.begin(), nodes.end(), source) != nodes.end()) continue;
        if (source >= 0 && Candidate(side, source)) unknown.push_back(source);
        const uint64_t key = matching_.SourceKey(side, input);
        if (key == 0) {
          if (source < 0 || !Candidate(side, source)) return false;
          continue;
        }
        if (source < 0 && input.access->layout->ElementCount() <= 1) continue;
        inputs.insert(key);
      }
    }
    return true;
  }

  // The node of the other side whose result replaces that of `node`, found by an aligned consumer.
  int32_t RootFor(int side, int32_t node) const {
    const Flow& flow = *matching_.flows[side];
    const Flow& other = *matching_.flows[1 - side];
    for (const FlowConsumer& consumer : ReadersThroughCopies(flow, node)) {
      const int32_t image = matching_.partner[side][consumer.node];
      if (image < 0 || matching_.Loose(side, consumer.node)) continue;
      const auto inputs = other.InputsOf(image);
      if (static_cast<size_t>(consumer.input) >= inputs.size()) continue;
      const int32_t root = inputs[consumer.input].resolved.node;
      if (root >= 0 && Candidate(1 - side, root)) return root;
    }
    // No aligned call uses the result. The root is then the partner of another operator, or the end
    // of the chain of free calls after that partner.
    int32_t root = matching_.partner[side][node];
    for (size_t steps = 0; root >= 0 && steps < kMostInGroup; ++steps) {
      const auto readers = other.ConsumersOf(root);
      if (readers.size() != 1 || !Candidate(1 - side, readers[0].node)) break;
      root = readers[0].node;
    }
    return root;
  }

  static std::vector<FlowConsumer> ReadersThroughCopies(const Flow& flow, int32_t node) {
    std::vector<FlowConsumer> readers;
    std::vector<int32_t> open = {node};
    for (size_t i = 0; i < open.size() && open.size() < 16; ++i) {
      for (const FlowConsumer& consumer : flow.ConsumersOf(open[i])) {
        if (flow.label(consumer.node).copies) open.push_back(consumer.node);
        readers.push_back(consumer);
      }
    }
    return readers;
  }

  // Grows the smallest set on either side that explains `node`. Returns 1 when it made a group.
  size_t TryRoot(int side, int32_t node) {
    const int32_t root = RootFor(side, node);
    if (root < 0) return 0;
    std::array<std::vector<int32_t>, 2> sets;
    sets[side] = {node};
    sets[1 - side] = {root};
    Inputs own;
    Inputs others;
    std::vector<int32_t> own_open;
    std::vector<int32_t> other_open;
    // The other side grows alone first (one call against several), then both in turn.
    for (size_t round = 0; round < kMostInGroup; ++round) {
      const bool known = OutsideOf(side, sets[side], own, own_open);
      const bool other_known = OutsideOf(1 - side, sets[1 - side], others, other_open);
      if (!known || !other_known) return 0;
      // A source that is itself a candidate may have no identity. Then the sets are not closed.
      const bool closed = Closed(side, own_open) && Closed(1 - side, other_open);
      if (closed && own == others) return Accept(sets);
      if (!other_open.empty()) {
        Grow(sets[1 - side], other_open);
      } else if (!own_open.empty()) {
        Grow(sets[side], own_open);
      } else {
        return 0;
      }
      if (sets[0].size() + sets[1].size() > kMostInGroup) return 0;
    }
    return 0;
  }

  bool Closed(int side, const std::vector<int32_t>& open) const {
    return std::all_of(open.begin(), open.end(),
                       [&](int32_t source) { return matching_.identity[side][source] != 0; });
  }

  static void Grow(std::vector<int32_t>& set, const std::vector<int32_t>& open) {
    for (const int32_t source : open) {
      if (std::find(set.begin(), set.end(), source) == set.end()) set.push_back(source);
    }
  }

  size_t Accept(const std::array<std::vector<int32_t>, 2>& sets) {
    if (sets[0].size() == 1 && sets[1].size() == 1) {
      const int32_t a = sets[0][0];
      const int32_t b = sets[1][0];
      if (matching_.partner[0][a] == b) return 0;
      if (matching_.partner[0][a] >= 0) matching_.Unpair(a);
      if (matching_.partner[1][b] >= 0) matching_.Unpair(matching_.partner[1][b]);
      matching_.Pair(a, b);
      return 1;
    }
    // Several calls against several are a group only if they share no operator. If they share one,
    // these are the same calls with a change between them.
    if (sets[0].size() > 1 && sets[1].size() > 1 && ShareOperator(sets)) return 0;
    // A partner outside of the group would lose its own partner. So all partners must be in the
    // group.
    for (int s = 0; s < 2; ++s) {
      for (const int32_t node : sets[s]) {
        const int32_t other = matching_.partner[s][node];
        const auto& opposite = sets[1 - s];
        if (other >= 0 && std::find(opposite.begin(), opposite.end(), other) == opposite.end()) {
          return 0;
        }
      }
    }
    // Only the last call of a group may have readers outside of the group.
    for (int s = 0; s < 2; ++s) {
      const int32_t root = sets[s][0];
      for (const int32_t node : sets[s]) {
        if (node == root) continue;
        for (const FlowConsumer& consumer : matching_.flows[s]->ConsumersOf(node)) {
          const bool inside =
              std::find(sets[s].begin(), sets[s].end(), consumer.node) != sets[s].end();
          if (!inside && !matching_.flows[s]->label(consumer.node).copies) return 0;
        }
      }
    }
    NodeGroup group;
    group.nodes = sets;
    matching_.AddGroup(std::move(group));
    return 1;
  }

  bool ShareOperator(const std::array<std::vector<int32_t>, 2>& sets) const {
    return std::any_of(sets[0].begin(), sets[0].end(), [&](int32_t a) {
      return std::any_of(sets[1].begin(), sets[1].end(), [&](int32_t b) {
        return matching_.flows[0]->label(a).op == matching_.flows[1]->label(b).op;
      });
    });
  }

  Matching& matching_;
  const Segment& segment_;
};

}  // namespace

size_t FindGroups(Matching& matching, const Segment& segment) {
  return GroupFinder(matching, segment).Find();
}

}  // namespace acltape::analyzer::diff
