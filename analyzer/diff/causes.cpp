#include "analyzer/diff/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace acltape::analyzer::diff {
namespace {

// The state of a row's result after the comparison. Later rows inherit it.
struct Taint {
  bool different = false;  // it, or an input of it, differs
  int64_t origin = -1;     // the row where the difference began; -1: unknown
  // A changed call on the way to this row whose own result nobody recorded; -1: none.
  int64_t suspect = -1;
  int depth = 0;
  double error = 0;
  storage::DType rounded = storage::DType::kUndefined;
};

class CauseFinder {
 public:
  CauseFinder(const Flow& a, const Flow& b, const Alignment& alignment, ValueComparer& values,
              DiffRows& rows)
      : flows_{&a, &b}, alignment_(alignment), values_(values), rows_(rows) {}

  void Find(const std::function<void(int64_t, int64_t)>& progress) {
    FindNeeded();
    taints_.resize(rows_.rows.size());
    const auto total = static_cast<int64_t>(rows_.rows.size());
    for (size_t row = 0; row < rows_.rows.size(); ++row) {
      if (progress) progress(static_cast<int64_t>(row), total);
      if (needed_[row]) Judge(row);
    }
  }

 private:
  using Inputs = std::vector<std::pair<const FlowInput*, const FlowInput*>>;

  bool HasValues(size_t row) const {
    const RowNodes& nodes = rows_.nodes[row];
    return nodes.last(0) >= 0 && nodes.last(1) >= 0 &&
           values_.Comparable(nodes.last(0), nodes.last(1));
  }

  // Marks the picked rows and the rows from which their results were computed. On every way it goes
  // back to the nearest row that can be compared.
  void FindNeeded() {
    needed_.assign(rows_.rows.size(), false);
    for (size_t row = 0; row < rows_.rows.size(); ++row) needed_[row] = rows_.rows[row].picked;
    if (std::all_of(needed_.begin(), needed_.end(), [](bool needed) { return needed; })) return;
    for (size_t row = rows_.rows.size(); row-- > 0;) {
      if (!needed_[row] || (!rows_.rows[row].picked && HasValues(row))) continue;
      for (int side = 0; side < 2; ++side) {
        for (const int32_t node : rows_.nodes[row].nodes[side]) {
          for (const FlowInput& input : flows_[side]->InputsOf(node)) {
            for (const FlowSource* source : {&input.source, &input.resolved}) {
              if (source->node >= 0) needed_[rows_.row_of[side][source->node]] = true;
            }
          }
        }
      }
    }
  }

  // The inputs of a row from outside of it, in pairs. One is null if its side has no counterpart.
  Inputs InputsOf(size_t row) const {
    std::array<std::vector<const FlowInput*>, 2> outside;
    const RowNodes& nodes = rows_.nodes[row];
    for (int side = 0; side < 2; ++side) {
      for (const int32_t node : nodes.nodes[side]) {
        for (const FlowInput& input : flows_[side]->InputsOf(node)) {
          const int32_t source = input.resolved.node;
          if (source >= 0 && rows_.row_of[side][source] == static_cast<int32_t>(row)) continue;
          outside[side].push_back(&input);
        }
      }
    }
    Inputs inputs;
    if (nodes.nodes[0].size() == 1 && nodes.nodes[1].size() == 1 &&
        outside[0].size() == outside[1].size()) {
      for (size_t i = 0; i < outside[0].size(); ++i) {
        inputs.emplace_back(outside[0][i], outside[1][i]);
      }
      return inputs;
    }
    // Pairs inputs in any order. An input whose source is not aligned gets no partner.
    std::vector<bool> taken(outside[1].size());
    for (const FlowInput* a : outside[0]) {
      const FlowInput* found = nullptr;
      for (size_t i = 0; i < outside[1].size() && found == nullptr; ++i) {
        if (taken[i] || !SameSource(*a, *outside[1][i])) continue;
        taken[i] = true;
        found = outside[1][i];
      }
      inputs.emplace_back(a, found);
    }
    for (size_t i = 0; i < outside[1].size(); ++i) {
      if (!taken[i]) inputs.emplace_back(nullptr, outside[1][i]);
    }
    return inputs;
  }

