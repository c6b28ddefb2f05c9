// Whole recordings of a small program: what is in the trace, and what the caller is told.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "storage/query.h"
#include "tests/recorder/record_fixture.h"
#include "tests/storage/query_rows.h"

namespace acltape::test {
namespace {

int64_t Number(const storage::Reader& reader, const std::string& sql) {
  return std::get<int64_t>(storage::AllRows(reader, sql).rows.at(0).at(0));
}

TEST_F(RecordTest, EveryCallOfALoopWithItsArgumentsAndBuffers) {
  const auto summary = Record({"loop", "1000"});
  EXPECT_EQ(summary.exit_code, 0);
  EXPECT_EQ(summary.state, "complete");
  EXPECT_EQ(summary.failure, "");
  EXPECT_EQ(summary.leaves, 1000);
  EXPECT_EQ(summary.torch_processes, 1u);

  const storage::Reader reader(Path());
  EXPECT_EQ(reader.State(), "complete");
  const auto calls = reader.Calls(true);
  ASSERT_EQ(calls.size(), 1000u);
  const storage::Call& call = calls[500];
  EXPECT_EQ(call.call_id, 501);
  EXPECT_EQ(reader.GetOp(call.op_id).FullName(), "aten::add.Tensor");
  EXPECT_GE(call.end_ns, call.begin_ns);
  EXPECT_GE(call.begin_ns, calls[499].end_ns);
  const auto arguments = reader.Arguments(call);
  ASSERT_EQ(arguments.size(), 4u);
  EXPECT_EQ(arguments[0].name, "self");
  EXPECT_EQ(arguments[0].direction, storage::Direction::kIn);
  EXPECT_EQ(arguments[0].tensors[0].buffer_id, 1);
  EXPECT_EQ(arguments[2].name, "alpha");
  EXPECT_EQ(arguments[2].integer, 1);
  EXPECT_EQ(arguments[3].name, "out");
  EXPECT_EQ(arguments[3].position, 3);
  EXPECT_EQ(arguments[3].direction, storage::Direction::kOut);
  const int64_t result = arguments[3].tensors[0].buffer_id;
  EXPECT_EQ(result, 503);
  EXPECT_EQ(reader.GetLayout(arguments[3].tensors[0].layout_id).shape, std::vector<int64_t>({4}));
  const storage::Buffer& buffer = reader.GetBuffer(result);
  EXPECT_EQ(buffer.bytes, 16);
  EXPECT_EQ(buffer.alloc_call, 501);
  EXPECT_GT(buffer.free_ns, buffer.alloc_ns);
  // The last result was never freed, and the inputs live from before the loop.
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM buffer"), 1002);
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM buffer WHERE free_ns IS NULL"), 3);
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM signature"), 1);
}

TEST_F(RecordTest, AtMost120BytesOfFilePerCall) {
  const auto summary = Record({"loop", "100000"});
  EXPECT_LE(summary.file_bytes, 120 * 100000);
  RecordProperty("bytes_per_call", static_cast<int>(summary.file_bytes / 100000));
}

TEST_F(RecordTest, ARingThatWrapsManyTimesLosesNothing) {
  auto options = Options({"loop", "20000"});
  options.ring_bytes = 64 << 10;
  const auto summary = collector::Record(options);
  EXPECT_EQ(summary.leaves, 20000);
  EXPECT_EQ(summary.state, "complete");
  // A ring of 64 KiB makes the program wait, and the ledger says so.
  EXPECT_NE(Find(summary.ledger, "recorder_stall"), nullptr);
}

TEST_F(RecordTest, ThreadsAtTheSameTimeWithIdsOfOneSequence) {
  const auto summary = Record({"threads", "8", "2000"});
  EXPECT_EQ(summary.leaves, 16000);
  EXPECT_EQ(summary.state, "complete");
  const storage::Reader reader(Path());
  EXPECT_EQ(Number(reader, "SELECT count(DISTINCT thread_id) FROM call"), 8);
  EXPECT_EQ(Number(reader, "SELECT max(call_id) FROM call"), 16000);
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM thread WHERE name = 'loop'"), 8);
  EXPECT_EQ(
      Number(reader, "SELECT min(n) FROM (SELECT count(*) AS n FROM call GROUP BY thread_id)"),
      2000);
}

TEST_F(RecordTest, MoreThreadsThanSlotsIsADataLoss) {
  auto options = Options({"threads", "40", "200"});
  options.slots = 1;
  const auto summary = collector::Record(options);
  // One after the other each thread can have the one slot, so only those that found none count.
  const storage::LedgerEntry* entry = Find(summary.ledger, "threads_without_slot");
  const int64_t lost = entry == nullptr ? 0 : entry->count;
  EXPECT_EQ(summary.leaves, (40 - lost) * 200);
  EXPECT_EQ(summary.state, lost == 0 ? "complete" : "partial");
}

TEST_F(RecordTest, SlotsAreUsedAgain) {
  auto options = Options({"fork", "500"});
  options.slots = 2;
  const auto summary = collector::Record(options);
  EXPECT_EQ(summary.state, "complete");
  EXPECT_EQ(summary.leaves, 1500);
}

TEST_F(RecordTest, ForkedProcessesAreTold) {
  const auto summary = Record({"fork", "300"});
  EXPECT_EQ(summary.leaves, 900);
  EXPECT_EQ(summary.state, "complete");
  const storage::Reader reader(Path());
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM process"), 2);
}

TEST_F(RecordTest, AProgramThatReplacesItselfByExecKeepsBothParts) {
  const auto summary = Record({"exec", "400"});
  EXPECT_EQ(summary.leaves, 800);
  EXPECT_EQ(summary.state, "complete");
  const storage::Reader reader(Path());
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM process"), 1);
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM thread"), 2);
}

TEST_F(RecordTest, AProcessThatOutlivesTheProgramIsWaitedForOnlySoLong) {
  for (const char* mode : {"outlive", "outlive-busy"}) {
    auto options = Options({mode});
    options.overwrite = true;
    options.outlive_ms = 300;
    const auto summary = collector::Record(options);
    EXPECT_EQ(summary.exit_code, 0) << mode;
    EXPECT_EQ(summary.state, "partial") << mode;
    EXPECT_NE(Find(summary.ledger, "process_outlived"), nullptr) << mode;
    EXPECT_GE(summary.leaves, 1) << mode;
  }
}

TEST_F(RecordTest, OutermostRangesOfTheNameBecomeSteps) {
  auto options = Options({"steps", "3"});
  options.steps_from = "step";
  collector::Record(options);
  const storage::Reader reader(Path());
  const auto steps = reader.Steps();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].first_call, 2);
  EXPECT_EQ(steps[0].last_call, 3);
  EXPECT_EQ(steps[1].first_call, 5);
  EXPECT_EQ(steps[2].last_call, 9);
  EXPECT_EQ(steps[2].found_by, "range:step");
  // Calls know their step and their innermost range.
  EXPECT_EQ(Number(reader, "SELECT step FROM call WHERE call_id = 6"), 1);
  EXPECT_EQ(Number(reader, "SELECT step IS NULL FROM call WHERE call_id = 4"), 1);
  EXPECT_EQ(Number(reader,
                   "SELECT s.path = 'epoch/step/step' FROM call c JOIN scope s "
                   "ON s.scope_id = c.scope_id WHERE c.call_id = 3"),
            1);
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM scope_range"), 7);
}

