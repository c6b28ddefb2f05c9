#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "analyzer/acl/acl_program.h"
#include "analyzer/program/program.h"
#include "cli/choices/plan_option.h"
#include "cli/files/commands.h"
#include "cli/frame/options.h"
#include "cli/terminal/table.h"
#include "replayer/values/contents.h"
#include "storage/internal_error.h"
#include "storage/process_choice.h"
#include "storage/tables.h"
#include "storage/trace_copy.h"

namespace acltape::cli {
namespace {

class PackCommand final : public Command {
 public:
  std::string Name() const override { return "pack"; }
  std::string Summary() const override {
    return "Copy a trace with all that tools found into one compact file";
  }
  std::string Examples() const override {
    return "  acltape pack t.db -o packed.db\n"
           "  acltape pack t.db @plan plan.json -o packed.db"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddOutputOption(app, output_, "The new trace")->type_name("FILE")->required();
    AddFlag(app, "force", overwrite_);
    AddOption(app, "plan", plans_, "A plan file to put into the table `plan`, too")
        ->type_name("FILE");
    AddFormatOption(app, format_);
  }

  int Run() override {
    const storage::Reader reader(trace_, part());
    storage::TraceCopy copy(reader, output_, overwrite_);
    using Tables = std::span<const storage::StoredTable* const>;
    for (const Tables tables :
         {Tables(storage::tables::kRecorded), Tables(storage::tables::kResults)}) {
      for (const storage::StoredTable* table : tables) {
        const bool is_meta = table == &storage::tables::kMeta;
        copy.CopyRows(table->name, is_meta ? "key <> 'schema_version'" : "");
      }
    }
    copy.SetMeta("state", reader.State());
    copy.Close();
    AddPlans(reader, copy.partial_path());
    const std::string missing = Missing(reader, copy);
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(copy.partial_path()));
    copy.Accept();
    Table table({"quantity", "value"});
    table.Add({"file", output_});
    table.Add({"bytes of the file", bytes});
    table.Add(
        {"bytes of the whole trace", static_cast<int64_t>(std::filesystem::file_size(trace_))});
    table.Add({"state", reader.State()});
    table.Add({"plans added", static_cast<int64_t>(plans_.size())});
    table.Add({"missing for a replay", missing.empty() ? std::string("nothing") : missing});
    fmt::print("{}", table.ToText(format_));
    return kExitFine;
  }

 private:
  void AddPlans(const storage::Reader& trace, const std::string& path) const {
    if (plans_.empty()) return;
    storage::Reader packed(path, storage::Reader::Mode::kReadWrite, part());
    storage::Results results(packed);
    for (const std::string& plan : plans_) PlanOption{plan, true}.Read(trace, &results);
  }

  // Says in a sentence which contents a replay with recorded values would lack; empty for none.
  static std::string Lacking(const storage::Reader& trace) {
    try {
      const auto look = [](const storage::Reader& process) {
        const analyzer::Program program = analyzer::LoadProgram(process);
        const replayer::Contents contents(program, replayer::Data::kRecorded, 1);
      };
      const std::vector<storage::TracePart> programs = storage::ProgramsOf(trace);
      if (programs.size() == 1) {
        look(trace);
      } else {
        for (const storage::TracePart& part : programs) look(storage::Reader(trace.path(), part));
      }
      return "";
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTrace) throw;
      std::string why = error.what();
      if (const size_t position = why.find(trace.path()); position != std::string::npos) {
        why.replace(position, trace.path().size(), "the trace");
      }
      return why;
    }
  }

  // Says what the packed trace lacks; the whole one has to lack it as well.
  static std::string Missing(const storage::Reader& trace, const storage::TraceCopy& copy) {
    std::string missing = Lacking(*copy.ReadBack([](const storage::Reader& /*trace*/) {}));
    if (missing.empty() || !Lacking(trace).empty()) return missing;
    throw InternalError("the packed trace, as it was written, cannot be replayed: " + missing);
  }

  std::string trace_;
  std::string output_;
  bool overwrite_ = false;
  std::vector<std::string> plans_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakePackCommand() { return std::make_unique<PackCommand>(); }

}  // namespace acltape::cli