  bool SameRow(int32_t a, int32_t b) const {
    return a >= 0 && b >= 0 && rows_.row_of[0][a] == rows_.row_of[1][b];
  }
  bool SameSource(const FlowInput& a, const FlowInput& b) const {
    if (SameRow(a.resolved.node, b.resolved.node)) return true;
    const int32_t external = a.resolved.external;
    return external >= 0 && alignment_.external_partner[0][external] == b.resolved.external;
  }

  void Merge(Taint& into, const Taint& from) const {
    if (from.different && (!into.different || (from.origin >= 0 && from.origin < into.origin))) {
      into.different = true;
      into.origin = from.origin;
    }
    if (from.different) into.depth = std::max(into.depth, from.depth);
    if (into.suspect < 0) into.suspect = from.suspect;
    into.error = std::max(into.error, from.error);
    into.rounded = CoarsestType(from.rounded, into.rounded);
  }

  // Compares two contents from outside. The result is kept, because parameters are read often.
  const ValueDifference& External(int32_t a, int32_t b) {
    const auto [entry, created] = externals_.try_emplace({a, b});
    if (created) entry->second = values_.CompareExternals(a, b);
    return entry->second;
  }

  // The state that comes in through a pair of inputs. Sets `given` to a content from outside that
  // differs.
  Taint Incoming(const FlowInput* a, const FlowInput* b, const ValueDifference** given) {
    Taint taint;
    if (a == nullptr || b == nullptr) {
      const FlowInput* input = a == nullptr ? b : a;
      const int side = a == nullptr ? 1 : 0;
      const int32_t source = input->resolved.node;
      if (source < 0) return taint;
      return taints_[rows_.row_of[side][source]];
    }
    for (const auto& [x, y] :
         {std::make_pair(&a->source, &b->source), std::make_pair(&a->resolved, &b->resolved)}) {
      if (!SameRow(x->node, y->node)) continue;
      taint = taints_[rows_.row_of[0][x->node]];
      for (uint32_t i = a->first_other; i < a->end_other; ++i) {
        Merge(taint, taints_[rows_.row_of[0][flows_[0]->other_sources[i].node]]);
      }
      return taint;
    }
    const FlowSource& x = a->resolved;
    const FlowSource& y = b->resolved;
    if (x.external >= 0 && y.external >= 0) {
      const ValueDifference& difference = External(x.external, y.external);
      taint.rounded = difference.rounded;
      if (difference.verdict == DiffVerdict::kDifferent) {
        *given = &difference;
        taint.different = true;
      } else if (difference.verdict == DiffVerdict::kWithin) {
        taint.error = difference.error;
      }
      return taint;
    }
    return Crossing(*a, *b);
  }

  bool Alone(int64_t row) const {
    if (row < 0) return false;
    const DiffRelation relation = rows_.rows[row].relation;
    return relation == DiffRelation::kInserted || relation == DiffRelation::kDeleted;
  }
  int64_t RowOf(int side, const FlowInput& input) const {
    const int32_t node = input.source.node;
    return node < 0 ? -1 : rows_.row_of[side][node];
  }

