#include "storage/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <set>

#include "cli/files/commands.h"
#include "cli/frame/next_step.h"
#include "cli/frame/options.h"
#include "cli/tables/merged_traces.h"
#include "cli/tables/report.h"
#include "cli/terminal/table.h"
#include "storage/error.h"
#include "storage/process_ranks.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

class MergeCommand final : public Command {
 public:
  std::string Name() const override { return "merge"; }
  std::string Summary() const override {
    return "Make one trace of the traces of single ranks, on one clock";
  }
  std::string Examples() const override {
    return "  acltape record @per-rank @soft -o t.db -- torchrun train.py\n"
           "  acltape merge t.rank0.db t.rank1.db -o all.db\n"
           "  acltape ranks all.db"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("traces", traces_, "The traces, each of other ranks of one run")
        ->required()
        ->option_text("TRACE...");
    AddOutputOption(app, output_, "The new trace")->type_name("FILE")->required();
    AddFlag(app, "force", overwrite_);
    AddFlag(app, "no-contents", without_contents_,
            "Leave the contents of tensors out: enough for all but a replay");
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (traces_.size() < 2) {
      throw Error(ErrorKind::kUsage, fmt::format("merge takes two traces or more, each of other "
                                                 "ranks; {} is one",
                                                 traces_.front()));
    }
    const MergedTraces traces(traces_);
    traces.Write(output_, overwrite_, !without_contents_);
    const storage::Reader merged(output_);
    Report report;
    report.Add("trace", Facts(merged));
    report.Add("merged from", Sources(traces));
    fmt::print("{}", report.ToText(format_));
    SuggestNext("acltape ranks " + storage::ShellWord(output_));
    return kExitFine;
  }

 private:
  static std::set<int64_t> RanksOf(const storage::Reader& trace) {
    std::set<int64_t> ranks;
    for (const auto& [process, rank] : storage::RanksOfProcesses(trace.database(), trace.path())) {
      ranks.insert(rank);
    }
    return ranks;
  }

  Table Facts(const storage::Reader& merged) const {
    Table table({"quantity", "value"});
    table.Add({"file", output_});
    table.Add({"state", merged.State()});
    table.Add({"calls", merged.CallCount(false)});
    table.Add({"ranks", static_cast<int64_t>(RanksOf(merged).size())});
    table.Add({"bytes of the file",
               BytesCell(static_cast<int64_t>(std::filesystem::file_size(output_)), format_)});
    return table;
  }

  Table Sources(const MergedTraces& traces) const {
    Table table({"file", "ranks", "calls", "shift_ns", "clock"});
    for (const storage::MergeSource& source : traces.sources()) {
      table.Add({source.trace->path(), fmt::format("{}", fmt::join(RanksOf(*source.trace), ", ")),
                 source.trace->CallCount(false), source.shift_ns, ClockText(source)});
    }
    return table;
  }

  std::vector<std::string> traces_;
  std::string output_;
  bool overwrite_ = false;
  bool without_contents_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeMergeCommand() { return std::make_unique<MergeCommand>(); }

}  // namespace acltape::cli
