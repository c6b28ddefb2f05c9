// `acltape report`: a trace as one HTML file. The tables that replays print are in report.h.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/frame/options.h"
#include "cli/look/commands.h"
#include "cli/terminal/progress.h"
#include "page/page.h"
#include "storage/new_file.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

class ReportCommand final : public Command {
 public:
  std::string Name() const override { return "report"; }
  std::string Summary() const override {
    return "Write a page that shows the trace: timeline, graph, operators, memory, findings";
  }
  std::string Examples() const override {
    return "  acltape report t.db                        writes t.html, which any browser opens\n"
           "  acltape report t.db -o page.html @force\n"
           "  acltape report t.db @plan plan.json       with this plan's regions and streams\n"
           "  acltape report before.db @against after.db"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddOutputOption(app, output_,
                    "The page to write (default: the trace's name with .html, beside it)")
        ->type_name("FILE");
    AddFlag(app, "force", force_, "Replace the page when it exists");
    AddOption(app, "title", options_.title, "Its title (default: the trace's name)");
    AddOption(app, "plan", options_.plan_file,
              "Plan file to show (default: the newest plan of the trace, else one is made in "
              "memory)")
        ->type_name("FILE");
    AddOption(app, "journal", options_.journal,
              "Journal of `acltape bisect` to show (default: TRACE.bisect.jsonl if it is "
              "there)")
        ->type_name("FILE");
    AddOption(app, "against", against_, "Another trace to show beside this one");
    AddCount(app, "max-calls", options_.most_calls, 1,
             "Calls on the page at most, the earliest; it says so where it leaves some out");
  }

  int Run() override {
    const storage::Reader reader(trace_, part());
    std::unique_ptr<storage::Reader> other;
    if (!against_.empty()) other = std::make_unique<storage::Reader>(against_, part());
    options_.against = other.get();
    const std::filesystem::path path =
        output_.empty() ? std::filesystem::path(trace_).replace_extension(".html")
                        : std::filesystem::path(output_);
    storage::JudgeOutput(path.string(), Rules());  // before the work that it needs
    if (options_.title.empty()) {
      options_.title = std::filesystem::path(trace_).filename().string();
    }
    Progress progress("report");
    options_.progress = [&](const char*, int64_t done, int64_t total) {
      progress.Update(done, total);
    };
    const page::PageReport report = Write(reader, path);
    progress.Clear();
    fmt::print("{}: {}, {} call{}{}\n", path.string(),
               HumanBytes(static_cast<int64_t>(std::filesystem::file_size(path))),
               report.calls_shown, report.calls_shown == 1 ? "" : "s",
               report.calls_shown < report.calls
                   ? fmt::format(" of {}; @max-calls shows more"_cli, report.calls)
                   : "");
    fmt::print("open it in a browser: xdg-open {}\n", storage::ShellWord(path.string()));
    return kExitFine;
  }

 private:
  storage::OutputRules Rules() const {
    storage::OutputRules rules{.overwrite = force_, .trace = trace_};
    for (const std::string& other : {against_, options_.plan_file, options_.journal}) {
      if (!other.empty()) rules.reads.push_back(other);
    }
    return rules;
  }

  page::PageReport Write(const storage::Reader& reader, const std::filesystem::path& path) const {
    storage::NewFile page(path.string(), Rules());
    std::ofstream file(page.partial(), std::ios::binary);
    const page::PageReport report = page::WritePage(reader, options_, file);
    file.close();
    if (!file) {
      throw Error(ErrorKind::kDevice,
                  fmt::format("'{}' cannot be written ({}); choose a place with -o", path.string(),
                              std::strerror(errno)));
    }
    page.Accept();
    return report;
  }

  std::string trace_;
  std::string output_;
  std::string against_;
  bool force_ = false;
  page::PageOptions options_;
};

}  // namespace

std::unique_ptr<Command> MakeReportCommand() { return std::make_unique<ReportCommand>(); }

}  // namespace acltape::cli
