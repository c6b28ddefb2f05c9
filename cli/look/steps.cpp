#include "analyzer/steps/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyzer/graph/variation.h"
#include "analyzer/steps/step_times.h"
#include "base/median.h"
#include "cli/frame/options.h"
#include "cli/look/commands.h"
#include "cli/tables/report.h"
#include "cli/tables/step_source.h"
#include "cli/tables/where.h"
#include "cli/terminal/progress.h"
#include "storage/device_spans.h"

namespace acltape::cli {
namespace {

using analyzer::Work;
using analyzer::graph::ArgumentVariation;
using analyzer::graph::StepFamily;
using analyzer::graph::StepInput;
using analyzer::graph::Variation;

struct Compared {
  StepFamily family;
  Variation variation;
};

class StepsCommand final : public Command {
 public:
  std::string Name() const override { return "steps"; }
  std::string Summary() const override {
    return "Compare the steps: families, varying arguments, moving inputs, shape symbols";
  }
  std::string Examples() const override {
    return "  acltape steps t.db                     what keeps one graph from serving all steps\n"
           "  acltape steps t.db @stable @rows 0   with the inputs that stay where they are\n"
           "  acltape steps t.db @format json"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddFlag(app, "stable", stable_, "List the inputs that stay where they are too");
    AddOption(app, "rows", rows_,
              "Rows per table at most, 0: all; default 20 for @format table"_cli)
        ->check(AtLeast(0));
    AddFormatOption(app, format_);
  }

  int Run() override {
    const bool named = !storage::Reader(trace_, part()).Steps().empty();
    const OpenedTrace opened(trace_, /*discard_results=*/named, part());
    Work work = analyzer::LoadWork(opened.reader());
    analyzer::AssignSteps(work, opened.results());
    if (work.steps.empty()) {
      throw Error(ErrorKind::kTrace,
                  fmt::format("{} has no steps: {}; mark them in the program and record with "
                              "@steps-from NAME."_cli,
                              trace_, analyzer::WhyNoSteps(work)));
    }
    std::vector<Compared> families;
    Progress progress("comparing steps");
    for (StepFamily& family : analyzer::graph::FindFamilies(work)) {
      Variation variation = analyzer::graph::FindVariation(work, family);
      families.push_back({std::move(family), std::move(variation)});
      progress.Update(static_cast<int64_t>(families.back().family.steps.back()),
                      static_cast<int64_t>(work.steps.size()));
    }
    progress.Clear();

    Report report;
    Table steps({"fact", "value"});
    steps.Add({"steps", static_cast<int64_t>(work.steps.size())});
    AddStepSource(steps, work.steps.front().found_by);
    if (const auto busy = storage::FindDeviceBusy(opened.reader())) {
      steps.Add({"device busy", storage::DeviceBusyText(*busy)});
    }
    report.Add("steps", std::move(steps));
    report.Add("families", FamilyTable(work, families));
    const analyzer::SourceLines lines(opened.reader());
    report.Add("arguments", WithLines(ArgumentTable(work, families), "call_id", lines));
    report.Add("inputs", WithLines(InputTable(work, families), "call_id", lines));
    report.Add("symbols", SymbolTable(work, families));
    fmt::print("{}", report.ToText(format_));
    return kExitFine;
  }

 private:
  size_t RowLimit() const {
    const auto given =
        rows_ >= 0 ? static_cast<size_t>(rows_) : (format_ == Format::kTable ? kRowsForPeople : 0);
    return given == 0 ? SIZE_MAX : given;
  }

  // The first rows of the table, and how many there are of them in all.
  Table Shortened(const Table& table) const {
    if (table.rows().size() <= RowLimit()) return table;
    Table shown(table.columns());
    for (size_t i = 0; i < RowLimit(); ++i) shown.Add(table.rows()[i]);
    if (format_ != Format::kTable) return shown;
    std::vector<Cell> last(table.columns().size());
    last[0] = fmt::format("... {} in all", table.rows().size());
    shown.Add(std::move(last));
    return shown;
  }

