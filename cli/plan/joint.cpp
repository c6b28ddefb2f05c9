#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>

#include "analyzer/calls/value_text.h"
#include "analyzer/graph/variation.h"
#include "analyzer/joint/joint_graph.h"
#include "analyzer/steps/steps.h"
#include "cli/frame/options.h"
#include "cli/plan/commands.h"
#include "cli/tables/step_source.h"
#include "cli/terminal/table.h"

namespace acltape::cli {
namespace {

using analyzer::StepRange;
using analyzer::Work;
using analyzer::joint::JointStep;
using analyzer::joint::JointValue;
using analyzer::joint::Partition;

class JointCommand final : public Command {
 public:
  std::string Name() const override { return "joint"; }
  std::string Summary() const override {
    return "Show what forward keeps for backward, and what recomputing some of it would save";
  }
  std::string Examples() const override {
    return "  acltape joint t.db                   a step of the largest family\n"
           "  acltape joint t.db @step 3 @format json\n"
           "  acltape joint t.db @recompute-cube  matrix products may be computed again too"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace of a training program")->required();
    AddOption(app, "step", step_,
              "The step; default: the second of the largest family with a backward pass")
        ->check(AtLeast(0));
    AddFlag(app, "recompute-cube", recompute_cube_,
            "Let matrix products and convolutions be computed again");
    AddFormatOption(app, format_);
  }

  int Run() override {
    const storage::Reader reader(trace_, part());
    Work work = analyzer::LoadWork(reader);
    analyzer::AssignSteps(work, nullptr);
    const StepRange step = FindStep(work);
    const JointStep joint =
        analyzer::joint::BuildJointStep(work, step.first, step.end, recompute_cube_);
    const Partition all = analyzer::joint::KeepAll(joint.graph);
    const Partition cut = analyzer::joint::MinCut(joint.graph);

    Report report;
    report.Add("facts", Facts(work, step, joint));
    Table partitions({"partition", "tensors_kept", "bytes_kept", "bytes_less", "calls_recomputed",
                      "ns_recomputed", "step_percent"});
    for (const auto& [name, partition] : {std::pair("default", &all), std::pair("min-cut", &cut)}) {
      partitions.Add(
          {name, Stored(joint, *partition), partition->bytes, all.bytes - partition->bytes,
           static_cast<int64_t>(partition->recomputed.size()),
           static_cast<int64_t>(partition->recompute_ns),
           std::round(10000 * partition->recompute_ns / (joint.forward_ns + joint.backward_ns)) /
               100});
    }
    report.Add("partitions", std::move(partitions));
    report.Add("kept", Kept(work, joint, all, cut));
    report.Add("recomputed", Recomputed(work, joint, cut));
    fmt::print("{}", report.ToText(format_));
    return kExitFine;
  }

 private:
  // The step that was asked for, else the second of the largest family: the first pays for what is
  // set up once. A trace without steps is one.
  StepRange FindStep(const Work& work) const {
    const auto refuse = [&](const std::string& where) {
      return Error(
          ErrorKind::kTrace,
          fmt::format("{} has no call of a backward pass{}; joint is for training programs "
                      "recorded at the aten level.",
                      trace_, where));
    };
    if (step_) {
      for (const StepRange& step : work.steps) {
        if (step.step != *step_) continue;
        if (!analyzer::joint::HasBackward(work, step.first, step.end)) {
          throw refuse(fmt::format(" in step {}", *step_));
        }
        return step;
      }
      throw Error(ErrorKind::kUsage, fmt::format("{} has no step {}.", trace_, *step_));
    }
    const StepRange* found = nullptr;
    size_t most = 0;
    for (const analyzer::graph::StepFamily& family : analyzer::graph::FindFamilies(work)) {
      const StepRange& step = work.steps[family.steps[family.steps.size() > 1 ? 1 : 0]];
      if (family.steps.size() <= most ||
          !analyzer::joint::HasBackward(work, step.first, step.end)) {
        continue;
      }
      most = family.steps.size();
      found = &step;
    }
    if (found != nullptr) return *found;
    if (!work.steps.empty() || !analyzer::joint::HasBackward(work, 0, work.size())) {
      throw refuse("");
    }
    return {0, 0, static_cast<int64_t>(work.size()), "the whole trace"};
  }

  Table Facts(const Work& work, const StepRange& step, const JointStep& joint) const {
    Table table({"fact", "value"});
    table.Add({"step", work.steps.empty() ? Cell("the whole trace") : Cell(step.step)});
    if (!work.steps.empty()) AddStepSource(table, step.found_by);
    table.Add({"calls", fmt::format("{}-{}", work.calls[step.first].call_id,
                                    work.calls[step.end - 1].call_id)});
    table.Add({"forward calls", static_cast<int64_t>(joint.calls.size())});
    table.Add({"backward calls", static_cast<int64_t>(joint.backward_calls)});
    table.Add({"links forward to backward", static_cast<int64_t>(joint.links)});
    table.Add({"forward_ns", static_cast<int64_t>(joint.forward_ns)});
    table.Add({"backward_ns", static_cast<int64_t>(joint.backward_ns)});
    return table;
  }

  // Counts the kept tensors that take bytes.
  static int64_t Stored(const JointStep& joint, const Partition& partition) {
    int64_t count = 0;
    for (const int32_t v : partition.kept) count += joint.graph.values[v].bytes > 0 ? 1 : 0;
    return count;
  }

  // The tensors that either partition keeps; those that the program holds in any case left out.
  static Table Kept(const Work& work, const JointStep& joint, const Partition& all,
                    const Partition& cut) {
    Table table({"call_id", "op", "tensor", "buffer_id", "bytes", "first_backward_call", "default",
                 "min_cut", "not_recomputed"});
    const std::set<int32_t> in_all(all.kept.begin(), all.kept.end());
    const std::set<int32_t> in_cut(cut.kept.begin(), cut.kept.end());
    for (size_t v = 0; v < joint.graph.values.size(); ++v) {
      const JointValue& value = joint.graph.values[v];
      const auto id = static_cast<int32_t>(v);
      if (value.bytes == 0 || (in_all.count(id) == 0 && in_cut.count(id) == 0)) continue;
      const analyzer::joint::JointPlace& place = joint.places[v];
      const bool made = value.writer >= 0;
      const size_t call = made ? joint.calls[value.writer] : 0;
      table.Add({made ? Cell(work.calls[call].call_id) : Cell(),
                 made ? Cell(work.op(call).FullName()) : Cell("before the step"),
                 std::string(storage::DTypeName(place.layout->dtype)) +
                     analyzer::ListText(place.layout->shape),
                 place.buffer, value.bytes,
                 place.first_reader < 0 ? Cell() : Cell(work.calls[place.first_reader].call_id),
                 in_all.count(id) != 0 ? "kept" : "", in_cut.count(id) != 0 ? "kept" : "",
                 made ? std::string(analyzer::joint::RecomputeBarName(joint.bars[value.writer]))
                      : "input"});
    }
    return table;
  }

  static Table Recomputed(const Work& work, const JointStep& joint, const Partition& cut) {
    Table table({"call_id", "op", "duration_ns"});
    for (const int32_t node : cut.recomputed) {
      const size_t call = joint.calls[node];
      table.Add({work.calls[call].call_id, work.op(call).FullName(), work.calls[call].duration_ns});
    }
    return table;
  }

  std::string trace_;
  std::optional<int64_t> step_;
  bool recompute_cube_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeJointCommand() { return std::make_unique<JointCommand>(); }

}  // namespace acltape::cli