  // Handles two reads of calls that do not belong together: a call was inserted or deleted between
  // them, or moved. Only the values decide.
  Taint Crossing(const FlowInput& a, const FlowInput& b) {
    Taint taint;
    for (int side = 0; side < 2; ++side) {
      const int64_t row = RowOf(side, side == 0 ? a : b);
      if (row >= 0) Merge(taint, taints_[row]);
    }
    if (taint.different) return taint;
    ValueDifference difference = values_.CompareReads(a, b, taint.rounded);
    taint.rounded = CoarsestType(difference.rounded, taint.rounded);
    const double floor = kAmplification * std::max(taint.error, RoundingOf(taint.rounded));
    const auto departs = [&](const ValueDifference& difference) {
      return difference.verdict == DiffVerdict::kDifferent &&
             (taint.rounded == storage::DType::kUndefined || difference.error > floor);
    };
    taint.error = std::max(taint.error, departs(difference) ? 0 : difference.error);
    const int64_t culprit = Culprit(a, b, departs, difference);
    if (departs(difference) && culprit >= 0) {
      Blame(culprit, difference);
      taint.different = true;
      taint.origin = culprit;
      taint.suspect = -1;
      taint.depth = 1;
      return taint;
    }
    if (difference.verdict != DiffVerdict::kNotComparable) {
      taint.suspect = -1;
      return taint;
    }
    const bool copies = culprit >= 0 && rows_.rows[culprit].copy;
    if (taint.suspect < 0 && !copies) taint.suspect = culprit;
    return taint;
  }

  // Finds the call to blame when two reads differ. On the side with calls that the other lacks,
  // this is the first call whose result differs from the value that the other side reads.
  // `difference` then becomes that of this call. If results are not known, it is the first call
  // that is not a copy.
  template <typename Departs>
  int64_t Culprit(const FlowInput& a, const FlowInput& b, const Departs& departs,
                  ValueDifference& difference) {
    const std::array<const FlowInput*, 2> reads = {&a, &b};
    const bool known = difference.verdict != DiffVerdict::kNotComparable;
    for (const int side : {1, 0}) {
      int64_t culprit = -1;
      const FlowInput* read = reads[side];
      constexpr int kMostCalls = 64;
      for (int calls = 0; read != nullptr && Alone(RowOf(side, *read)) && calls < kMostCalls;
           ++calls) {
        const int64_t row = RowOf(side, *read);
        if (!known) {
          if (culprit < 0 || !rows_.rows[row].copy) culprit = row;
        } else if (calls == 0) {
          culprit = row;
        } else {
          const ValueDifference here = side == 1
                                           ? values_.CompareReads(a, *read, difference.rounded)
                                           : values_.CompareReads(*read, b, difference.rounded);
          if (departs(here)) {
            culprit = row;
            difference = here;
          } else if (here.verdict != DiffVerdict::kNotComparable) {
            break;
          }
        }
        read = LargestInput(side, read->source.node);
      }
      if (culprit >= 0) return culprit;
    }
    return std::max(RowOf(0, a), RowOf(1, b));
  }

  const FlowInput* LargestInput(int side, int32_t node) const {
    const FlowInput* largest = nullptr;
    for (const FlowInput& input : flows_[side]->InputsOf(node)) {
      const int64_t elements = input.access->layout->ElementCount();
      if (largest == nullptr || elements > largest->access->layout->ElementCount()) {
        largest = &input;
      }
    }
    return largest;
  }

  // Records that a call without a counterpart changes a value that others read.
  void Blame(int64_t row, const ValueDifference& difference) {
    DiffRow& blamed = rows_.rows[row];
    if (blamed.cause == DiffCause::kStructural) return;
    blamed.cause = DiffCause::kStructural;
    blamed.verdict = difference.verdict;
    blamed.reason = difference.reason;
    blamed.error = difference.error;
    blamed.metrics = difference.metrics;
    blamed.output = difference.name;
  }

