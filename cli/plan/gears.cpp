#include "analyzer/gears/gears.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "analyzer/gears/trace_sizes.h"
#include "analyzer/steps/steps.h"
#include "analyzer/streams/budget.h"
#include "cli/frame/options.h"
#include "cli/plan/commands.h"
#include "cli/tables/step_source.h"
#include "cli/terminal/table.h"

namespace acltape::cli {
namespace {

using analyzer::gears::GearCosts;
using analyzer::gears::GearUse;
using analyzer::gears::SizeHistogram;
using analyzer::gears::TraceSizes;

class GearsCommand final : public Command {
 public:
  std::string Name() const override { return "gears"; }
  std::string Summary() const override {
    return "Choose the sizes to capture: least padding and eager time within what a device holds";
  }
  std::string Examples() const override {
    return "  acltape gears t.db                                 sizes and costs from the steps\n"
           "  acltape gears t.db @dimension s0 @captures 8\n"
           "  acltape gears t.db @graphs-per-size 40 @soc Ascend910B1\n"
           "  acltape gears @histogram sizes.csv @padding-ns 900 @eager-ns 250000"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace; not needed with @histogram and both costs"_cli);
    AddOption(app, "dimension", dimension_,
              "Which sizes: a shape symbol (s0) or CALL:ARGUMENT:DIMENSION; default: the "
              "dimension with most sizes");
    AddOption(app, "histogram", histogram_, "Take the sizes from this file of lines size,count");
    AddOption(app, "captures", captures_, "Sizes at most; default: as many as the budget takes")
        ->type_name("K")
        ->check(AtLeast(1));
    AddCount(app, "graphs-per-size", graphs_per_size_, 1,
             "Graphs that one size takes, such as one for each layer");
    AddOption(app, "budget-streams", budget_streams_,
              "Streams that graphs may take; default: the usable ones of the SoC")
        ->type_name("N")
        ->check(AtLeast(1));
    AddOption(app, "soc", soc_, "Whose limits hold")->type_name("NAME")->capture_default_str();
    AddOption(app, "padding-ns", padding_ns_,
              "Time per unit of padding; default: slope of the steps' times over their sizes")
        ->check(CLI::NonNegativeNumber);
    AddOption(app, "eager-ns", eager_ns_,
              "Time that an eager step loses against a captured one; default: what the steps' "
              "times have at size 0")
        ->check(CLI::NonNegativeNumber);
    AddFormatOption(app, format_);
  }

  int Run() override {
    const bool needs_trace = histogram_.empty() || !padding_ns_ || !eager_ns_;
    if (trace_.empty() && needs_trace) {
      throw Error(ErrorKind::kUsage,
                  "gears needs a trace, or @histogram with @padding-ns and @eager-ns."_cli);
    }
    std::optional<TraceSizes> sizes;
    std::string found_by;
    if (!trace_.empty() && needs_trace) {
      const storage::Reader reader(trace_, part());
      analyzer::Work work = analyzer::LoadWork(reader);
      analyzer::AssignSteps(work, nullptr);
      sizes = analyzer::gears::FindTraceSizes(work, dimension_);
      found_by = work.steps.front().found_by;
    }
    const SizeHistogram histogram =
        histogram_.empty() ? sizes->Histogram() : analyzer::gears::ReadHistogram(histogram_);
    const GearCosts costs = Costs(sizes);
    const Budget budget = FindBudget(sizes);
    const std::vector<int64_t> chosen =
        analyzer::gears::ChooseGears(histogram, costs, budget.sizes);

    Report report;
    Table facts = Facts(sizes, histogram, costs, budget);
    if (sizes) AddStepSource(facts, found_by);
    report.Add("facts", std::move(facts));
    report.Add("choices", Choices(histogram, costs, budget, chosen));
    report.Add("gears", GearTable(histogram, costs, chosen));
    fmt::print("{}", report.ToText(format_));
    return kExitFine;
  }

 private:
  struct Budget {
    int64_t streams = 0;           // streams that graphs may take
    int64_t streams_per_size = 1;  // streams that the graphs of a size take
    int64_t sizes = 0;             // sizes that may be captured
  };

  GearCosts Costs(const std::optional<TraceSizes>& sizes) const {
    GearCosts costs{padding_ns_.value_or(0), eager_ns_.value_or(0)};
    if (padding_ns_ && eager_ns_) return costs;
    const GearCosts found = analyzer::gears::CostsOf(*sizes);
    if (!padding_ns_) costs.padding_ns = found.padding_ns;
    if (!eager_ns_) costs.eager_ns = found.eager_ns;
    return costs;
  }

