#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/fx_graph.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "cli/table.h"

namespace acltape::cli {
namespace {

class GraphCommand final : public Command {
 public:
  std::string Name() const override { return "graph"; }
  std::string Summary() const override {
    return "Print leaves as a torch.fx table: opcode, name, target, args, kwargs";
  }
  std::string Examples() const override {
    return "  acltape graph t.db                     the first step, or everything without steps\n"
           "  acltape graph t.db step:3/op:aten::mm  the matrix products of step 3\n"
           "  acltape graph t.db 100-200 --format csv";
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    app.add_option("selection", selection_, "Which calls: 100-200, step:3, op:NAME, stream:1");
    AddFormatOption(app, format_);
  }

  int Run() override {
    Selection selection = Selection::Parse(selection_);
    const storage::Reader reader(trace_);
    if (selection.empty()) {
      const auto steps = reader.Steps();
      if (!steps.empty()) {
        selection = Selection::Parse(fmt::format("step:{}", steps.front().step));
      }
    }
    const auto leaves = SelectLeaves(reader, selection);
    if (leaves.empty()) {
      throw Error(ErrorKind::kUsage, fmt::format("no leaf of {} is picked by '{}'.", trace_,
                                                 selection_.empty() ? "*" : selection_));
    }
    Table table({"call_id", "opcode", "name", "target", "args", "kwargs", "result"});
    for (FxNode& node : BuildFxGraph(reader, leaves)) {
      table.Add({node.call_id == 0 ? Cell() : Cell(node.call_id), std::move(node.opcode),
                 std::move(node.name), std::move(node.target), std::move(node.args),
                 std::move(node.kwargs), std::move(node.result)});
    }
    fmt::print("{}", table.ToText(format_));
    return kExitFine;
  }

 private:
  std::string trace_;
  std::string selection_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeGraphCommand() { return std::make_unique<GraphCommand>(); }

}  // namespace acltape::cli
