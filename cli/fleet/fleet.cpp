#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/environment/python_module.h"
#include "cli/fleet/add_traces.h"
#include "cli/fleet/commands.h"
#include "cli/fleet/page_of_fleet.h"
#include "cli/frame/fold_spools.h"
#include "cli/frame/next_step.h"
#include "cli/frame/options.h"
#include "cli/terminal/table.h"
#include "storage/error.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

Cell CellOf(const nlohmann::json& value) {
  if (value.is_null()) return {};
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

// The rows that a module of Python answered, and what they are not about.
struct Answer {
  Table left_out{{"part", "reason"}};
  Table lacking{{"lacking", "parts"}};
  std::optional<Table> rows;

  void Take(const nlohmann::json& said) {
    if (said.contains("left_out")) AddRow(left_out, said["left_out"]);
    if (said.contains("lacking")) AddRow(lacking, said["lacking"]);
    if (said.contains("columns")) {
      rows.emplace(said["columns"].get<std::vector<std::string>>());
      rows->KeepNames();
    }
    if (said.contains("row") && rows) AddRow(*rows, said["row"]);
  }

  static void AddRow(Table& table, const nlohmann::json& cells) {
    std::vector<Cell> row;
    for (const nlohmann::json& cell : cells) row.push_back(CellOf(cell));
    if (row.size() == table.columns().size()) table.Add(std::move(row));
  }
};

class FleetCommand final : public Command {
 public:
  std::string Name() const override { return "fleet"; }
  std::string Summary() const override {
    return "Make tables in files of the traces of many ranks and runs, and ask them by SQL";
  }
  std::string Examples() const override {
    return "  acltape fleet add DIR night.rank*.db\n"
           "  acltape fleet report DIR                 the prepared questions, answered in words\n"
           "  acltape fleet report DIR -o fleet.html   and a page: each step of each rank by "
           "colour\n"
           "  acltape fleet questions                  their names\n"
           "  acltape fleet ask DIR slow_ranks\n"
           "  acltape fleet ask DIR 'SELECT run, rank, sum(wall_ns) FROM step_summary GROUP BY "
           "run, "
           "rank'\n"
           "  acltape fleet ask DIR step_summary @limit 10 @format csv\n"
           "  acltape fleet ask DIR slow_ranks @engine spark @master spark://host:7077\n"
           "DuckDB answers, or Spark by @engine spark. docs/fleets.md describes the folder, "
           "docs/schema.md the views."_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("action", action_,
                   "add: make tables of traces, beside those that are there\n"
                   "ask: answer one SELECT, or show a view by its name\n"
                   "report: answer the prepared questions in words\n"
                   "questions: list these")
        ->required()
        ->check(CLI::IsMember({"add", "ask", "report", "questions"}));
    app.add_option("folder", folder_, "The folder of fleet tables");
    app.add_option("words", words_,
                   "add: the traces\n"
                   "ask: one SELECT, or the name of a view, a table or a prepared question")
        ->option_text("TRACE...|QUESTION");
    AddOption(app, "name", run_,
              "add: the name of the run (default: that of each trace's file, without .rank3)");
    AddOption(app, "rank", rank_, "add: the rank of the one trace (default: as it says itself)")
        ->check(AtLeast(0));
    AddOption(app, "label", label_,
              "add: a word by which questions group ranks and runs, such as a role or a branch");
    AddOutputOption(app, output_, "report: a page to write, which any browser opens")
        ->type_name("FILE");
    AddFlag(app, "force", overwrite_,
            "add: replace the ranks of runs that are there\n"
            "report: replace the page");
    AddCount(app, "limit", limit_, 0, "ask: rows at most, 0: all");
    AddOption(app, "engine", engine_,
              "Who answers\n"
              "duckdb: this machine\n"
              "spark: Apache Spark, on this machine or the cluster of @master"_cli)
        ->check(CLI::IsMember({"duckdb", "spark"}));
    AddOption(app, "master", master_,
              "The cluster that Spark asks, such as spark://HOST:7077 (default: this machine)");
    AddOption(
        app, "memory", memory_,
        "Bytes that the engine holds in memory at most, the rest is put on disk (2G; default: "
        "four fifths of the machine's)")
        ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
        ->check(AtLeast(0))
        ->option_text("SIZE");
    AddCount(app, "threads", threads_, 0, "Threads of the engine, 0: one for each core");
    AddFormatOption(app, format_);
  }

  int Run() override {
    RefuseWhatOthersTake();
    if (action_ == "add") return Add();
    if (!master_.empty() && engine_ != "spark") {
      throw Error(ErrorKind::kUsage, "@master is a cluster of Spark; say @engine spark too"_cli);
    }
    const std::vector<std::string> words = Words();
    std::optional<PageOfFleet> page;
    if (!output_.empty()) page.emplace(output_, overwrite_);
    Answer answer;
    RunPythonModule(action_ == "ask" ? "acltape.fleet.ask" : "acltape.fleet.report", words,
                    "fleets are asked by Python", [&](const nlohmann::json& said) {
                      answer.Take(said);
                      if (page) page->Take(said);
                    });
    if (page) page->Accept();
    Print(answer);
    if (page) SayPage();
    return kExitFine;
  }

 private:
  int Add() {
    if (folder_.empty() || words_.empty()) {
      throw Error(ErrorKind::kUsage,
                  "name a folder and the traces that become its tables: acltape fleet add DIR "
                  "TRACE...");
    }
    for (const std::string& trace : words_) FoldSpoolOf(trace);
    Table parts = TableOfParts();
    try {
      AddTraces({.folder = folder_,
                 .traces = words_,
                 .run = run_,
                 .rank = rank_,
                 .label = label_,
                 .overwrite = overwrite_},
                parts);
    } catch (const Error&) {
      if (!parts.rows().empty()) fmt::print("{}", parts.ToText(format_));
      throw;
    }
    fmt::print("{}", parts.ToText(format_));
    SuggestNext("acltape fleet report " + storage::ShellWord(folder_));
    return kExitFine;
  }

  void RefuseWhatOthersTake() const {
    const bool adds = action_ == "add";
    const char* of_add = !run_.empty()     ? "@name"_cli
                         : rank_ >= 0      ? "@rank"_cli
                         : !label_.empty() ? "@label"_cli
                                           : nullptr;
    if (!adds && of_add != nullptr) {
      throw Error(ErrorKind::kUsage, fmt::format("{} is of fleet add alone", of_add));
    }
    if (!output_.empty() && action_ != "report") {
      throw Error(ErrorKind::kUsage, "-o is of fleet report alone, which writes a page");
    }
    if (overwrite_ && !adds && output_.empty()) {
      throw Error(ErrorKind::kUsage, "@force is of fleet add, and of fleet report with -o"_cli);
    }
  }

  // The command line of the module that does it.
  std::vector<std::string> Words() const {
    if (action_ == "questions") {
      if (!folder_.empty()) {
        throw Error(ErrorKind::kUsage, "fleet questions lists them and takes no folder");
      }
      return {"@list"_cli};
    }
    if (folder_.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("name the folder of fleet tables: acltape fleet {} DIR", action_));
    }
    std::vector<std::string> words{folder_};
    const auto add = [&words](const char* option, int64_t value) {
      if (value > 0) words.insert(words.end(), {option, std::to_string(value)});
    };
    add("@memory"_cli, memory_);
    add("@threads"_cli, threads_);
    if (engine_ != "duckdb") words.insert(words.end(), {"@engine"_cli, engine_});
    if (!master_.empty()) words.insert(words.end(), {"@master"_cli, master_});
    if (action_ == "ask") {
      if (words_.size() != 1) {
        throw Error(ErrorKind::kUsage,
                    "fleet ask needs a question: one SELECT, or the name of a view or table");
      }
      add("@limit"_cli, limit_);
      // After this word a question may begin with "--", as comments of SQL do.
      words.insert(words.end(), {"--", words_.front()});
    } else if (!words_.empty()) {
      throw Error(ErrorKind::kUsage,
                  "fleet report answers the prepared questions and takes no other");
    }
    if (!output_.empty()) words.insert(words.end(), {"@output"_cli, output_});
    return words;
  }

  void Print(Answer& answer) const {
    Table rows = answer.rows ? std::move(*answer.rows) : Table({});
    if (format_ == Format::kCsv) {
      // The rows alone, so that another program can read them.
      SayOnStderr("left out", answer.left_out);
      SayOnStderr("lacking", answer.lacking);
      fmt::print("{}", rows.ToText(format_));
      return;
    }
    Report report;
    report.Add("left out", std::move(answer.left_out));
    report.Add("lacking", std::move(answer.lacking));
    report.Add("answer", std::move(rows));
    fmt::print("{}", report.ToText(format_));
  }

  // Programs that read the answers get them alone.
  void SayPage() const {
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(output_));
    fmt::print(format_ == Format::kTable ? stdout : stderr,
               "{}: {}\nopen it in a browser: xdg-open {}\n", output_, HumanBytes(bytes),
               storage::ShellWord(output_));
  }

  static void SayOnStderr(const char* what, const Table& table) {
    for (const std::vector<Cell>& row : table.rows()) {
      fmt::print(stderr, "acltape: {}: {}: {}\n", what, std::get<std::string>(row[0]),
                 std::get<std::string>(row[1]));
    }
  }

  std::string action_;
  std::string folder_;
  std::vector<std::string> words_;
  std::string run_;
  int64_t rank_ = -1;
  std::string label_;
  std::string output_;
  bool overwrite_ = false;
  int64_t limit_ = 0;
  int64_t memory_ = 0;
  int64_t threads_ = 0;
  std::string engine_ = "duckdb";
  std::string master_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeFleetCommand() { return std::make_unique<FleetCommand>(); }

}  // namespace acltape::cli
