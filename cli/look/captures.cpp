#include <fmt/format.h>

#include <algorithm>

#include "analyzer/calls/level.h"
#include "analyzer/lint/engine_batches.h"
#include "analyzer/lint/places.h"
#include "analyzer/lint/recaptures.h"
#include "analyzer/streams/budget.h"
#include "cli/frame/options.h"
#include "cli/look/commands.h"
#include "cli/terminal/table.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

using analyzer::lint::CaptureList;
using analyzer::lint::CaptureReason;
using analyzer::lint::CaptureRow;
using analyzer::lint::EngineBatch;
using analyzer::lint::EngineSteps;
using analyzer::lint::EngineUse;

Cell Known(int64_t number) { return number < 0 ? Cell() : Cell(number); }

class CapturesCommand final : public Command {
 public:
  std::string Name() const override { return "captures"; }
  std::string Summary() const override {
    return "The graphs that the program captured, and why it captured again";
  }
  std::string Examples() const override {
    return "  acltape captures t.db\n"
           "  acltape captures t.db @soc Ascend310P3       streams of another device\n"
           "  acltape captures t.db @format json"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddOption(app, "soc", soc_, "Device whose streams count")->capture_default_str();
    AddFormatOption(app, format_);
  }

  int Run() override {
    const analyzer::streams::SocLimits& soc = analyzer::streams::NeedSoc(soc_);
    const storage::Reader reader(trace_, part());
    analyzer::Work work;
    CaptureList list;
    if (analyzer::HoldsLevel(reader, analyzer::Level::kAcl)) {
      work = analyzer::LoadWork(reader, analyzer::Level::kAcl);
      list = analyzer::lint::FindCaptures(work);
    }
    if (list.captures.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("the program of {} captured no graph; acltape plan works out what "
                              "can be captured",
                              trace_));
    }
    Report report;
    report.Add("facts", Facts(list, soc));
    const EngineUse use = analyzer::lint::FindEngineUse(work, list);
    if (!use.steps.empty()) {
      report.Add("batch sizes", Batches(use));
      report.Add("engine steps", EngineStepTable(use));
    }
    report.Add("captures", Captures(work, list));
    fmt::print("{}", report.ToText(format_));
    return kExitFine;
  }

 private:
  static Table Facts(const CaptureList& list, const analyzer::streams::SocLimits& soc) {
    const auto count = [&](auto&& holds) {
      return static_cast<int64_t>(std::count_if(list.captures.begin(), list.captures.end(), holds));
    };
    Table table({"fact", "value"});
    table.Add({"graphs captured", static_cast<int64_t>(list.captures.size())});
    table.Add({"of different operators", static_cast<int64_t>(list.operator_lists)});
    constexpr struct {
      CaptureReason reason;
      const char* name;
    } kAgain[] = {{CaptureReason::kShape, "again for another shape"},
                  {CaptureReason::kArgument, "again for another host argument"},
                  {CaptureReason::kAddress, "again for memory elsewhere"},
                  {CaptureReason::kNothing, "again for nothing that the trace shows"},
                  {CaptureReason::kEmpty, "without operators"}};
    for (const auto& row : kAgain) {
      table.Add({row.name, count([&](const CaptureRow& c) { return c.reason == row.reason; })});
    }
    table.Add({"never executed", count([](const CaptureRow& c) { return c.executions == 0; })});
    table.Add({"most graphs at a time", list.most_alive});
    table.Add({"most streams of graphs at a time", list.most_streams});
    table.Add({"usable streams of " + std::string(soc.name), soc.usable_streams()});
    return table;
  }

  // How often the graphs of each size were executed, and with how many rows that no token filled.
  static Table Batches(const EngineUse& use) {
    Table table({"rows", "mode", "graphs", "steps", "executions", "warming_up", "tokens", "padding",
                 "verdict"});
    for (const EngineBatch& batch : use.batches) {
      const bool used = batch.steps > 0;
      table.Add({Known(batch.rows), TextCell(batch.mode), batch.graphs, batch.steps,
                 batch.executions, batch.executions_outside, used ? Known(batch.tokens) : Cell(),
                 used ? Known(batch.padding) : Cell(),
                 std::string(!used               ? "never used by a step"
                             : batch.padding > 0 ? "used, with padding"
                                                 : "used")});
    }
    return table;
  }

  static Table EngineStepTable(const EngineUse& use) {
    Table table({"kind", "rows", "mode", "steps", "first_step", "tokens", "padding", "executions",
                 "without_graph"});
    for (const EngineSteps& row : use.steps) {
      table.Add({row.kind, Known(row.rows), TextCell(row.mode), row.steps, Known(row.first_step),
                 Known(row.tokens), Known(row.padding), row.executions, row.eager});
    }
    return table;
  }

  static Table Captures(const analyzer::Work& work, const CaptureList& list) {
    const analyzer::lint::Places places(work);
    Table table({"graph", "begins", "place", "operators", "streams", "executions", "destroyed",
                 "reason", "against", "difference"});
    for (const CaptureRow& row : list.captures) {
      const auto begin = static_cast<size_t>(row.stretch.begin_call);
      const auto some = [](int64_t id) { return id == 0 ? Cell() : Cell(id); };
      table.Add({row.stretch.model_id, work.calls[begin].call_id, places.Text(begin), row.launches,
                 row.stream_numbers, row.executions, some(row.destroy_call),
                 std::string(analyzer::lint::CaptureReasonName(row.reason)),
                 some(row.earlier_model), row.difference});
    }
    return table;
  }

  std::string trace_;
  std::string soc_ = "Ascend910B1";
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeCapturesCommand() { return std::make_unique<CapturesCommand>(); }

}  // namespace acltape::cli
