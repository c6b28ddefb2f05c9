#include "analyzer/waits/step_modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzer/lint/recaptures.h"

namespace acltape::analyzer::waits {
namespace {

using K = AclCallKind;

// The shape of the first tensor that an operator takes; null: it takes none.
const storage::Layout* FirstTensor(const WorkForm& form) {
  return form.accesses.empty() ? nullptr : form.accesses.front().layout;
}

class ModeFinder {
 public:
  explicit ModeFinder(const Work& work) : work_(work) {
    for (size_t call = 0; call < work.size(); ++call) {
      const WorkCall& row = work.calls[call];
      const K kind = work.form(call).acl_kind();
      if (row.model_id == 0 || row.status != 0 || kind != K::kOperator) continue;
      ++operators_of_[row.model_id];
      if (const storage::Layout* layout = FirstTensor(work.form(call))) {
        captured_[work.op(call).op_id].insert(layout->shape);
      }
    }
    for (const lint::CaptureRow& row : lint::FindCaptures(work).captures) {
      reasons_.emplace(row.stretch.begin_call, row);
    }
  }

  std::vector<StepModeRow> Find() {
    std::map<std::pair<StepMode, std::string>, StepModeRow> rows;
    for (const StepRange& step : work_.steps) {
      StepModeRow one = RowOf(step);
      StepModeRow& row = rows[{one.mode, one.reason}];
      if (row.steps++ == 0) {
        row.mode = one.mode;
        row.reason = one.reason;
        row.first_step = step.step;
      }
      row.in_graphs += one.in_graphs;
      row.eager += one.eager;
    }
    std::vector<StepModeRow> found;
    for (auto& [key, row] : rows) found.push_back(std::move(row));
    std::ranges::stable_sort(found, std::ranges::greater(), &StepModeRow::steps);
    return found;
  }

 private:
  StepModeRow RowOf(const StepRange& step) {
    StepModeRow row;
    std::string captures;
    for (int64_t call = step.first; call < step.end; ++call) {
      const WorkForm& form = work_.form(call);
      if (work_.calls[call].status != 0) continue;
      if (const auto capture = reasons_.find(call); capture != reasons_.end()) {
        if (captures.empty()) captures = ReasonOf(capture->second);
      }
      if (IsExecution(form.acl_kind())) {
        row.in_graphs += operators_of_[form.Integer(form.function->object)];
      } else if (form.acl_kind() == K::kOperator && work_.calls[call].model_id == 0) {
        ++row.eager;
      }
    }
    if (!captures.empty()) {
      row.mode = StepMode::kCaptured;
      row.reason = captures;
    } else if (row.in_graphs > 0) {
      row.mode = row.eager == 0 ? StepMode::kGraphs : StepMode::kPartly;
    } else if (row.eager > 0) {
      row.mode = StepMode::kEager;
      row.reason = WhyEager(step);
    }
    return row;
  }

  static std::string ReasonOf(const lint::CaptureRow& row) {
    const std::string name(lint::CaptureReasonName(row.reason));
    if (row.earlier_model == 0) return "captured: " + name;
    return "captured again: " + name + (row.difference.empty() ? "" : ", " + row.difference);
  }

  // The step's operators may be those of a graph with another shape.
  std::string WhyEager(const StepRange& step) const {
    if (captured_.empty()) return "the program captures no graph";
    for (int64_t call = step.first; call < step.end; ++call) {
      const WorkForm& form = work_.form(call);
      if (form.acl_kind() != K::kOperator || work_.calls[call].model_id != 0) continue;
      const storage::Layout* layout = FirstTensor(form);
      const auto shapes = captured_.find(form.op->op_id);
      if (layout == nullptr || shapes == captured_.end()) continue;
      if (shapes->second.contains(layout->shape)) continue;
      std::string sizes;
      size_t named = 0;
      for (const std::vector<int64_t>& shape : shapes->second) {
        if (++named > 3) {
          sizes += fmt::format(" and {} more", shapes->second.size() - 3);
          break;
        }
        sizes += (sizes.empty() ? "" : ", ") + ShapeText(shape);
      }
      return fmt::format("no graph has its size: {} takes {}, and in graphs {}", form.op->name,
                         ShapeText(layout->shape), sizes);
    }
    return "its operators are in no graph, or the program did not take the graph";
  }

  static std::string ShapeText(const std::vector<int64_t>& shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
  }

  const Work& work_;
  std::unordered_map<int64_t, int64_t> operators_of_;                     // by model
  std::unordered_map<int64_t, std::set<std::vector<int64_t>>> captured_;  // by op_id: shapes
  std::unordered_map<int64_t, lint::CaptureRow> reasons_;  // by the call that begins the capture
};

}  // namespace

std::string_view StepModeName(StepMode mode) {
  constexpr std::array<std::string_view, 5> kNames = {"in graphs", "partly in graphs", "eagerly",
                                                      "with a capture", "without operators"};
  return kNames[static_cast<size_t>(mode)];
}

std::vector<StepModeRow> FindStepModes(const Work& work) { return ModeFinder(work).Find(); }

}  // namespace acltape::analyzer::waits
