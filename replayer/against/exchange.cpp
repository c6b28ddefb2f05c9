#include "replayer/against/exchange.h"

#include <algorithm>
#include <array>

#include "analyzer/program/given_away.h"
#include "analyzer/program/missing_values.h"
#include "replayer/against/convert.h"
#include "replayer/coverage.h"
#include "replayer/engine/held_results.h"

namespace acltape::replayer::against {

using analyzer::Leaf;
using analyzer::LeafKind;
using analyzer::TensorUse;
using analyzer::diff::DiffRow;

Exchange::Side::Side(Execution& chosen, const analyzer::diff::DiffReport& diff, int which,
                     int64_t step)
    : execution(chosen),
      index(which),
      content(chosen.program(), &chosen.contents()),
      runner(chosen) {
  const std::vector<Leaf>& leaves = program().leaves;
  for (const Leaf& leaf : leaves) leaf_of_call.emplace(leaf.call.call_id, leaf.index);
  row_of.assign(leaves.size(), -1);
  first_leaf = static_cast<int64_t>(leaves.size());
  // The step of B is that of the first call that has a counterpart in the step of A.
  const auto aligned = std::find_if(diff.rows.begin(), diff.rows.end(), [&](const DiffRow& row) {
    return row.a_step == step && !row.a_calls.empty() && !row.b_calls.empty();
  });
  const int64_t b_step = aligned == diff.rows.end() ? -1 : aligned->b_step;
  for (size_t i = 0; i < diff.rows.size(); ++i) {
    const DiffRow& row = diff.rows[i];
    for (const int64_t call : CallsOf(row)) {
      const auto known = leaf_of_call.find(call);
      if (known == leaf_of_call.end()) continue;  // work of the host beside a device
      const int64_t leaf = known->second;
      row_of[leaf] = static_cast<int64_t>(i);
      if (index == 0 ? row.a_step != step : row.b_step != b_step) continue;
      first_leaf = std::min(first_leaf, leaf);
      end_leaf = std::max(end_leaf, leaf + 1);
    }
  }
}

bool Exchange::Side::Has(const DiffRow& row) const {
  const std::vector<int64_t>& calls = CallsOf(row);
  return std::all_of(calls.begin(), calls.end(),
                     [this](int64_t call) { return leaf_of_call.contains(call); });
}

bool Exchange::Side::Executes(int64_t leaf) const {
  return program().leaves[leaf].kind == LeafKind::kKernel &&
         !execution.lowered().IsSubstituted(leaf);
}

Exchange::Exchange(Execution& a, Execution& b, const analyzer::diff::DiffReport& diff,
                   int64_t a_step)
    : diff_(diff), sides_{{a, diff, 0, a_step}, {b, diff, 1, a_step}} {
  for (size_t i = 0; i < diff.rows.size(); ++i) {
    const DiffRow& row = diff.rows[i];
    if (row.a_step != a_step || row.a_calls.empty() || row.b_calls.empty()) continue;
    if (!sides_[0].Has(row) || !sides_[1].Has(row)) continue;
    if (program(0).uses[LastLeaf(0, i)].writes.empty()) continue;
    rows_.push_back(i);
  }
  sides_[0].content.Replace([this](int64_t leaf, size_t write) -> Bytes {
    NoteUnpaired(sides_[0], leaf);
    if (golden_) return Derive(sides_[0], leaf, write);
    const auto found = values_.find(leaf);
    return found == values_.end() ? Derive(sides_[0], leaf, write) : found->second[write];
  });
  sides_[1].content.Replace([this](int64_t leaf, size_t write) {
    if (plain_b_) return Derive(sides_[1], leaf, write);
    const Bytes result = ResultForB(leaf, write);
    return result != nullptr ? result : Derive(sides_[1], leaf, write);
  });
}

int64_t Exchange::LastLeaf(int side, size_t row) const {
  return sides_[side].leaf_of_call.at(sides_[side].CallsOf(diff_.rows[row]).back());
}

std::string Exchange::OperatorOf(int side, int64_t call) const {
  return program(side).leaves[sides_[side].leaf_of_call.at(call)].Name();
}

CallResults Exchange::RecordedOf(Side& side, int64_t leaf) {
  CallResults results;
  for (const TensorUse& write : side.program().uses[leaf].writes) {
    const Leaf& call = side.program().leaves[leaf];
    const storage::Snapshot* snapshot = analyzer::RecordedResult(call, write);
    Bytes bytes = side.execution.contents().GetResult(call, write);
    if (bytes != nullptr && snapshot != nullptr &&
        (snapshot->packing == 0) != write.layout->IsDense()) {
      bytes = nullptr;  // the recorded layout does not fit
    }
    results.push_back(std::move(bytes));
  }
  return results;
}

Bytes Exchange::Derive(Side& side, int64_t leaf, size_t write) {
  if (HoldsResult(side.program(), leaf, write) || !side.Executes(leaf)) return nullptr;
  const auto known = side.derived.find(leaf);
  if (known != side.derived.end()) return known->second[write];
  const std::array<bool, 3> before = {golden_, plain_b_, deriving_};
  golden_ = plain_b_ = deriving_ = true;
  CallResults results;
  try {
    results = RunLeaf(side, leaf);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTrace) throw;
    // The reader says which content is missing.
    results.assign(side.program().uses[leaf].writes.size(), nullptr);
  }
  golden_ = before[0];
  plain_b_ = before[1];
  deriving_ = before[2];
  return side.derived.emplace(leaf, std::move(results)).first->second[write];
}