  Cell Time(double ns) const { return NsCell(static_cast<int64_t>(ns), format_); }

  // The place of the column that says what the first step of an engine's family is.
  static constexpr int kAfterFirstStep = 3;

  Table FamilyTable(const Work& work, const std::vector<Compared>& families) const {
    const bool people = format_ == Format::kTable;  // the cells have units of their own
    std::vector<std::string> columns = {"family",
                                        "steps",
                                        "first_step",
                                        "calls",
                                        "host_arguments",
                                        "varying",
                                        "derived",
                                        "inputs",
                                        "moving",
                                        people ? "moving_size" : "moving_bytes",
                                        people ? "median" : "median_ns",
                                        people ? "least" : "least_ns",
                                        people ? "greatest" : "greatest_ns",
                                        "why_not_as_before"};
    const bool engine = !EngineWords(work.steps.front().found_by).empty();
    if (engine) columns.insert(columns.begin() + kAfterFirstStep, "it_is_a");
    Table table(std::move(columns));
    const std::vector<int64_t> step_times = analyzer::StepTimes(work);
    for (size_t f = 0; f < families.size(); ++f) {
      const auto& family = families[f].family;
      const auto& variation = families[f].variation;
      std::vector<double> times;
      for (const size_t step : family.steps) {
        times.push_back(static_cast<double>(step_times[step]));
      }
      std::sort(times.begin(), times.end());
      const auto of_kind = [&](analyzer::graph::VariationKind kind) {
        return std::count_if(variation.arguments.begin(), variation.arguments.end(),
                             [kind](const ArgumentVariation& row) { return row.kind == kind; });
      };
      int64_t moving = 0;
      int64_t bytes = 0;
      for (const StepInput& input : variation.inputs) {
        if (!input.moves) continue;
        ++moving;
        bytes += input.bytes;
      }
      const auto derived = of_kind(analyzer::graph::VariationKind::kDerived) +
                           of_kind(analyzer::graph::VariationKind::kCarried);
      std::vector<Cell> row = {static_cast<int64_t>(f),
                               static_cast<int64_t>(family.steps.size()),
                               work.steps[family.steps[0]].step,
                               static_cast<int64_t>(family.places),
                               static_cast<int64_t>(variation.host_arguments),
                               static_cast<int64_t>(variation.arguments.size()) - derived,
                               derived,
                               static_cast<int64_t>(variation.inputs.size()),
                               moving,
                               BytesCell(bytes, format_),
                               Time(base::MedianOfSorted(times)),
                               Time(times.front()),
                               Time(times.back()),
                               Parting(work, family)};
      if (engine) {
        row.insert(row.begin() + kAfterFirstStep,
                   TextCell(EngineWords(work.steps[family.steps[0]].found_by)));
      }
      table.Add(std::move(row));
    }
    return Shortened(table);
  }

  // Why the first step of a family is not of the family of the step before it.
  static Cell Parting(const Work& work, const StepFamily& family) {
    const auto name = [&](int64_t call) {
      return call < 0 ? std::string("nothing more") : work.Describe(static_cast<size_t>(call));
    };
    if (family.before < 0 && family.here < 0) return Cell();
    return fmt::format("{} in place of {}", name(family.here), name(family.before));
  }

  // A long list is shortened for people; other programs get all of it.
  std::pair<std::string, std::string> Values(const Work& work, const ArgumentVariation& row) const {
    return format_ == Format::kTable ? analyzer::graph::ShortValues(work, row)
                                     : std::pair(row.first_value, row.second_value);
  }

