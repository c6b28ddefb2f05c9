#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/calls/host_work.h"
#include "analyzer/calls/level.h"
#include "analyzer/calls/unknown_memory.h"
#include "analyzer/steps/steps.h"
#include "analyzer/waits/device_idle.h"
#include "analyzer/waits/early_lines.h"
#include "analyzer/waits/leaf_waits.h"
#include "analyzer/waits/step_modes.h"
#include "analyzer/waits/wait_lines.h"
#include "cli/frame/options.h"
#include "cli/look/commands.h"
#include "cli/tables/step_source.h"
#include "cli/terminal/table.h"
#include "storage/device_spans.h"

namespace acltape::cli {
namespace {

using analyzer::Work;
using analyzer::waits::EarlyLine;
using analyzer::waits::HostWaits;
using analyzer::waits::IdleCause;
using analyzer::waits::IdleTime;
using analyzer::waits::StepModeRow;
using analyzer::waits::WaitLine;

class WaitsCommand final : public Command {
 public:
  std::string Name() const override { return "waits"; }
  std::string Summary() const override {
    return "Where the host waits for the device, for which work, and what can be done about it";
  }
  std::string Examples() const override {
    return "  acltape waits t.db                       by line, with what can be done\n"
           "  acltape waits t.db @table advice         that alone\n"
           "  acltape waits t.db @format json"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddOption(app, "rows", rows_,
              "Rows per table at most, 0: all; default 20 for @format table"_cli)
        ->check(AtLeast(0));
    AddFormatOption(app, format_);
  }

  int Run() override {
    const storage::Reader reader(trace_, part());
    if (reader.part().level) analyzer::ChooseLevel(reader);  // refuses one that the trace lacks
    const bool device = analyzer::HoldsLevel(reader, analyzer::Level::kAcl) &&
                        reader.part().level != analyzer::Level::kAten;
    Work work = analyzer::LoadWork(reader, device ? analyzer::Level::kAcl : analyzer::Level::kAten);
    analyzer::AssignSteps(work, nullptr);
    const HostWaits waits = device ? analyzer::waits::FindHostWaits(work) : LeafWaits(reader, work);
    const analyzer::lint::Places places(work);
    analyzer::lint::Words words(work, places);
    const auto lines = analyzer::waits::FindWaitLines(work, waits, places, words);
    std::vector<EarlyLine> early;
    if (device) {
      early = analyzer::waits::FindEarlyLines(work, analyzer::waits::FindEarlyWaits(work), places,
                                              words);
    }

    Report report;
    report.Add("facts", Facts(reader, work, waits, lines, device));
    report.Add("advice", Advice(lines, early));
    report.Add("waits", Waits(lines));
    report.Add("streams", Streams(early));
    report.Add("device idle", Idle(work, waits, places));
    report.Add("steps", Steps(work, device));
    fmt::print("{}", report.ToText(format_));
    return kExitFine;
  }

 private:
  static HostWaits LeafWaits(const storage::Reader& reader, const Work& work) {
    if (!analyzer::HostWork(reader).beside_device()) return {};
    return analyzer::waits::FindLeafWaits(work);
  }

  size_t Rows(size_t all) const {
    const size_t otherwise = format_ == Format::kTable ? kRowsForPeople : 0;
    const size_t most = rows_ ? static_cast<size_t>(*rows_) : otherwise;
    return most == 0 ? all : std::min(all, most);
  }

  Table Facts(const storage::Reader& reader, const Work& work, const HostWaits& waits,
              const std::vector<WaitLine>& lines, bool device) const {
    Table table({"fact", "value"});
    if (!device) {
      table.Add({"coverage", CoverageWithoutDevice(reader)});
    }
    int64_t total = 0;
    int64_t in_steps = 0;
    int64_t without_line = 0;
    for (const WaitLine& line : lines) {
      total += line.total_ns;
      in_steps += line.in_steps_ns;
      if (line.where.empty()) without_line += line.waits;
    }
    table.Add({"waits", static_cast<int64_t>(waits.waits.size())});
    table.Add({"waits without a line", without_line});
    table.Add({"time of all waits", NsCell(total, format_)});
    if (waits.of_launching_threads > 0) {
      table.Add({"waits of launching threads, not listed",
                 static_cast<int64_t>(waits.of_launching_threads)});
    }
    if (waits.queries > 0) {
      table.Add({"queries of the allocator, not listed", static_cast<int64_t>(waits.queries)});
    }
    table.Add({"steps", static_cast<int64_t>(work.steps.size())});
    if (!work.steps.empty()) {
      const int64_t host = HostTime(work);
      table.Add({"host time of the steps", NsCell(host, format_)});
      table.Add({"waits in the steps", NsCell(in_steps, format_)});
      table.Add({"percent of the steps",
                 Percent(static_cast<double>(in_steps), static_cast<double>(host))});
      AddStepSource(table, work.steps.front().found_by);
    }
    if (device && !storage::HasDeviceSpans(reader)) {
      table.Add({"times of the device", "none: record @device-times"_cli});
    }
    return table;
  }

  static std::string CoverageWithoutDevice(const storage::Reader& reader) {
    if (analyzer::HostWork(reader).beside_device()) {
      return "operators of PyTorch alone were recorded: what they wait for, and synchronises "
             "between them, are not known (record @level aten,acl)"_cli;
    }
    const analyzer::MemoryCoverage memory = analyzer::CoverageOfMemory(reader);
    if (!memory.unknown.empty()) return memory.Sentence() + ": its waits are not known";
    return "the program ran on the host alone: nothing is waited for on a device";
  }

