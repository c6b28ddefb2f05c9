#include "analyzer/lint/recaptures.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "analyzer/graph/variation.h"
#include "analyzer/lint/capture_facts.h"
#include "analyzer/lint/lint.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;

// A capture is compared with at most this many earlier captures, the latest ones.
constexpr size_t kCompared = 16;

// The content of one capture, in a form that can be compared with others.
struct Captured {
  std::vector<int64_t> operators;  // op ids, in order
  std::vector<int32_t> forms;      // forms of the same calls
  std::vector<uint32_t> calls;     // indices in Work::calls
};

Captured Gather(const Work& work, const Stretch& stretch) {
  Captured captured;
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (work.calls[i].model_id != stretch.model_id || work.calls[i].status != 0) continue;
    if (!RepeatsWithTheStep(work.form(i).acl_kind())) continue;
    captured.operators.push_back(work.op(i).op_id);
    captured.forms.push_back(work.calls[i].form);
    captured.calls.push_back(static_cast<uint32_t>(i));
  }
  return captured;
}

// The difference between two captures of the same operators.
class Difference {
 public:
  // `work` has one step for each capture. `earlier` and `later` are two of these steps.
  Difference(const Work& work, size_t earlier, const Captured& before, size_t later,
             const Captured& now)
      : work_(work) {
    family_.steps = {earlier, later};
    family_.places = now.calls.size();
    family_.calls = before.calls;
    family_.calls.insert(family_.calls.end(), now.calls.begin(), now.calls.end());
    const graph::Variation variation = graph::FindVariation(work, family_);
    if (!variation.dimensions.empty()) {
      ReportShape(variation);
    } else if (!variation.arguments.empty()) {
      ReportArgument(variation);
    } else {
      ReportAddress(variation);
    }
  }

  CaptureReason reason = CaptureReason::kNothing;
  std::string text;

 private:
  std::string Call(size_t place) const { return work_.Describe(family_.Call(1, place)); }

  static std::string AndMore(size_t rows) {
    return rows < 2 ? "" : "; " + std::to_string(rows - 1) + " more differ";
  }

  void ReportShape(const graph::Variation& variation) {
    reason = CaptureReason::kShape;
    const graph::DimensionVariation& row = variation.dimensions.front();
    const std::vector<int64_t>& sizes = variation.symbols[row.symbol].sizes;
    const auto size = [&](size_t step) {
      return std::to_string(row.factor * sizes[step] + row.offset);
    };
    text = "dimension " + std::to_string(row.dimension) + " of " + row.name + " of " +
           Call(row.place) + " is " + size(1) + " instead of " + size(0) +
           AndMore(variation.dimensions.size());
  }

  void ReportArgument(const graph::Variation& variation) {
    reason = CaptureReason::kArgument;
    const graph::ArgumentVariation& row = variation.arguments.front();
    text = row.name + " of " + Call(row.place) + " is " + row.second_value + " instead of " +
           row.first_value + AndMore(variation.arguments.size());
  }

  void ReportAddress(const graph::Variation& variation) {
    std::vector<const graph::StepInput*> moved;
    for (const graph::StepInput& input : variation.inputs) {
      if (input.moves_by_address) moved.push_back(&input);
    }
    if (moved.empty()) {
      text = "the same operators with equal arguments and addresses";
      return;
    }
    // A compiler copies inputs to the place where the graph reads them, and it owns the memory that
    // the graph only writes. Memory that the graph updates forces a new capture.
    const auto weight = [](const graph::StepInput* input) {
      return input->written + 2 * input->read;
    };
    const graph::StepInput& row = **std::max_element(
        moved.begin(), moved.end(), [&](const graph::StepInput* a, const graph::StepInput* b) {
          return weight(a) < weight(b);
        });
    reason = CaptureReason::kAddress;
    text = row.name + " of " + Call(row.place) + ", which it " +
           (row.read && row.written ? "updates"
            : row.written           ? "writes"
                                    : "reads") +
           ", lies elsewhere" + AndMore(moved.size());
  }

  const Work& work_;
  graph::StepFamily family_;
};