void Exchange::NoteUnpaired(const Side& side, int64_t leaf) {
  if (deriving_ || side.row_of[leaf] < 0) return;
  const DiffRow& row = diff_.rows[side.row_of[leaf]];
  const bool alone = row.a_calls.empty() || row.b_calls.empty();
  if (alone && !row.copy) unpaired_[side.index].insert(leaf);
}

CallResults Exchange::RunLeaf(Side& side, int64_t leaf) {
  if (!side.Executes(leaf)) return RecordedOf(side, leaf);
  return side.runner.Run(leaf, [&](const TensorUse& read) {
    return side.content.Before(read.tensor.buffer_id,
                               {read.layout->FirstByte(), read.layout->EndByte()}, leaf);
  });
}

CallResults Exchange::Recorded(int side, size_t row) {
  return RecordedOf(sides_[side], LastLeaf(side, row));
}

CallResults Exchange::OnRecorded(int side, size_t row) {
  golden_ = plain_b_ = true;
  unpaired_[side].clear();
  CallResults results = RunLeaf(sides_[side], LastLeaf(side, row));
  golden_ = plain_b_ = false;
  return results;
}

CallResults Exchange::ExchangedOnRecorded(size_t row) {
  golden_ = true;
  unpaired_[1].clear();
  try {
    CallResults results = FormOfB(row);
    golden_ = false;
    return results;
  } catch (...) {
    golden_ = false;
    throw;
  }
}

const CallResults& Exchange::EvaluateB(int64_t leaf) {
  const auto known = of_b_.find(leaf);
  if (known != of_b_.end()) return known->second;
  NoteUnpaired(sides_[1], leaf);
  CallResults results = RunLeaf(sides_[1], leaf);
  return of_b_.emplace(leaf, std::move(results)).first->second;
}

Bytes Exchange::ResultForB(int64_t leaf, size_t write) {
  const int64_t row = sides_[1].row_of[leaf];
  const DiffRow* counterpart = row < 0 ? nullptr : &diff_.rows[row];
  const bool own = row < 0 || static_cast<size_t>(row) == current_row_ ||
                   counterpart->a_calls.empty() || LastLeaf(1, row) != leaf;
  if (own) {
    return sides_[1].Holds(leaf) ? EvaluateB(leaf)[write] : nullptr;
  }
  const int64_t a_leaf = LastLeaf(0, row);
  const std::vector<TensorUse>& writes = program(0).uses[a_leaf].writes;
  if (write >= writes.size()) {
    throw NotExchangeable("it reads a result of " + program(1).Describe(leaf) + " of B that " +
                          program(0).Describe(a_leaf) + " of A does not have");
  }
  const storage::Layout& from = *writes[write].layout;
  const storage::Layout& to = *program(1).uses[leaf].writes[write].layout;
  if (const std::string why = WhyNotConvertible(from, to); !why.empty()) {
    if (sides_[1].Executes(leaf) && sides_[1].Holds(leaf)) {
      joined_.insert(static_cast<size_t>(row));
      return EvaluateB(leaf)[write];
    }
    throw NotExchangeable("it reads the result of " + program(1).Describe(leaf) + " of B and " +
                          program(0).Describe(a_leaf) + " of A, whose " + why);
  }
  const auto found = values_.find(a_leaf);
  if (!golden_ && found != values_.end()) return Convert(from, found->second[write], to);
  if (!golden_ && sides_[0].Holds(a_leaf) && sides_[0].Executes(a_leaf)) {
    throw NotExchangeable("it reads what A computes only later, in " + program(0).Describe(a_leaf));
  }
  Bytes recorded = RecordedOf(sides_[0], a_leaf)[write];
  if (recorded == nullptr) recorded = Derive(sides_[0], a_leaf, write);
  if (recorded == nullptr) {
    throw Error(ErrorKind::kTrace, program(0).Describe(a_leaf) + " has no recorded result in " +
                                       program(0).trace->path() + "; " +
                                       analyzer::HowToHaveResult(program(0), a_leaf));
  }
  return Convert(from, recorded, to);
}