  // From the begin of each step to its end.
  static int64_t HostTime(const Work& work) {
    int64_t total = 0;
    for (const analyzer::StepRange& step : work.steps) {
      int64_t begin = work.calls[step.first].begin_ns;
      int64_t end = begin;
      for (int64_t call = step.first; call < step.end; ++call) {
        begin = std::min(begin, work.calls[call].begin_ns);
        end = std::max(end, work.calls[call].begin_ns + work.calls[call].duration_ns);
      }
      total += end - begin;
    }
    return total;
  }

  Table Advice(const std::vector<WaitLine>& lines, const std::vector<EarlyLine>& early) const {
    Table table({"where", "advice", TimeColumn()});
    const auto where = [](const std::string& line) {
      return TextCell(line.empty() ? "no line" : line);
    };
    for (const WaitLine& line : lines) {
      if (line.advice.empty() || table.rows().size() == Rows(lines.size())) continue;
      table.Add({where(line.where), line.advice, NsCell(line.total_ns, format_)});
    }
    for (const EarlyLine& line : early) {
      if (table.rows().size() == Rows(lines.size() + early.size())) break;
      table.Add({where(line.where), line.advice,
                 line.device_ns == 0 ? Cell() : NsCell(line.device_ns, format_)});
    }
    return table;
  }

  const char* TimeColumn() const { return format_ == Format::kTable ? "time" : "time_ns"; }

  Table Waits(const std::vector<WaitLine>& lines) const {
    const bool people = format_ == Format::kTable;
    Table table({"where", "waits_in", "kind", "waits", "in_steps", people ? "total" : "total_ns",
                 people ? "longest" : "longest_ns", "waited_for", "not_needed", "needed",
                 "not_known", "found_no_work", "why"});
    for (size_t i = 0; i < Rows(lines.size()); ++i) {
      const WaitLine& line = lines[i];
      const auto count = [](int64_t number) { return number == 0 ? Cell() : Cell(number); };
      table.Add({TextCell(line.where), line.waits_in,
                 std::string(analyzer::waits::WaitKindName(line.kind)), line.waits, line.in_steps,
                 NsCell(line.total_ns, format_), NsCell(line.longest_ns, format_),
                 TextCell(line.waited_for), count(line.not_needed), count(line.needed),
                 count(line.not_known), count(line.nothing), TextCell(line.why)});
    }
    return table;
  }

  Table Streams(const std::vector<EarlyLine>& early) const {
    Table table({"where", "waits", "stream", "waits_for_stream", "waited_for", "needed_by",
                 "between", format_ == Format::kTable ? "device" : "device_ns"});
    for (size_t i = 0; i < Rows(early.size()); ++i) {
      const EarlyLine& line = early[i];
      table.Add({TextCell(line.where), line.waits, line.stream, line.awaited_stream, line.awaited,
                 TextCell(line.needed_by), line.between,
                 line.device_ns == 0 ? Cell() : NsCell(line.device_ns, format_)});
    }
    return table;
  }

  // By cause, and by the line of the wait or of the call that ended it.
  Table Idle(const Work& work, const HostWaits& waits, const analyzer::lint::Places& places) const {
    struct Sum {
      int64_t times = 0;
      int64_t ns = 0;
      int64_t longest_ns = 0;
    };
    std::map<std::pair<IdleCause, std::string>, Sum> sums;
    int64_t all = 0;
    for (const IdleTime& idle : analyzer::waits::FindIdleTimes(work, waits)) {
      int64_t call = idle.wait >= 0 ? waits.waits[idle.wait].calls.front() : idle.ended_by;
      if (idle.cause == IdleCause::kDevice) call = -1;  // nothing on the host is at fault
      Sum& sum = sums[{idle.cause, call < 0 ? "" : places.Text(static_cast<size_t>(call))}];
      ++sum.times;
      sum.ns += idle.ns;
      sum.longest_ns = std::max(sum.longest_ns, idle.ns);
      all += idle.ns;
    }
    std::vector<std::pair<std::pair<IdleCause, std::string>, Sum>> rows(sums.begin(), sums.end());
    std::ranges::stable_sort(rows, std::ranges::greater(),
                             [](const auto& row) { return row.second.ns; });
    const bool people = format_ == Format::kTable;
    Table table({"cause", "where", "times", people ? "idle" : "idle_ns",
                 people ? "longest" : "longest_ns", "percent"});
    for (size_t i = 0; i < Rows(rows.size()); ++i) {
      const auto& [key, sum] = rows[i];
      table.Add({std::string(analyzer::waits::IdleCauseName(key.first)), TextCell(key.second),
                 sum.times, NsCell(sum.ns, format_), NsCell(sum.longest_ns, format_),
                 Percent(static_cast<double>(sum.ns), static_cast<double>(all))});
    }
    return table;
  }

  static Table Steps(const Work& work, bool device) {
    const bool engine = !work.steps.empty() && !EngineWords(work.steps.front().found_by).empty();
    std::vector<std::string> columns = {
        "steps_ran",           "steps",           "percent", "first_step",
        "operators_in_graphs", "eager_operators", "reason"};
    if (engine) columns.emplace_back("first_step_is_a");
    Table table(std::move(columns));
    if (!device) return table;
    for (const StepModeRow& row : analyzer::waits::FindStepModes(work)) {
      std::vector<Cell> cells = {
          std::string(analyzer::waits::StepModeName(row.mode)),
          row.steps,
          Percent(static_cast<double>(row.steps), static_cast<double>(work.steps.size())),
          row.first_step,
          row.in_graphs,
          row.eager,
          TextCell(row.reason)};
      if (engine) cells.push_back(TextCell(EngineWords(work, row.first_step)));
      table.Add(std::move(cells));
    }
    return table;
  }

  std::string trace_;
  std::optional<int64_t> rows_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeWaitsCommand() { return std::make_unique<WaitsCommand>(); }

}  // namespace acltape::cli
