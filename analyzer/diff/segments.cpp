#include "analyzer/diff/segments.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

namespace acltape::analyzer::diff {
namespace {

struct Print {        // the properties by which steps are compared
  uint64_t form = 0;  // operators and shapes
  // The contents from outside that the step is the first to read; 0 if none is known.
  uint64_t values = 0;
};

NodeRange NodesOf(const Flow& flow, const StepRange& step) {
  return {flow.FirstNodeFrom(step.first), flow.FirstNodeFrom(step.end)};
}

Print PrintOf(const Flow& flow, NodeRange nodes) {
  Print print;
  for (size_t node = nodes.first; node < nodes.end; ++node) {
    print.form = MixHash(print.form, flow.label(node).loose);
    for (const FlowInput& input : flow.InputsOf(node)) {
      if (input.source.external < 0) continue;
      const FlowExternal& external = flow.externals[input.source.external];
      if (external.reader != static_cast<int32_t>(node) || external.digest.empty()) continue;
      print.values = MixHash(print.values, std::hash<std::string>()(external.digest));
    }
  }
  return print;
}

// The number of aligned nodes between a step of A and a step of B.
using Anchors = std::map<std::pair<size_t, size_t>, uint32_t>;

// Returns for each node the step in which it lies, or -1.
std::vector<int32_t> StepOfNodes(const Flow& flow, const std::vector<NodeRange>& steps) {
  std::vector<int32_t> step_of(flow.size(), -1);
  for (size_t step = 0; step < steps.size(); ++step) {
    for (size_t node = steps[step].first; node < steps[step].end; ++node) {
      step_of[node] = static_cast<int32_t>(step);
    }
  }
  return step_of;
}

// True if the segments keep aligned nodes together, with at most a tenth of exceptions.
bool Consistent(const std::vector<Segment>& segments, const std::vector<int32_t>& partner) {
  size_t anchors = 0;
  size_t apart = 0;
  for (const Segment& segment : segments) {
    for (size_t node = segment.nodes[0].first; node < segment.nodes[0].end; ++node) {
      if (partner[node] < 0) continue;
      const auto other = static_cast<size_t>(partner[node]);
      ++anchors;
      apart += other < segment.nodes[1].first || other >= segment.nodes[1].end;
    }
  }
  return apart * 10 <= anchors;
}

// True if the segments have calls of one operator too many on one side here and on the other side
// there, and so keep apart more than a tenth of the shorter program that could be paired. Then the
// sides have their steps in other parts of the program, as a program does whose steps were found
// only where its graphs are executed.
bool CutsOffCounterparts(const Flow& a, const Flow& b, const std::vector<Segment>& segments) {
  const std::array<const Flow*, 2> flows = {&a, &b};
  std::unordered_map<uint64_t, std::array<int64_t, 2>> alone;  // by operator
  std::unordered_map<uint64_t, int64_t> more;                  // in a segment, A less B
  for (const Segment& segment : segments) {
    more.clear();
    for (int side = 0; side < 2; ++side) {
      const NodeRange& nodes = segment.nodes[side];
      for (size_t node = nodes.first; node < nodes.end; ++node) {
        more[flows[side]->label(node).op] += side == 0 ? 1 : -1;
      }
    }
    for (const auto& [op, count] : more) {
      if (count != 0) alone[op][count > 0 ? 0 : 1] += std::abs(count);
    }
  }
  int64_t common = 0;
  for (const auto& [op, counts] : alone) common += std::min(counts[0], counts[1]);
  return common * 10 > static_cast<int64_t>(std::min(a.size(), b.size()));
}

// Finds pairs of indices, rising on both sides, with the greatest sum of scores (Needleman-Wunsch
// without gap costs).
std::vector<std::pair<size_t, size_t>> PairSteps(const std::vector<Print>& a,
                                                 const std::vector<Print>& b,
                                                 const Anchors& anchors) {
  std::vector<std::pair<size_t, size_t>> pairs;
  constexpr size_t kMostCells = size_t{64} << 20;
  if (a.size() * b.size() > kMostCells) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) pairs.emplace_back(i, i);
    return pairs;
  }
  const bool equally_many = a.size() == b.size();
  const auto score = [&](size_t i, size_t j) -> uint32_t {
    const bool values = a[i].values != 0 && a[i].values == b[j].values;
    const auto known = anchors.find({i, j});
    return 1 + (a[i].form == b[j].form ? 4 : 0) + (values ? 8 : 0) +
           (equally_many && i == j ? 2 : 0) + (known == anchors.end() ? 0 : 4 * known->second);
  };
  const size_t width = b.size() + 1;
  std::vector<uint32_t> best((a.size() + 1) * width);  // score of the rest from (i, j) on
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      const uint32_t paired = best[(i + 1) * width + j + 1] + score(i, j);
      best[i * width + j] = std::max({paired, best[(i + 1) * width + j], best[i * width + j + 1]});
    }
  }
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint32_t here = best[i * width + j];
    if (here == best[(i + 1) * width + j + 1] + score(i, j)) {
      pairs.emplace_back(i++, j++);
    } else if (here == best[(i + 1) * width + j]) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

