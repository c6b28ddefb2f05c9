#include "analyzer/emit/emit.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <unordered_map>

#include "analyzer/emit/planned_step.h"
#include "analyzer/plan/plan_dag.h"
#include "analyzer/plan/plan_file.h"
#include "analyzer/program/acl_leaves.h"
#include "analyzer/program/leaves.h"
#include "cli/choices/selection.h"
#include "cli/frame/options.h"
#include "cli/frame/usage.h"
#include "cli/plan/commands.h"
#include "cli/tables/fx_graph.h"
#include "cli/terminal/table.h"
#include "storage/new_file.h"

namespace acltape::cli {
namespace {

using analyzer::Work;
using analyzer::emit::PlannedCall;
using analyzer::plan::Plan;

enum class Form { kFx, kDot, kTorchair, kJson };

class EmitCommand final : public Command {
 public:
  std::string Name() const override { return "emit"; }
  std::string Summary() const override {
    return "Write a plan in another form: FX table, Graphviz, torchair pass, resolved JSON";
  }
  std::string Examples() const override {
    return "  acltape emit t.db plan.json @as fx\n"
           "  acltape emit t.db plan.json @as dot -o plan.dot && dot -Tsvg plan.dot -o plan.svg\n"
           "  acltape emit t.db plan.json @as torchair -o plan_pass.py"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace that the plan was made for")->required();
    app.add_option("plan", plan_, "The plan (docs/plan_format.md)")->required();
    AddChoice(app, "as", form_,
              {{"fx", Form::kFx},
               {"dot", Form::kDot},
               {"torchair", Form::kTorchair},
               {"json", Form::kJson}},
              "What to write");
    AddOutputOption(app, output_, "The file to write; default: stdout")->type_name("FILE");
    AddFlag(app, "force", force_);
    AddFormatOption(app, format_);
  }

  int Run() override {
    // The plan came first in earlier versions, and scripts may still say it so.
    if (IsDatabase(plan_) && !IsDatabase(trace_)) {
      trace_.swap(plan_);
      fmt::print(stderr, "acltape: emit takes the trace first, as every command does: {}.\n",
                 given().WithArgument("trace", trace_).WithArgument("plan", plan_).Text());
    }
    if (!output_.empty()) storage::JudgeOutput(output_, Rules());
    const storage::Reader reader(trace_, part());
    const Work work = analyzer::LoadLeaves(reader, nullptr);
    const Plan plan = analyzer::plan::ReadPlan(plan_, work);
    Write(Text(reader, work, plan));
    return kExitFine;
  }

 private:
  storage::OutputRules Rules() const {
    return {.overwrite = force_, .trace = trace_, .reads = {plan_}};
  }

  std::string Text(const storage::Reader& reader, const Work& work, const Plan& plan) const {
    switch (form_) {
      case Form::kFx:
        return FxTable(reader, work, plan)
            .ToText(format_, output_.empty() ? OutputScreen() : Screen());
      case Form::kDot:
        return analyzer::emit::DotText(plan, work);
      case Form::kTorchair:
        return analyzer::emit::TorchairPass(plan, work);
      case Form::kJson:
        break;
    }
    return analyzer::emit::ResolvedJson(plan, work);
  }

  static std::vector<storage::Call> LeavesOf(const storage::Reader& reader, const Work& work,
                                             const Plan& plan) {
    if (work.dialect == analyzer::Dialect::kAten) {
      return SelectLeaves(reader,
                          Selection::Parse(fmt::format("{}-{}", plan.first_call, plan.last_call)));
    }
    const analyzer::Program program = analyzer::LoadProgram(reader);
    std::vector<storage::Call> leaves;
    for (const size_t call : analyzer::plan::ActiveCalls(work, plan.first_call, plan.last_call)) {
      leaves.push_back(program.leaves[call].call);
    }
    return leaves;
  }

  // The step as `acltape graph` shows it, with the plan's columns.
  static Table FxTable(const storage::Reader& reader, const Work& work, const Plan& plan) {
    std::unordered_map<int64_t, PlannedCall> planned;
    for (PlannedCall& call : analyzer::emit::ResolvePlan(plan, work)) {
      planned.emplace(work.calls[call.call].call_id, std::move(call));
    }
    const auto leaves = LeavesOf(reader, work, plan);
    Table table({"call_id", "opcode", "name", "target", "args", "kwargs", "result", "region",
                 "stream", "waits"});
    for (FxNode& node : BuildFxGraph(reader, leaves)) {
      Cell region;
      Cell stream;
      Cell waits;
      if (const auto found = planned.find(node.call_id); found != planned.end()) {
        const PlannedCall& call = found->second;
        region = static_cast<int64_t>(plan.regions[call.region].region);
        if (plan.regions[call.region].captured) stream = static_cast<int64_t>(call.stream);
        std::string text;
        for (const analyzer::plan::PlanWait& wait : call.waits) {
          text += fmt::format("{}event {} after call {}", text.empty() ? "" : ", ", wait.event,
                              wait.record_after);
        }
        if (!text.empty()) waits = text;
      }
      table.Add({node.call_id == 0 ? Cell() : Cell(node.call_id), std::move(node.opcode),
                 std::move(node.name), std::move(node.target), std::move(node.args),
                 std::move(node.kwargs), std::move(node.result), region, stream, waits});
    }
    return table;
  }

  void Write(const std::string& text) const {
    if (output_.empty()) {
      fmt::print("{}", text);
      return;
    }
    storage::WriteNewFile(output_, text, Rules());
  }

  std::string plan_;
  std::string trace_;
  std::string output_;
  bool force_ = false;
  Form form_ = Form::kFx;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeEmitCommand() { return std::make_unique<EmitCommand>(); }

}  // namespace acltape::cli
