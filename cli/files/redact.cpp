#include "replayer/redact.h"

#include <fmt/format.h>

#include "cli/files/commands.h"
#include "cli/frame/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/table.h"

namespace acltape::cli {
namespace {

class RedactCommand final : public Command {
 public:
  std::string Name() const override { return "redact"; }
  std::string Summary() const override {
    return "Copy a trace without values, names of the machine and paths, to hand it on";
  }
  std::string Examples() const override {
    return "  acltape redact t.db -o redacted.db\n"
           "  acltape redact t.db @keep scopes,meta -o redacted.db\n"
           "  acltape replay redacted.db @mode captured @data synthesised"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddOutputOption(app, options_.output, "The new trace")->type_name("FILE")->required();
    AddFlag(app, "force", options_.overwrite);
    AddOption(app, "keep", keep_,
              "Keep these all the same: meta (command line, environment, host, names of "
              "processes), scopes (names of modules and ranges), stacks (source locations)")
        ->delimiter(',');
    AddFormatOption(app, format_);
  }

  int Run() override {
    const storage::Reader reader(trace_);
    options_.keep = {keep_.begin(), keep_.end()};
    Progress progress("redact");
    options_.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    const replayer::RedactReport report = replayer::Redact(reader, options_);
    progress.Clear();
    Table table({"quantity", "value"});
    const auto add = [&](const char* quantity, Cell value) {
      table.Add({quantity, std::move(value)});
    };
    add("file", options_.output);
    add("contents dropped", report.contents);
    add("  bytes, before compression", BytesCell(report.content_bytes, format_));
    add("values of host reads dropped", report.host_values);
    add("inputs and results with a row", report.snapshots);
    add("  of those with statistics", report.statistics);
    add("bytes of the file", BytesCell(report.bytes, format_));
    add("bytes of the whole trace", BytesCell(report.bytes_before, format_));
    fmt::print("{}", table.ToText(format_));
    return kExitFine;
  }

 private:
  std::string trace_;
  std::vector<std::string> keep_;
  replayer::RedactOptions options_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeRedactCommand() { return std::make_unique<RedactCommand>(); }

}  // namespace acltape::cli