// Finds the place of one range's first operators in another range; -1: nowhere.
int64_t FindOpening(const Flow& of, NodeRange opening, const Flow& in, NodeRange range) {
  constexpr size_t kLength = 6;
  if (opening.size() < kLength || range.size() < kLength) return -1;
  for (size_t node = range.first; node + kLength <= range.end; ++node) {
    size_t same = 0;
    while (same < kLength && of.label(opening.first + same).op == in.label(node + same).op) ++same;
    if (same == kLength) return static_cast<int64_t>(node - range.first);
  }
  return -1;
}

}  // namespace

std::vector<Segment> PairSegments(const Flow& a, const Flow& b,
                                  const std::vector<int32_t>& partner) {
  const std::array<const Flow*, 2> flows = {&a, &b};
  Segment whole;
  for (int side = 0; side < 2; ++side) whole.nodes[side] = {0, flows[side]->size()};
  std::array<std::vector<NodeRange>, 2> steps;
  std::array<std::vector<Print>, 2> prints;
  for (int side = 0; side < 2; ++side) {
    for (const StepRange& step : flows[side]->work->steps) {
      steps[side].push_back(NodesOf(*flows[side], step));
      prints[side].push_back(PrintOf(*flows[side], steps[side].back()));
    }
  }
  if (steps[0].empty() || steps[1].empty()) return {whole};
  const NodeRange& middle_a = steps[0][steps[0].size() / 2];
  const NodeRange& middle_b = steps[1][steps[1].size() / 2];
  if (FindOpening(a, middle_a, b, middle_b) > 0 && FindOpening(b, middle_b, a, middle_a) > 0) {
    return {whole};
  }

  Anchors anchors;
  const std::vector<int32_t> step_of_a = StepOfNodes(a, steps[0]);
  const std::vector<int32_t> step_of_b = StepOfNodes(b, steps[1]);
  for (size_t node = 0; node < a.size(); ++node) {
    if (partner[node] < 0 || step_of_a[node] < 0 || step_of_b[partner[node]] < 0) continue;
    ++anchors[{step_of_a[node], step_of_b[partner[node]]}];
  }
  auto pairs = PairSteps(prints[0], prints[1], anchors);
  pairs.emplace_back(steps[0].size(), steps[1].size());
  std::vector<Segment> segments;
  std::array<size_t, 2> next = {0, 0};     // steps
  std::array<size_t, 2> reached = {0, 0};  // nodes
  const auto add = [&](const Segment& segment) {
    if (segment.nodes[0].size() + segment.nodes[1].size() != 0) segments.push_back(segment);
  };
  for (const auto& [i, j] : pairs) {
    const std::array<size_t, 2> paired = {i, j};
    for (int side = 0; side < 2; ++side) {  // steps that the other side lacks
      for (; next[side] < paired[side]; ++next[side]) {
        Segment alone;
        alone.nodes[1 - side] = {reached[1 - side], reached[1 - side]};
        alone.nodes[side] = {reached[side], steps[side][next[side]].end};
        alone.step[side] = flows[side]->work->steps[next[side]].step;
        reached[side] = alone.nodes[side].end;
        add(alone);
      }
    }
    Segment between;
    Segment step;
    for (int side = 0; side < 2; ++side) {
      const bool last = paired[side] == steps[side].size();
      const size_t first = last ? flows[side]->size() : steps[side][paired[side]].first;
      between.nodes[side] = {reached[side], first};
      reached[side] = first;
      if (last) continue;
      step.nodes[side] = {first, steps[side][paired[side]].end};
      step.step[side] = flows[side]->work->steps[paired[side]].step;
      reached[side] = step.nodes[side].end;
      ++next[side];
    }
    add(between);
    if (step.step[0] >= 0) add(step);
  }
  if (!Consistent(segments, partner) || CutsOffCounterparts(a, b, segments)) return {whole};
  return segments;
}

}  // namespace acltape::analyzer::diff
