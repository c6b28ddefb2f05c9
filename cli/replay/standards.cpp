#include <fmt/format.h>

#include "analyzer/metrics/standard.h"
#include "cli/frame/options.h"
#include "cli/replay/commands.h"
#include "cli/tables/report.h"

namespace acltape::cli {
namespace {

using analyzer::metrics::Standard;

class StandardsCommand final : public Command {
 public:
  std::string Name() const override { return "standards"; }
  std::string Summary() const override {
    return "List the precision standards, or the rules of one with their sources";
  }
  std::string Examples() const override {
    return "  acltape standards\n"
           "  acltape standards ascend\n"
           "  acltape standards mine.json      checks a file of one's own\n"
           "  acltape standards @metrics      what rules can name"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("standard", standard_, "A name or a file (FILE:NAME where it holds several)");
    AddFlag(app, "metrics", metrics_, "List the metrics instead")->excludes("standard");
    AddFormatOption(app, format_);
  }

  int Run() override {
    Report report;
    if (metrics_) {
      Table table({"metric", "what"});
      for (const auto& [name, about] : analyzer::metrics::MetricNames()) table.Add({name, about});
      report.Add("metrics", std::move(table));
    } else if (standard_.empty()) {
      Table table({"standard", "rules", "what"});
      for (const auto& [name, about] : Standard::BuiltIn()) {
        const auto rules = static_cast<int64_t>(Standard::Load(name).rules().size());
        table.Add({name, rules, about});
      }
      report.Add("standards", std::move(table));
    } else {
      report.Add("rules", Rules(Standard::Load(standard_)));
    }
    fmt::print("{}", report.ToText(format_));
    return 0;
  }

 private:
  static Table Rules(const Standard& standard) {
    Table table({"op class", "dtype", "metric", "at most", "at least", "fails only together with",
                 "source"});
    for (const Standard::Rule& rule : standard.rules()) {
      table.Add({rule.op_class, rule.dtype, rule.metric,
                 rule.at_least ? Cell() : Cell(rule.threshold),
                 rule.at_least ? Cell(rule.threshold) : Cell(),
                 rule.group.empty() ? Cell() : Cell(rule.group), rule.source});
    }
    return table;
  }

  std::string standard_;
  bool metrics_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeStandardsCommand() { return std::make_unique<StandardsCommand>(); }

}  // namespace acltape::cli