  void Judge(size_t index) {
    DiffRow& row = rows_.rows[index];
    const RowNodes& nodes = rows_.nodes[index];
    const bool both = nodes.last(0) >= 0 && nodes.last(1) >= 0;
    Taint inputs;
    const ValueDifference* given = nullptr;
    for (const auto& [a, b] : InputsOf(index)) Merge(inputs, Incoming(a, b, &given));
    Taint& taint = taints_[index];
    if (!both) {
      // There is nothing to compare, so the row passes on the state of its inputs.
      taint = inputs;
      if (given != nullptr) taint.different = false;
      return;
    }
    ValueDifference difference = values_.Compare(nodes.last(0), nodes.last(1), inputs.rounded);
    row.verdict = difference.verdict;
    row.output = difference.name;
    row.reason = difference.reason;
    row.error = difference.error;
    row.metrics = std::move(difference.metrics);
    const bool structural = row.relation == DiffRelation::kChanged;
    taint.rounded = CoarsestType(difference.rounded, inputs.rounded);
    if (inputs.different) row.origin = inputs.origin;
    switch (row.verdict) {
      case DiffVerdict::kEqual:
        taint = Taint();
        return;
      case DiffVerdict::kWithin:
        taint.error = row.error;
        return;
      case DiffVerdict::kNotComparable:
        taint = inputs;
        if (structural && !inputs.different && taint.suspect < 0) {
          taint.suspect = static_cast<int64_t>(index);
        }
        if (given != nullptr && inputs.origin < 0) {
          taint.origin = static_cast<int64_t>(index);
          row.cause = DiffCause::kInput;
          row.reason = given->reason;
        }
        if (taint.different) ++taint.depth;
        return;
      case DiffVerdict::kDifferent:
        break;
    }
    JudgeDifferent(index, inputs, given, structural);
  }

  void JudgeDifferent(size_t index, const Taint& inputs, const ValueDifference* given,
                      bool structural) {
    DiffRow& row = rows_.rows[index];
    Taint& taint = taints_[index];
    taint.error = row.error;
    taint.different = true;
    taint.origin = static_cast<int64_t>(index);
    taint.depth = 1;
    row.origin = -1;
    if (inputs.different && (given == nullptr || inputs.origin >= 0)) {
      row.cause = DiffCause::kInherited;
      row.origin = inputs.origin;
      row.depth = inputs.depth;
      taint.origin = inputs.origin;
      taint.depth = inputs.depth + 1;
      return;
    }
    if (given != nullptr) {
      row.cause = DiffCause::kInput;
      row.reason = given->reason + "; result: " + row.reason;
      return;
    }
    if (inputs.suspect >= 0) {
      DiffRow& suspect = rows_.rows[inputs.suspect];
      suspect.cause = DiffCause::kStructural;
      if (suspect.reason.empty() || suspect.verdict == DiffVerdict::kNotComparable) {
        suspect.reason =
            fmt::format("its result has nothing to be compared with; call {} after it differs: {}",
                        row.a_calls.back(), row.reason);
      }
      row.cause = DiffCause::kInherited;
      row.origin = inputs.suspect;
      row.depth = 1;
      taint.origin = inputs.suspect;
      taint.depth = 2;
      return;
    }
    const bool rounded = inputs.rounded != storage::DType::kUndefined || inputs.error > 0;
    const double floor = RoundingOf(CoarsestType(taint.rounded, inputs.rounded));
    if (rounded && !structural && row.error <= kAmplification * std::max(inputs.error, floor)) {
      row.cause = DiffCause::kAccumulated;
      taint.different = false;
      taint.origin = -1;
      taint.depth = 0;
      return;
    }
    row.cause = structural ? DiffCause::kStructural : DiffCause::kOrigin;
  }

  std::array<const Flow*, 2> flows_;
  const Alignment& alignment_;
  ValueComparer& values_;
  DiffRows& rows_;
  std::vector<bool> needed_;
  std::vector<Taint> taints_;  // by row
  std::map<std::pair<int32_t, int32_t>, ValueDifference> externals_;
};

}  // namespace

void FindCauses(const Flow& a, const Flow& b, const Alignment& alignment, ValueComparer& values,
                DiffRows& rows, const std::function<void(int64_t, int64_t)>& progress) {
  CauseFinder(a, b, alignment, values, rows).Find(progress);
}

}  // namespace acltape::analyzer::diff
