#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "analyzer/graph/hazards.h"
#include "analyzer/graph/order.h"
#include "cli/choices/selection.h"
#include "cli/frame/options.h"
#include "cli/look/commands.h"
#include "cli/tables/fx_graph.h"
#include "cli/tables/report.h"
#include "cli/tables/where.h"
#include "cli/terminal/table.h"
#include "meaning/recorded_values.h"
#include "storage/process_choice.h"

namespace acltape::cli {
namespace {

class GraphCommand final : public Command {
 public:
  std::string Name() const override { return "graph"; }
  std::string Summary() const override {
    return "Print leaves as a torch.fx table, or which calls depend on which";
  }
  std::string Examples() const override {
    return "  acltape graph t.db                     the first step, or everything without steps\n"
           "  acltape graph t.db step:3/op:aten::mm  the matrix products of step 3\n"
           "  acltape graph t.db 100-200 @format csv\n"
           "  acltape graph t.db step:3 @dependencies   what must stay in order, and why\n"
           "  acltape graph t.db 1- @dependencies @format csv > edges.csv"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    app.add_option("selection", selection_, "Which calls: 100-200, step:3, op:NAME, stream:1");
    AddFlag(app, "dependencies", dependencies_,
            "Print what the picked calls depend on, and store it in the table `dependency`");
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (dependencies_) {
      PrintDependencies();
    } else {
      PrintLeaves();
    }
    return kExitFine;
  }

 private:
  // The first step, or everything without steps, when nothing was said.
  Selection Picked(const storage::Reader& reader) const {
    const auto steps = selection_.empty() ? reader.Steps() : std::vector<storage::Step>();
    if (steps.empty()) return Selection::Parse(selection_);
    return Selection::Parse(fmt::format("step:{}", steps.front().step));
  }

  [[noreturn]] void RefuseSelection() const {
    throw Error(ErrorKind::kUsage, fmt::format("no leaf of {} is picked by '{}'.", trace_,
                                               selection_.empty() ? "*" : selection_));
  }

  void PrintDependencies() const {
    const OpenedTrace trace(trace_, /*discard_results=*/false, part());
    const Selection selection = Picked(trace.reader());
    const analyzer::Work work = analyzer::LoadWork(trace.reader());
    const std::vector<size_t> picked = SelectCalls(work, selection);
    if (picked.empty()) RefuseSelection();
    std::vector<bool> wanted(work.size());
    for (const size_t call : picked) wanted[call] = true;

    std::vector<storage::Dependency> rows;
    Table table({"source_call", "source_op", "source_phase", "target_call", "target_op",
                 "target_phase", "kind", "buffer_id", "first_byte", "last_byte"});
    if (format_ == Format::kCsv) fmt::print("{}", table.ToText(format_));  // the header
    const auto add = [&](uint32_t source, uint32_t target, std::string_view kind, int64_t buffer,
                         int64_t first, int64_t last) {
      if (!wanted[target]) return;
      rows.push_back({work.calls[source].call_id, work.calls[target].call_id, std::string(kind),
                      buffer, first, last});
      const auto bytes = [&](int64_t value) { return buffer == 0 ? Cell() : Cell(value); };
      std::vector<Cell> row = {work.calls[source].call_id,
                               work.op(source).FullName(),
                               PhaseName(work, source),
                               work.calls[target].call_id,
                               work.op(target).FullName(),
                               PhaseName(work, target),
                               std::string(kind),
                               bytes(buffer),
                               bytes(first),
                               bytes(last)};
      if (format_ == Format::kCsv) {  // there may be millions
        fmt::print("{}", CsvLine(row));
      } else {
        table.Add(std::move(row));
      }
    };
    // Sources may lie before what is picked, targets not after it. Both lists are by target.
    const size_t end = picked.back() + 1;
    const auto order = analyzer::graph::FindOrder(work, 0, end);
    auto next = order.begin();
    const auto add_order_until = [&](size_t target) {
      for (; next != order.end() && next->target <= target; ++next) {
        add(next->source, next->target, analyzer::graph::OrderKindName(next->kind), 0, 0, 0);
      }
    };
    for (const analyzer::graph::Hazard& hazard : analyzer::graph::FindHazards(work, 0, end)) {
      if (hazard.target > 0) add_order_until(hazard.target - 1);
      add(hazard.source, hazard.target, analyzer::graph::HazardKindName(hazard.kind), hazard.buffer,
          hazard.first_byte, hazard.end_byte - 1);
    }
    add_order_until(end);
    if (trace.results() != nullptr) trace.results()->ReplaceDependencies(rows);
    if (format_ != Format::kCsv) fmt::print("{}", table.ToText(format_));
  }

  static std::string PhaseName(const analyzer::Work& work, uint32_t call) {
    return std::string(meaning::PhaseName(static_cast<int64_t>(work.calls[call].phase)));
  }

  void PrintLeaves() const {
    const storage::Reader reader(trace_, part());
    auto leaves = SelectLeaves(reader, Picked(reader));
    // A step that executes a captured graph has no leaf of its own.
    if (leaves.empty() && selection_.empty()) leaves = SelectLeaves(reader, Selection::Parse(""));
    // The quicker process decides which step comes first. So without a selection all
    // leaves must be of one process, and not those of that step alone.
    std::set<int64_t> threads;
    const auto add_thread = [&](const storage::Call& leaf) { threads.insert(leaf.thread_id); };
    if (selection_.empty()) {
      reader.VisitCalls(/*leaves_only=*/true, add_thread);
    } else {
      std::for_each(leaves.begin(), leaves.end(), add_thread);
    }
    const std::set<int64_t> left_out = storage::ThreadsLeftOut(reader);
    std::erase_if(threads, [&](int64_t thread) { return left_out.contains(thread); });
    storage::RequireOneProcess(reader, threads);
    if (leaves.empty()) RefuseSelection();
    Table table({"call_id", "opcode", "name", "target", "args", "kwargs", "result"});
    for (FxNode& node : BuildFxGraph(reader, leaves)) {
      table.Add({node.call_id == 0 ? Cell() : Cell(node.call_id), std::move(node.opcode),
                 std::move(node.name), std::move(node.target), std::move(node.args),
                 std::move(node.kwargs), std::move(node.result)});
    }
    table = WithLines(table, "call_id", analyzer::SourceLines(reader));
    fmt::print("{}", table.ToText(format_));
  }

  std::string trace_;
  std::string selection_;
  bool dependencies_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeGraphCommand() { return std::make_unique<GraphCommand>(); }

}  // namespace acltape::cli
