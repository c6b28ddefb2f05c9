#include "analyzer/diff/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/diff/form_label.h"

namespace acltape::analyzer::diff {
namespace {

class RowMaker {
 public:
  RowMaker(const Flow& a, const Flow& b, const Alignment& alignment)
      : flows_{&a, &b}, alignment_(alignment) {
    for (int side = 0; side < 2; ++side) rows_.row_of[side].assign(flows_[side]->size(), -1);
  }

  DiffRows Make() {
    size_t next_b = 0;
    for (size_t node = 0; node < flows_[0]->size(); ++node) {
      if (rows_.row_of[0][node] >= 0) continue;
      const int32_t group = alignment_.group_of[0][node];
      if (group >= 0) {
        // A group gets its row at its last call of A, after everything that it reads.
        const NodeGroup& members = alignment_.groups[group];
        if (members.nodes[0].back() != static_cast<int32_t>(node)) continue;
        InsertedBefore(next_b, members.nodes[1].front());
        AddGroup(members);
        continue;
      }
      const int32_t partner = alignment_.partner[0][node];
      if (partner < 0) {
        AddAlone(0, static_cast<int32_t>(node));
        continue;
      }
      InsertedBefore(next_b, partner);
      AddPair(static_cast<int32_t>(node), partner);
    }
    InsertedBefore(next_b, static_cast<int32_t>(flows_[1]->size()));
    return std::move(rows_);
  }

 private:
  // Adds the calls that only B has, up to a call of B.
  void InsertedBefore(size_t& next, int32_t end) {
    for (; next < static_cast<size_t>(std::max(end, 0)); ++next) {
      if (alignment_.partner[1][next] < 0 && alignment_.group_of[1][next] < 0) {
        AddAlone(1, static_cast<int32_t>(next));
      }
    }
  }

  DiffRow& NewRow(RowNodes nodes) {
    const auto index = static_cast<int32_t>(rows_.rows.size());
    DiffRow& row = rows_.rows.emplace_back();
    for (int side = 0; side < 2; ++side) {
      const Flow& flow = *flows_[side];
      auto& calls = side == 0 ? row.a_calls : row.b_calls;
      for (const int32_t node : nodes.nodes[side]) {
        rows_.row_of[side][node] = index;
        calls.push_back(flow.call_id(node));
      }
      if (nodes.nodes[side].empty()) continue;
      const int32_t last = nodes.last(side);
      (side == 0 ? row.a_op : row.b_op) = flow.op(last).FullName();
      (side == 0 ? row.a_step : row.b_step) = flow.work->calls[flow.nodes[last].call].step;
    }
    rows_.nodes.push_back(std::move(nodes));
    return row;
  }

  void AddPair(int32_t a, int32_t b) {
    DiffRow& row = NewRow({{std::vector<int32_t>{a}, std::vector<int32_t>{b}}});
    const auto key = std::make_pair(flows_[0]->nodes[a].form, flows_[1]->nodes[b].form);
    const auto [entry, created] = differences_.try_emplace(key);
    if (created) entry->second = CompareForms(*flows_[0], key.first, *flows_[1], key.second);
    row.change = fmt::format("{}", fmt::join(entry->second.structural, "; "));
    row.notes = fmt::format("{}", fmt::join(entry->second.notes, "; "));
    if (!row.change.empty()) row.relation = DiffRelation::kChanged;
  }

  void AddGroup(const NodeGroup& group) {
    DiffRow& row = NewRow({group.nodes});
    const size_t a = group.nodes[0].size();
    const size_t b = group.nodes[1].size();
    row.relation = b == 1   ? DiffRelation::kFused
                   : a == 1 ? DiffRelation::kSplit
                            : DiffRelation::kRewritten;
    std::array<std::vector<std::string>, 2> names;
    for (int side = 0; side < 2; ++side) {
      for (const int32_t node : group.nodes[side]) {
        names[side].push_back(flows_[side]->op(node).FullName());
      }
    }
    row.change = fmt::format("{} -> {}", fmt::join(names[0], " + "), fmt::join(names[1], " + "));
  }

  void AddAlone(int side, int32_t node) {
    RowNodes nodes;
    nodes.nodes[side] = {node};
    DiffRow& row = NewRow(std::move(nodes));
    row.relation = side == 0 ? DiffRelation::kDeleted : DiffRelation::kInserted;
    row.copy = flows_[side]->label(node).copies;
    row.dead = !FeedsAligned(side, node);
  }

  bool FeedsAligned(int side, int32_t node) const {
    const Flow& flow = *flows_[side];
    std::vector<int32_t> open = {node};
    constexpr size_t kFarEnough = 256;
    for (size_t i = 0; i < open.size(); ++i) {
      for (const FlowConsumer& consumer : flow.ConsumersOf(open[i])) {
        const bool alone = alignment_.partner[side][consumer.node] < 0 &&
                           alignment_.group_of[side][consumer.node] < 0;
        if (!alone || open.size() > kFarEnough) return true;
        open.push_back(consumer.node);
      }
    }
    return false;
  }

  std::array<const Flow*, 2> flows_;
  const Alignment& alignment_;
  DiffRows rows_;
  std::map<std::pair<int32_t, int32_t>, FormDifference> differences_;  // by forms
};

}  // namespace

DiffRows MakeRows(const Flow& a, const Flow& b, const Alignment& alignment) {
  return RowMaker(a, b, alignment).Make();
}

}  // namespace acltape::analyzer::diff