TEST_F(RecordTest, APrefixTakesEveryRangeThatBeginsSo) {
  auto options = Options({"steps", "3"});
  options.steps_from = "ep*";
  collector::Record(options);
  const auto steps = storage::Reader(Path()).Steps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].found_by, "range:epoch");
  EXPECT_EQ(steps[0].last_call, 10);
}

TEST_F(RecordTest, ANameThatNoRangeHasIsNoticed) {
  auto options = Options({"steps", "1"});
  options.steps_from = "batch";
  const auto summary = collector::Record(options);
  EXPECT_NE(Find(summary.ledger, "no_steps"), nullptr);
  EXPECT_EQ(summary.state, "complete");
}

TEST_F(RecordTest, PayloadsInPiecesArriveWhole) {
  auto options = Options({"payload", "5", "250001"});
  options.payload = wire::PayloadPolicy::kAll;
  const auto summary = collector::Record(options);
  EXPECT_EQ(summary.state, "complete");
  EXPECT_EQ(summary.payload_bytes, 5 * 250001);
  const storage::Reader reader(Path());
  const auto snapshots = reader.Snapshots();
  ASSERT_EQ(snapshots.size(), 5u);
  for (const storage::Snapshot& snapshot : snapshots) {
    EXPECT_TRUE(snapshot.has_payload);
    EXPECT_EQ(reader.Payload(snapshot.digest).size(), 250001u);
  }
}

TEST_F(RecordTest, AKilledProgramLeavesWhatItHadFinished) {
  auto options = Options({"torn"});
  options.steps_from = "step";
  const auto summary = collector::Record(options);
  EXPECT_EQ(summary.signal, SIGKILL);
  EXPECT_EQ(summary.state, "partial");
  EXPECT_EQ(summary.leaves, 1);
  EXPECT_NE(Find(summary.ledger, "unfinished_call"), nullptr);
  EXPECT_NE(Find(summary.ledger, "payload_incomplete"), nullptr);
  EXPECT_NE(Find(summary.ledger, "payload_missing"), nullptr);
  const storage::Reader reader(Path());
  const auto calls = reader.Calls(false);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].status, -1);
  EXPECT_FALSE(calls[0].leaf);
  EXPECT_EQ(calls[1].parent_id, calls[0].call_id);
  EXPECT_EQ(reader.Steps().size(), 1u);
  ASSERT_EQ(reader.Snapshots().size(), 1u);
  EXPECT_FALSE(reader.Snapshots()[0].has_payload);
}

