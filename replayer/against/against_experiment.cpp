#include "replayer/against/against_experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/diff/causes.h"
#include "meaning/acl_operators.h"
#include "replayer/against/convert.h"
#include "replayer/script/round_outcome.h"
#include "storage/payload.h"

namespace acltape::replayer::against {
namespace {

using analyzer::TensorUse;
using analyzer::diff::DiffCause;
using analyzer::diff::DiffRelation;
using analyzer::diff::DiffRow;

bool SameBits(const CallResults& a, const CallResults& b) {
  for (size_t w = 0; w < a.size(); ++w) {
    if (*a[w] != *b[w]) return false;
  }
  return true;
}

std::optional<bool> Reproduces(const CallResults& here, const CallResults& recorded) {
  for (const Bytes& result : recorded) {
    if (result == nullptr) return std::nullopt;
  }
  return SameBits(here, recorded);
}

// True if the two sides of a row were recorded with different forms, element types or results.
bool Unlike(const DiffRow& row) {
  return row.relation != DiffRelation::kSame || !row.notes.empty() || row.cause != DiffCause::kNone;
}

// Returns the coarsest rounding of the result types in which two calls differ; 0 if they have equal
// types.
double RoundingBetween(const analyzer::Program& a, int64_t a_leaf, const analyzer::Program& b,
                       int64_t b_leaf) {
  const std::vector<TensorUse>& a_writes = a.uses[a_leaf].writes;
  const std::vector<TensorUse>& b_writes = b.uses[b_leaf].writes;
  double rounding = 0;
  for (size_t w = 0; w < std::min(a_writes.size(), b_writes.size()); ++w) {
    const storage::DType of_a = a_writes[w].layout->dtype;
    const storage::DType of_b = b_writes[w].layout->dtype;
    if (of_a == of_b) continue;
    rounding =
        std::max(rounding, analyzer::diff::RoundingOf(analyzer::diff::CoarsestType(of_a, of_b)));
  }
  return rounding;
}

}  // namespace

AgainstExperiment::AgainstExperiment(Exchange& exchange,
                                     const std::function<bool(int64_t call)>& may_alter,
                                     meaning::GivenCommand command)
    : exchange_(exchange),
      command_(std::move(command)),
      outputs_(exchange.Outputs()),
      tolerant_(analyzer::metrics::Standard::Load("ascend")) {
  for (const size_t row : exchange.rows()) {
    const DiffRow& calls = exchange.row(row);
    rounding_ =
        std::max(rounding_, RoundingBetween(exchange.program(0), exchange.LastLeaf(0, row),
                                            exchange.program(1), exchange.LastLeaf(1, row)));
    if (!Unlike(calls)) continue;
    if (may_alter && std::none_of(calls.a_calls.begin(), calls.a_calls.end(), may_alter)) continue;
    facts_.push_back(FactsOf(row));
    if (facts_.back().element) AddElement(facts_.size() - 1);
  }
  MarkJoined();
}

// A row that another one takes along is executed with it, and so is not named by the diff alone.
void AgainstExperiment::MarkJoined() {
  std::map<size_t, int64_t> joined_to;
  for (const PairFacts& facts : facts_) {
    if (!facts.element) continue;
    for (const size_t row : facts.joined) {
      joined_to.emplace(row, exchange_.row(facts.row).a_calls.back());
    }
  }
  for (PairFacts& facts : facts_) {
    const auto known = joined_to.find(facts.row);
    if (facts.why_not.empty() || known == joined_to.end()) continue;
    facts.joined_to = known->second;
    facts.why_not.clear();
  }
}

bool AgainstExperiment::SameForm(const PairFacts& facts) const {
  const DiffRow& row = exchange_.row(facts.row);
  return row.relation == DiffRelation::kSame && row.notes.empty();
}

void AgainstExperiment::AddElement(size_t fact) {
  const PairFacts& facts = facts_[fact];
  if (SameForm(facts) && facts.only_a.size() + facts.only_b.size() > 0) {
    for (std::vector<size_t>& element : elements_) {
      const PairFacts& first = facts_[element.front()];
      if (!SameForm(first) || first.only_a != facts.only_a || first.only_b != facts.only_b) {
        continue;
      }
      element.push_back(fact);
      return;
    }
  }
  elements_.push_back({fact});
}

analyzer::Coverage AgainstExperiment::Coverage() const {
  std::set<int64_t> apart;
  for (const PairFacts& facts : facts_) {
    if (!facts.why_not.empty()) apart.insert(exchange_.LastLeaf(0, facts.row));
  }
  return exchange_.CoverageOf(outputs_, apart);
}

int64_t AgainstExperiment::CallOf(size_t element) const { return CallsOf(element).front(); }

// Returns the calls of A that an element alters, in order, one for each row.
std::vector<int64_t> AgainstExperiment::CallsOf(size_t element) const {
  std::vector<int64_t> calls;
  for (const size_t fact : elements_[element]) {
    for (const size_t row : facts_[fact].joined) {
      calls.push_back(exchange_.row(row).a_calls.back());
    }
    calls.push_back(exchange_.row(facts_[fact].row).a_calls.back());
  }
  std::sort(calls.begin(), calls.end());
  return calls;
}

PairFacts AgainstExperiment::FactsOf(size_t row) {
  PairFacts facts;
  facts.row = row;
  const analyzer::Leaf& of_b = exchange_.program(1).leaves[exchange_.LastLeaf(1, row)];
  const bool source = of_b.kind == analyzer::LeafKind::kSource;
  const auto function = analyzer::FindAclFunction(of_b.op->name).kind;
  facts.received = source && (function == analyzer::AclCallKind::kCollective ||
                              meaning::Communicates(of_b.op->name));
  facts.random = source && !facts.received;
  CallResults of_a;
  CallResults exchanged;
  try {
    of_a = exchange_.OnRecorded(0, row);
    facts.a_reproduces = Reproduces(of_a, exchange_.Recorded(0, row));
    facts.b_reproduces = Reproduces(exchange_.OnRecorded(1, row), exchange_.Recorded(1, row));
    exchanged = exchange_.ExchangedOnRecorded(row);
  } catch (const NotExchangeable& cause) {
    facts.why_not = cause.what();
    return facts;
  } catch (const Error& cause) {
    if (cause.kind() != ErrorKind::kTrace) throw;
    facts.why_not = cause.what();
    return facts;
  }
  facts.same_result = SameBits(of_a, exchanged);
  for (int side = 0; side < 2; ++side) {
    for (const int64_t leaf : exchange_.unpaired(side)) {
      const int64_t call = exchange_.program(side).leaves[leaf].call.call_id;
      (side == 0 ? facts.only_a : facts.only_b).push_back(call);
    }
  }
  facts.joined.assign(exchange_.joined().begin(), exchange_.joined().end());
  const std::vector<TensorUse>& writes =
      exchange_.program(0).uses[exchange_.LastLeaf(0, row)].writes;
  for (size_t w = 0; w < writes.size(); ++w) {
    const storage::Layout& layout = *writes[w].layout;
    if (*of_a[w] == *exchanged[w] || layout.ElementCount() == 0) continue;
    const analyzer::metrics::TensorMetrics metrics = analyzer::metrics::Measure(
        layout.dtype, of_a[w]->data(), layout.dtype, exchanged[w]->data(), layout.ElementCount());
    facts.error = std::max(facts.error, std::sqrt(metrics.nmse));
  }
  const DiffRow& calls = exchange_.row(row);
  const bool other_form = calls.relation != DiffRelation::kSame || !calls.notes.empty();
  facts.element = other_form || !*facts.same_result;
  return facts;
}

// Names the first row, where the shape begins to differ, and counts those after it.
std::string AgainstExperiment::DescribeJoined(const PairFacts& facts) const {
  const DiffRow& row = exchange_.row(facts.joined.front());
  return fmt::format(
      "call {} {} of A in the form of call {}{} of B ({}), with what reads it up to call {} {}",
      row.a_calls.back(), row.a_op, row.b_calls.back(), row.a_op == row.b_op ? "" : " " + row.b_op,
      row.change, exchange_.row(facts.row).a_calls.back(), exchange_.row(facts.row).a_op);
}

std::string AgainstExperiment::Describe(size_t element) const {
  const auto calls = [](const std::vector<int64_t>& ids) {
    return fmt::format("{} {}", ids.size() == 1 ? "call" : "calls", fmt::join(ids, " "));
  };
  const PairFacts& first = facts_[elements_[element].front()];
  const DiffRow& row = exchange_.row(first.row);
  const auto operators = [&](int side, const std::vector<int64_t>& ids) {
    std::string text;
    for (const int64_t id : ids) text += " " + exchange_.OperatorOf(side, id);
    return calls(ids) + text;
  };
  if (SameForm(first) && first.only_a.size() + first.only_b.size() > 0) {
    std::string text;
    if (!first.only_b.empty()) text = operators(1, first.only_b) + ", which only B has";
    if (!first.only_a.empty()) {
      text += (text.empty() ? "" : ", and ") + operators(0, first.only_a) + ", which only A has";
    }
    std::vector<int64_t> readers;
    for (const size_t fact : elements_[element]) {
      const std::vector<int64_t>& ids = exchange_.row(facts_[fact].row).a_calls;
      readers.insert(readers.end(), ids.begin(), ids.end());
    }
    return text + ", before " + calls(readers) + " of A";
  }
  std::string what = row.change;
  if (!row.notes.empty()) what += (what.empty() ? "" : "; ") + row.notes;
  if (what.empty()) {
    what = first.random     ? "other random numbers"
           : first.received ? "other data from other ranks"
                            : "contents that B's program brought";
  }
  if (!first.joined.empty()) return DescribeJoined(first);
  return fmt::format("{} {} of A in the form of {}{} of B ({})", calls(row.a_calls), row.a_op,
                     calls(row.b_calls), row.a_op == row.b_op ? "" : " " + row.b_op, what);
}

std::string AgainstExperiment::Command(const script::ElementSet& altered) const {
  if (altered.empty()) return command_.With({});
  std::vector<int64_t> calls;
  for (const size_t element : altered) {
    const std::vector<int64_t> own = CallsOf(element);
    calls.insert(calls.end(), own.begin(), own.end());
  }
  std::sort(calls.begin(), calls.end());
  return command_.With({{"calls", fmt::format("{}", fmt::join(calls, ","))}});
}

std::string AgainstExperiment::Compare(const Exchange::Values& values) const {
  const analyzer::Program& program = exchange_.program(0);
  for (const auto& [leaf, w] : outputs_) {
    const auto here = values.find(leaf);
    const auto there = reference_.find(leaf);
    if (here == values.end() || there == reference_.end()) continue;  // recorded on both sides
    const Bytes& now = here->second[w];
    const Bytes& before = there->second[w];
    if (now == before || *now == *before) continue;
    const TensorUse& use = program.uses[leaf].writes[w];
    const storage::Layout& layout = *use.layout;
    const std::vector<uint8_t> a = RowMajorOf(layout, *before);
    const std::vector<uint8_t> b = RowMajorOf(layout, *now);
    analyzer::metrics::TensorMetrics metrics;
    const analyzer::metrics::Judgement judgement =
        tolerant_.Compare(program.leaves[leaf].Name(), layout.dtype, a.data(), layout.dtype,
                          b.data(), layout.ElementCount(), &metrics);
    const double error = std::sqrt(metrics.nmse);
    const double allowed = analyzer::diff::kAmplification * rounding_;
    const bool numbers = metrics.nan_mismatches == 0 && metrics.inf_mismatches == 0;
    if (rounds() && numbers &&
        (judgement.verdict != analyzer::metrics::Judgement::Verdict::kDifferent ||
         error <= allowed)) {
      continue;
    }
    const int position = program.leaves[leaf].arguments[use.argument].position;
    nlohmann::json evidence{{"call", program.leaves[leaf].call.call_id},
                            {"op", program.leaves[leaf].Name()},
                            {"output", position},
                            {"differing", metrics.differing},
                            {"elements", metrics.elements},
                            {"A", metrics.first_a},
                            {"here", metrics.first_b},
                            {"max_ulp", metrics.max_ulp}};
    // JSON has no infinities.
    if (std::isfinite(error)) evidence["relative_error"] = error;
    if (std::isfinite(metrics.max_abs)) evidence["max_abs"] = metrics.max_abs;
    if (rounds()) evidence["allowed_error"] = allowed;
    return evidence.dump();
  }
  return "";
}

script::Outcome AgainstExperiment::Try(const script::ElementSet& altered) {
  if (outputs_.empty()) return script::NothingCompared();
  if (reference_.empty()) reference_ = exchange_.Run({}, nullptr);
  std::vector<bool> rows(exchange_.row_count(), false);
  for (const size_t element : altered) {
    for (const size_t fact : elements_[element]) rows[facts_[fact].row] = true;
  }
  script::Outcome outcome;
  outcome.executions = 1;
  try {
    const Exchange::Values& values = exchange_.Run(rows, altered.empty() ? nullptr : &reference_);
    outcome.evidence = Compare(values);
    std::string digests;
    for (const auto& [leaf, w] : outputs_) {
      const auto found = values.find(leaf);
      if (found == values.end()) continue;
      digests += storage::DigestOf(found->second[w]->data(), found->second[w]->size());
    }
    outcome.fingerprint = storage::DigestOf(digests.data(), digests.size());
  } catch (const NotExchangeable& cause) {
    outcome.verdict = script::Outcome::Verdict::kCannotJudge;
    outcome.evidence = nlohmann::json{{"not_exchangeable", cause.what()}}.dump();
    return outcome;
  }
  if (outcome.evidence.empty()) return outcome;
  outcome.verdict = script::Outcome::Verdict::kBad;
  outcome.bad_executions = 1;
  return outcome;
}

}  // namespace acltape::replayer::against