  Budget FindBudget(const std::optional<TraceSizes>& sizes) const {
    const analyzer::streams::SocLimits& soc = analyzer::streams::NeedSoc(soc_);
    // A graph continues on one more stream for each queue that its tasks fill.
    analyzer::streams::StreamLoad graph;
    const auto places = static_cast<int64_t>(sizes ? sizes->places : 0);
    graph.tasks = (places + graphs_per_size_ - 1) / graphs_per_size_;
    Budget budget;
    budget.streams = budget_streams_.value_or(soc.usable_streams());
    budget.streams_per_size = graphs_per_size_ * graph.numbers();
    budget.sizes =
        std::min({captures_.value_or(std::numeric_limits<int64_t>::max()),
                  budget.streams / budget.streams_per_size, soc.models / graphs_per_size_});
    return budget;
  }

  Table Facts(const std::optional<TraceSizes>& sizes, const SizeHistogram& histogram,
              const GearCosts& costs, const Budget& budget) const {
    Table table({"fact", "value"});
    if (sizes) {
      table.Add({"dimension", sizes->dimension});
      table.Add({"steps of other operators, left out", static_cast<int64_t>(sizes->other_steps)});
    }
    table.Add({"sizes", static_cast<int64_t>(histogram.size())});
    table.Add({"least size", histogram.front().size});
    table.Add({"greatest size", histogram.back().size});
    table.Add({"padding ns per unit", static_cast<int64_t>(std::llround(costs.padding_ns))});
    table.Add({"eager ns per step", static_cast<int64_t>(std::llround(costs.eager_ns))});
    table.Add({"streams for graphs", budget.streams});
    table.Add({"streams per size", budget.streams_per_size});
    table.Add({"sizes that fit", budget.sizes});
    return table;
  }

  Table Choices(const SizeHistogram& histogram, const GearCosts& costs, const Budget& budget,
                const std::vector<int64_t>& chosen) const {
    const int64_t greatest = histogram.back().size;
    const auto serving = analyzer::gears::ServingDefault(greatest);
    Table table({"choice", "sizes", "graphs", "streams", "fits", "padded_percent", "eager_percent",
                 "padding_percent", "cost_ns_per_step"});
    const auto add = [&](const std::string& name, const std::vector<int64_t>& gears) {
      const GearUse use = analyzer::gears::EvaluateGears(histogram, gears, costs);
      const auto count = static_cast<int64_t>(gears.size());
      const auto steps = static_cast<double>(use.steps);
      table.Add({name, count, count * graphs_per_size_, count * budget.streams_per_size,
                 count <= budget.sizes ? "yes" : "no",
                 Percent(static_cast<double>(use.padded_steps), steps, /*decimals=*/2),
                 Percent(static_cast<double>(use.eager_steps), steps, /*decimals=*/2),
                 Percent(use.padding, use.size + use.padding, /*decimals=*/2),
                 static_cast<int64_t>(std::llround(use.cost_ns / steps))});
    };
    add("chosen", chosen);
    add("every size", analyzer::gears::EverySize(histogram));
    add("powers of two", analyzer::gears::PowersOfTwo(greatest));
    add("serving default", serving);
    if (static_cast<int64_t>(serving.size()) > budget.sizes) {
      add("serving default, thinned", analyzer::gears::Thinned(serving, budget.sizes));
    }
    add("eager", {});
    return table;
  }

  // The sizes that each gear serves. Sizes in rows without a gear run eagerly.
  static Table GearTable(const SizeHistogram& histogram, const GearCosts& costs,
                         const std::vector<int64_t>& gears) {
    Table table({"gear", "from_size", "to_size", "steps", "padding_percent"});
    struct Row {
      std::optional<int64_t> gear;
      SizeHistogram sizes;
    };
    std::vector<Row> rows;
    for (const analyzer::gears::SizeCount& size : histogram) {
      const GearUse use = analyzer::gears::EvaluateGears({size}, gears, costs);
      std::optional<int64_t> gear;
      if (use.eager_steps == 0) gear = *std::lower_bound(gears.begin(), gears.end(), size.size);
      if (rows.empty() || rows.back().gear != gear) rows.push_back({gear, {}});
      rows.back().sizes.push_back(size);
    }
    for (const Row& row : rows) {
      const GearUse use = analyzer::gears::EvaluateGears(row.sizes, gears, costs);
      table.Add({row.gear ? Cell(*row.gear) : Cell("eager"), row.sizes.front().size,
                 row.sizes.back().size, use.steps,
                 Percent(use.padding, use.size + use.padding, /*decimals=*/2)});
    }
    return table;
  }

  std::string trace_;
  std::string dimension_;
  std::string histogram_;
  std::optional<int64_t> captures_;
  int64_t graphs_per_size_ = 1;
  std::optional<int64_t> budget_streams_;
  std::string soc_ = "Ascend910B1";
  std::optional<double> padding_ns_;
  std::optional<double> eager_ns_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeGearsCommand() { return std::make_unique<GearsCommand>(); }

}  // namespace acltape::cli