  Table ArgumentTable(const Work& work, const std::vector<Compared>& families) const {
    Table table({"family", "call_id", "op", "argument", "kind", "values", "first", "second",
                 "second_call", "read_call", "symbols"});
    for (size_t f = 0; f < families.size(); ++f) {
      const auto& [family, variation] = families[f];
      for (const ArgumentVariation& row : variation.arguments) {
        const auto [first, second] = Values(work, row);
        table.Add(
            {static_cast<int64_t>(f), work.calls[row.first_call].call_id,
             work.op(row.first_call).FullName(), row.name,
             std::string(analyzer::graph::VariationKindName(row.kind)),
             static_cast<int64_t>(row.values), first, second, work.calls[row.second_call].call_id,
             row.read_place < 0
                 ? Cell()
                 : Cell(work.calls[family.Call(0, static_cast<size_t>(row.read_place))].call_id),
             row.symbols.empty() ? Cell() : Cell(row.symbols)});
      }
    }
    return Shortened(table);
  }

  Table InputTable(const Work& work, const std::vector<Compared>& families) const {
    Table table({"family", "call_id", "op", "argument", "bytes", "place", "address", "written",
                 "number", "buffers", "moved_call"});
    for (size_t f = 0; f < families.size(); ++f) {
      const auto& [family, variation] = families[f];
      for (const StepInput& input : variation.inputs) {
        if (!input.moves && !stable_) continue;
        const uint32_t call = family.Call(0, input.place);
        const bool list =
            (*work.form(call).arguments)[input.argument].kind == storage::ValueKind::kTensorList;
        table.Add({static_cast<int64_t>(f), work.calls[call].call_id, work.op(call).FullName(),
                   list ? fmt::format("{}[{}]", input.name, input.element) : input.name,
                   input.bytes, std::string(input.moves ? "moves" : "stable"),
                   std::string(input.moves_by_address ? "moves" : "stable"),
                   static_cast<int64_t>(input.written), static_cast<int64_t>(input.number),
                   static_cast<int64_t>(input.buffers),
                   input.moves ? Cell(work.calls[input.moved_call].call_id) : Cell()});
      }
    }
    return Shortened(table);
  }

  Table SymbolTable(const Work& work, const std::vector<Compared>& families) const {
    Table table({"family", "symbol", "values", "least", "greatest", "dimensions", "call_id", "op",
                 "argument", "dimension", "sizes"});
    for (size_t f = 0; f < families.size(); ++f) {
      const auto& [family, variation] = families[f];
      for (size_t s = 0; s < variation.symbols.size(); ++s) {
        const analyzer::graph::ShapeSymbol& symbol = variation.symbols[s];
        const auto first =
            std::find_if(variation.dimensions.begin(), variation.dimensions.end(),
                         [s](const auto& row) { return row.symbol == static_cast<int>(s); });
        const uint32_t call = family.Call(0, first->place);
        const auto [least, greatest] =
            std::minmax_element(symbol.sizes.begin(), symbol.sizes.end());
        table.Add({static_cast<int64_t>(f), analyzer::graph::SymbolText(static_cast<int>(s), 1, 0),
                   static_cast<int64_t>(symbol.values), *least, *greatest,
                   static_cast<int64_t>(symbol.dimensions), work.calls[call].call_id,
                   work.op(call).FullName(), first->name, static_cast<int64_t>(first->dimension),
                   Sizes(symbol.sizes)});
      }
    }
    return Shortened(table);
  }

  // "5, 6, 7, 12 ..." by step; all of them for programs.
  std::string Sizes(const std::vector<int64_t>& sizes) const {
    constexpr size_t kSizesForPeople = 8;
    const size_t shown =
        format_ == Format::kTable ? std::min(sizes.size(), kSizesForPeople) : sizes.size();
    return fmt::format("{}{}", fmt::join(sizes.begin(), sizes.begin() + shown, ", "),
                       shown < sizes.size() ? " ..." : "");
  }

  std::string trace_;
  bool stable_ = false;
  int64_t rows_ = -1;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeStepsCommand() { return std::make_unique<StepsCommand>(); }

}  // namespace acltape::cli