TEST_F(RecordTest, TheProgramsExitCodeIsPassedOn) {
  const auto summary = Record({"exit", "7"});
  EXPECT_EQ(summary.exit_code, 7);
  EXPECT_EQ(summary.signal, 0);
  EXPECT_EQ(summary.state, "complete");
  // It used neither library, and the trace says so.
  EXPECT_NE(Find(summary.ledger, "no_operators"), nullptr);
  EXPECT_EQ(storage::Reader(Path()).Meta("exit_code"), "7");
}

TEST_F(RecordTest, StandardStreamsAndArgumentsReachTheProgramUntouched) {
  std::ofstream(Path("in")) << "line one\nline two";
  const int in = dup(0), out = dup(1);
  const int file_in = open(Path("in").c_str(), O_RDONLY);
  const int file_out = open(Path("out").c_str(), O_WRONLY | O_CREAT, 0644);
  fflush(stdout);
  dup2(file_in, 0);
  dup2(file_out, 1);
  const auto summary = Record({"args", "a b", "", "--flag"});
  dup2(in, 0);
  dup2(out, 1);
  for (const int file : {in, out, file_in, file_out}) close(file);
  EXPECT_EQ(summary.exit_code, 0);
  std::ifstream written(Path("out"));
  const std::string text((std::istreambuf_iterator<char>(written)), {});
  EXPECT_EQ(text, "[a b][][--flag]line one\nline two");
}

TEST_F(RecordTest, MetaTellsHowItWasRecorded) {
  Record({"exit", "0"});
  const storage::Reader reader(Path());
  EXPECT_EQ(reader.Meta("schema_version"), "9");
  EXPECT_EQ(reader.Meta("command"),
            std::string("[\"") + ACLTAPE_RECORDED_PROGRAM + "\",\"exit\",\"0\"]");
  EXPECT_EQ(reader.Meta("payload"), "none");
  EXPECT_EQ(reader.Meta("levels"), "aten,acl");
  EXPECT_NE(reader.Meta("host"), "");
}

TEST_F(RecordTest, AProgramThatIsNotThereLeavesNoTrace) {
  auto options = Options({});
  options.command = {"no-such-program-anywhere"};
  const auto [kind, sentence] = ErrorOf([&] { collector::Record(options); });
  EXPECT_EQ(kind, 2);
  EXPECT_EQ(sentence, "cannot run 'no-such-program-anywhere' (no such program)");
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(RecordTest, AFileThatIsNoProgramLeavesNoTrace) {
  std::ofstream(Path("plain")) << "#!/no/such/interpreter\n";
  auto options = Options({});
  options.command = {Path("plain")};
  EXPECT_EQ(ErrorOf([&] { collector::Record(options); }).first, 2);
  // Executable by its mode, but not by its content: found out only by exec itself.
  std::filesystem::permissions(Path("plain"), std::filesystem::perms::owner_all);
  const auto [kind, sentence] = ErrorOf([&] { collector::Record(options); });
  EXPECT_EQ(kind, 2);
  EXPECT_NE(sentence.find("cannot run"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(Path()));
  EXPECT_FALSE(std::filesystem::exists(Path() + ".reserve"));
}

TEST_F(RecordTest, AnExistingFileIsKeptUnlessTold) {
  std::ofstream(Path()) << "precious";
  auto options = Options({"exit", "0"});
  const auto [kind, sentence] = ErrorOf([&] { collector::Record(options); });
  EXPECT_EQ(kind, 2);
  EXPECT_EQ(sentence, "'" + Path() + "' exists already; use --force to overwrite it");
  options.overwrite = true;
  EXPECT_EQ(collector::Record(options).state, "complete");
  EXPECT_EQ(storage::Reader(Path()).State(), "complete");
}

TEST_F(RecordTest, AfterwardsThereIsOneFile) {
  Record({"loop", "100"});
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    files.insert(entry.path().filename());
  }
  EXPECT_EQ(files, std::set<std::string>({"t.db"}));
}

TEST_F(RecordTest, ATraceCanBeReadWhileItIsRecorded) {
  auto options = Options({"sleep", "2"});
  std::string state;
  std::thread reading([&] {
    while (!std::filesystem::exists(Path())) usleep(10000);
    usleep(500000);
    state = storage::Reader(Path()).State();
  });
  collector::Record(options);
  reading.join();
  EXPECT_EQ(state, "recording");
  EXPECT_EQ(storage::Reader(Path()).State(), "complete");
}

TEST_F(RecordTest, SigtermIsPassedOnAndTheTraceClosesWell) {
  std::thread terminator([] {
    usleep(500000);
    kill(getpid(), SIGTERM);
  });
  const auto summary = Record({"sleep", "30"});
  terminator.join();
  EXPECT_EQ(summary.signal, SIGTERM);
  EXPECT_EQ(summary.state, "partial");
  EXPECT_EQ(storage::Reader(Path()).State(), "partial");
}

TEST_F(RecordTest, ProgressIsReportedWhileTheProgramRuns) {
  auto options = Options({"sleep", "1"});
  int reports = 0;
  options.progress = [&reports](const collector::Progress& progress) {
    ++reports;
    EXPECT_GT(progress.wall_ns, 0);
  };
  collector::Record(options);
  EXPECT_GE(reports, 2);
}

}  // namespace
}  // namespace acltape::test