// Sets the reason of each capture.
void Explain(const Work& work, const std::vector<Captured>& captured, CaptureList& list) {
  // Variations are found between steps, so each capture becomes a step here.
  Work captures_as_steps = work;
  captures_as_steps.steps.clear();
  for (size_t i = 0; i < list.captures.size(); ++i) {
    const Stretch& stretch = list.captures[i].stretch;
    captures_as_steps.steps.push_back({static_cast<int64_t>(i), static_cast<int64_t>(stretch.first),
                                       static_cast<int64_t>(stretch.end), "capture"});
  }
  std::map<std::vector<int64_t>, std::vector<size_t>> alike;  // captures by their operators
  std::map<std::vector<int32_t>, size_t> latest_of_forms;     // captures equal but for addresses
  for (size_t i = 0; i < list.captures.size(); ++i) {
    std::vector<size_t>& earlier = alike[captured[i].operators];
    const auto same_forms = latest_of_forms.find(captured[i].forms);
    std::span<const size_t> candidates = earlier;
    if (same_forms != latest_of_forms.end()) {
      candidates = {&same_forms->second, 1};
    } else if (candidates.size() > kCompared) {
      candidates = candidates.last(kCompared);
    }
    CaptureRow& row = list.captures[i];
    if (captured[i].calls.empty()) {
      row.reason = CaptureReason::kEmpty;
      continue;
    }
    for (auto other = candidates.rbegin(); other != candidates.rend(); ++other) {
      const Difference difference(captures_as_steps, *other, captured[*other], i, captured[i]);
      if (row.earlier_model != 0 && difference.reason <= row.reason) continue;
      row.reason = difference.reason;
      row.earlier_model = list.captures[*other].stretch.model_id;
      row.difference = difference.text;
    }
    earlier.push_back(i);
    latest_of_forms[captured[i].forms] = i;
  }
  list.operator_lists = alike.size();
}

// Counts executions, and the graphs and streams that exist at one time.
void Follow(const Work& work, CaptureList& list) {
  std::unordered_map<int64_t, CaptureRow*> by_model;
  for (CaptureRow& row : list.captures) by_model[row.stretch.model_id] = &row;
  int64_t alive = 0;
  int64_t streams = 0;
  size_t next = 0;
  for (size_t i = 0; i < work.size(); ++i) {
    while (next < list.captures.size() &&
           list.captures[next].stretch.begin_call <= static_cast<int64_t>(i)) {
      streams += list.captures[next++].stream_numbers;
      list.most_alive = std::max(list.most_alive, ++alive);
      list.most_streams = std::max(list.most_streams, streams);
    }
    const WorkForm& form = work.form(i);
    const bool execute = form.acl_kind() == K::kExecute;
    if ((!execute && form.acl_kind() != K::kModelDestroy) || work.calls[i].status != 0) continue;
    const auto found = by_model.find(form.Integer(form.function->object));
    if (found == by_model.end()) continue;
    if (execute) {
      ++found->second->executions;
      continue;
    }
    found->second->destroy_call = work.calls[i].call_id;
    streams -= found->second->stream_numbers;
    --alive;
  }
}

}  // namespace

std::string_view CaptureReasonName(CaptureReason reason) {
  constexpr std::string_view kNames[] = {"other operators", "shape",   "argument",
                                         "address",         "nothing", "empty"};
  return kNames[static_cast<size_t>(reason)];
}

CaptureList FindCaptures(const Work& work) {
  CaptureList list;
  const Handles handles(work);
  std::vector<Captured> captured;
  for (const Stretch& stretch : FindStretches(work, {})) {
    if (!stretch.recorded()) continue;
    CaptureRow& row = list.captures.emplace_back();
    row.stretch = stretch;
    row.stream_numbers = BudgetOf(FindCaptureFacts(work, stretch, handles)).streams;
    captured.push_back(Gather(work, stretch));
    for (const uint32_t call : captured.back().calls) {
      row.launches += work.form(call).acl_kind() == K::kOperator ? 1 : 0;
    }
  }
  Explain(work, captured, list);
  Follow(work, list);
  return list;
}

}  // namespace acltape::analyzer::lint
