#include "replayer/reproducer/trim.h"

#include <fmt/format.h>

#include <charconv>

#include "analyzer/acl/acl_order.h"
#include "analyzer/calls/record_more.h"
#include "analyzer/program/leaves.h"
#include "cli/choices/selection.h"
#include "cli/files/commands.h"
#include "cli/frame/nothing_compared.h"
#include "cli/frame/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/table.h"

namespace acltape::cli {
namespace {

class TrimCommand final : public Command {
 public:
  std::string Name() const override { return "trim"; }
  std::string Summary() const override {
    return "Keep some calls of a trace, with what they need as stored inputs";
  }
  std::string Examples() const override {
    return "  acltape trim t.db @calls 812-830 -o small.db\n"
           "  acltape trim t.db @calls step:3/op:aten::addmm @steps 4,5 -o small.db\n"
           "  acltape trim t.db @calls 830 @with-producers 2 -o small.db"_cli;
  }

  bool ExecutesTrace() const override { return true; }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddOption(app, "calls", options_.selection, "The calls to keep (see `acltape query @help`)"_cli)
        ->type_name("CALLS")
        ->required();
    AddOption(app, "steps", options_.steps,
              "Keep the calls at the same places of these steps too; a captured replay needs "
              "two steps")
        ->delimiter(',')
        ->type_name("STEPS");
    AddCount(app, "with-producers", options_.producers, 0,
             "Keep the calls that wrote what kept calls read, and theirs, for so many "
             "generations, instead of storing their results as inputs");
    AddOutputOption(app, options_.output, "The new trace")->type_name("FILE")->required();
    AddFlag(app, "force", options_.overwrite);
    AddFlag(app, "accept-different", options_.accept_different,
            "Accept outputs that differ from the recording when replayed, where those of the "
            "whole trace do so too");
    AddDeviceOption(app, options_.device_lib, "for the replay that proves the result");
    AddFormatOption(app, format_);
  }

  int Run() override {
    try {
      return Trim();
    } catch (const analyzer::WithoutLeaves& error) {
      throw Error(ErrorKind::kUsage, fmt::format("{} cannot be trimmed: {}", trace_, error.why()));
    }
  }

 private:
  int Trim() {
    const storage::Reader reader(trace_, part());
    const analyzer::Work work = analyzer::LoadLeaves(reader, nullptr);
    for (const size_t call : SelectCalls(work, Selection::Parse(options_.selection))) {
      options_.calls.push_back(work.calls[call].call_id);
    }
    Progress progress("trim");
    options_.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    const replayer::reproducer::TrimReport report = replayer::reproducer::Trim(reader, options_);
    progress.Clear();
    if (!report.refusal.empty()) {
      fmt::print(stderr, "acltape: {}\n", report.refusal);
      return kExitDifferences;
    }
    Table table({"quantity", "value"});
    const auto add = [&](const char* quantity, Cell value) {
      table.Add({quantity, std::move(value)});
    };
    add("file", options_.output);
    add("calls kept", report.calls);
    add("calls of the whole trace", report.calls_before);
    add("share of the calls, percent",
        100.0 * static_cast<double>(report.calls) / static_cast<double>(report.calls_before));
    add("steps", report.steps);
    add("inputs stored for calls left out", report.inputs);
    add("  bytes, before compression", BytesCell(report.input_bytes, format_));
    add("bytes of the file", BytesCell(report.bytes, format_));
    add("bytes of the whole trace", BytesCell(report.bytes_before, format_));
    add("calls that compute", report.kernels);
    add("  with a result in the recording", report.with_result);
    if (report.overwritten > 0) add("  overwritten later in their graph", report.overwritten);
    add("  substituted by recorded outputs", report.substituted);
    add("outputs compared", report.compared);
    add("outputs different, as in the whole trace", report.differing);
    if (report.captured) add("outputs compared when captured", report.captured_compared);
    if (report.renumbered) add("ids", "1 to " + std::to_string(report.calls) + ", in order");
    add("replayed", report.captured ? "eager, captured" : "eager");
    if (!report.captured) add("not captured because", report.captured_note);
    fmt::print("{}", table.ToText(format_));
    return report.Unproven() ? Unproven(reader, report) : kExitFine;
  }

  // The file is there, but too little of it was compared with the recording.
  int Unproven(const storage::Reader& reader,
               const replayer::reproducer::TrimReport& report) const {
    const bool all = reader.Meta("payload") == "all" && !analyzer::LacksDeviceLevel(reader);
    const std::string remedy = all ? "" : "; " + analyzer::HowToRecordMore(reader);
    if (report.compared == 0 && all) {
      return NothingCompared(
          "the file was written, but the calls that it keeps have no result in the recording, as "
          "copies from the host and fills have none");
    }
    if (report.compared == 0) {
      return NothingCompared("the file was written, but " + reader.path() +
                             " keeps no result of its calls" + remedy);
    }
    fmt::print(
        stderr,
        "acltape: not proven: the file was written, but only {} of the {} calls that compute "
        "were executed and have a result in the recording{}\n",
        report.with_result + report.overwritten - report.substituted, report.kernels, remedy);
    return kExitCannotJudge;
  }

  std::string trace_;
  replayer::reproducer::TrimOptions options_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeTrimCommand() { return std::make_unique<TrimCommand>(); }

}  // namespace acltape::cli