CallResults Exchange::FormOfB(size_t row) {
  of_b_.clear();
  joined_.clear();
  current_row_ = row;
  const int64_t a_leaf = LastLeaf(0, row);
  const int64_t b_leaf = LastLeaf(1, row);
  const std::vector<TensorUse>& a_writes = program(0).uses[a_leaf].writes;
  const std::vector<TensorUse>& b_writes = program(1).uses[b_leaf].writes;
  if (a_writes.size() != b_writes.size()) {
    throw NotExchangeable("A writes " + std::to_string(a_writes.size()) + " results, B " +
                          std::to_string(b_writes.size()));
  }
  for (size_t w = 0; w < a_writes.size(); ++w) {
    const std::string why = WhyNotConvertible(*b_writes[w].layout, *a_writes[w].layout);
    if (!why.empty()) throw NotExchangeable("of the results the " + why);
  }
  const CallResults of_b = EvaluateB(b_leaf);
  CallResults results;
  for (size_t w = 0; w < a_writes.size(); ++w) {
    if (of_b[w] == nullptr) {
      throw Error(ErrorKind::kTrace, program(1).Describe(b_leaf) + " has no recorded result in " +
                                         program(1).trace->path() + "; " +
                                         analyzer::HowToHaveResult(program(1), b_leaf));
    }
    results.push_back(Convert(*b_writes[w].layout, of_b[w], *a_writes[w].layout));
  }
  return results;
}

const Exchange::Values& Exchange::Run(const std::vector<bool>& altered, const Values* reuse) {
  values_.clear();
  const Side& side = sides_[0];
  for (int64_t leaf = side.first_leaf; leaf < side.end_leaf; ++leaf) {
    const int64_t row = side.row_of[leaf];
    const bool alter = row >= 0 && !altered.empty() && altered[row] && LastLeaf(0, row) == leaf;
    if (alter) {
      reuse = nullptr;
      values_.emplace(leaf, FormOfB(static_cast<size_t>(row)));
      continue;
    }
    if (!side.Executes(leaf)) continue;  // recorded
    if (reuse != nullptr) {
      values_.emplace(leaf, reuse->at(leaf));
    } else {
      values_.emplace(leaf, RunLeaf(sides_[0], leaf));
    }
  }
  return values_;
}

std::vector<ResultPlace> Exchange::Outputs() const {
  const Side& side = sides_[0];
  const analyzer::Program& program = side.program();
  std::vector<ResultPlace> outputs;
  for (int64_t leaf = side.first_leaf; leaf < side.end_leaf; ++leaf) {
    const LeafKind kind = program.leaves[leaf].kind;
    if (kind != LeafKind::kKernel) continue;
    const std::vector<TensorUse>& writes = program.uses[leaf].writes;
    for (size_t w = 0; w < writes.size(); ++w) {
      const storage::Layout& layout = *writes[w].layout;
      if (layout.ElementCount() == 0) continue;
      if (analyzer::GivenTo(program, leaf, writes[w], side.end_leaf) >= 0) {
        outputs.emplace_back(leaf, w);
        continue;
      }
      bool read_inside = false;
      bool read_by_host = false;
      bool outlives = false;
      bool written_again = false;
      for (const analyzer::Access& access :
           program.buffers.at(writes[w].tensor.buffer_id).accesses) {
        if (access.leaf <= leaf || access.end_byte <= layout.FirstByte() ||
            layout.EndByte() <= access.first_byte) {
          continue;
        }
        const bool inside = access.leaf < side.end_leaf;
        if (access.write) {
          written_again = written_again || inside;
          continue;
        }
        if (inside && program.leaves[access.leaf].kind == LeafKind::kHostRead) {
          read_by_host = read_by_host || !written_again;
        } else if (inside) {
          read_inside = true;
        } else {
          outlives = true;
        }
      }
      if (read_by_host || (!written_again && (outlives || !read_inside))) {
        outputs.emplace_back(leaf, w);
      }
    }
  }
  return outputs;
}

analyzer::Coverage Exchange::CoverageOf(const std::vector<ResultPlace>& compared,
                                        const std::set<int64_t>& apart) const {
  const Side& side = sides_[0];
  std::set<int64_t> leaves;
  for (const auto& [leaf, write] : compared) leaves.insert(leaf);
  CoverageWalk walk;
  int64_t untold = 0;
  for (int64_t leaf = side.end_leaf; leaf-- > side.first_leaf;) {
    const analyzer::LeafUses& uses = side.program().uses[leaf];
    const CoverageWalk::Work work =
        CoverageWalk::WorkOf(*side.program().leaves[leaf].op, side.Executes(leaf));
    const bool covered = walk.Visit(uses.reads, uses.writes, work, leaves.contains(leaf));
    const bool computes = work == CoverageWalk::Work::kComputes;
    untold += computes && covered && apart.contains(leaf) ? 1 : 0;
  }
  analyzer::Coverage coverage = walk.coverage();
  coverage.covered -= untold;
  return coverage;
}

}  // namespace acltape::replayer::against
