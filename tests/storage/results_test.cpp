// Tools add results to a trace.
#include "storage/results.h"

#include <sys/wait.h>
#include <unistd.h>

#include "storage/query.h"
#include "tests/storage/query_rows.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

int64_t Number(const Reader& reader, const char* sql) {
  return std::get<int64_t>(AllRows(reader, sql).rows.at(0).at(0));
}

TEST_F(TraceTest, RunsSamplesAndComparisonsAreKept) {
  Reader reader(Make(), Reader::Mode::kReadWrite);
  {
    Results results(reader);
    const int64_t run = results.AddRun({.mode = "captured", .device = "soft"});
    EXPECT_EQ(run, 1);
    EXPECT_EQ(results.AddRun({.mode = "eager", .device = "soft"}), 2);
    results.AddSample({.run_id = run, .repetition = 2, .step = 1, .host_ns = 1800});
    results.AddComparison({.run_id = run,
                           .step = 1,
                           .call_id = 6,
                           .position = 4,
                           .metrics = R"({"max_ulp":0})",
                           .verdict = "equal"});
    results.FinishRun(run, 0);
  }
  const Reader again(Path());
  EXPECT_EQ(Number(again, "SELECT count(*) FROM run"), 2);
  EXPECT_EQ(Number(again, "SELECT exit_code FROM run WHERE run_id = 1"), 0);
  EXPECT_EQ(Number(again, "SELECT end_ns >= begin_ns FROM run WHERE run_id = 1"), 1);
  EXPECT_EQ(Number(again, "SELECT end_ns IS NULL FROM run WHERE run_id = 2"), 1);
  EXPECT_EQ(Number(again, "SELECT host_ns FROM sample WHERE step = 1 AND call_id IS NULL"), 1800);
  EXPECT_EQ(Number(again, "SELECT json_extract(metrics, '$.max_ulp') FROM comparison"), 0);
}

TEST_F(TraceTest, PlansKeepTheirRegionsPlacementsAndWaits) {
  Reader reader(Make(), Reader::Mode::kReadWrite);
  Results results(reader);
  PlanRecord plan;
  plan.name = "plan.json";
  plan.document = R"({"version":1})";
  plan.regions = {{"captured", 2, 5, "the step ends"}, {"eager", 6, 6, "host read"}};
  plan.placements = {{2, 0}, {5, 1}};
  plan.syncs = {{0, 2, 5, "call 5 after call 2"}};
  EXPECT_EQ(results.AddPlan(plan), 1);
  EXPECT_EQ(results.AddPlan(plan), 1);  // the same document
  plan.document = R"({"version":1,"streams":2})";
  EXPECT_EQ(results.AddPlan(plan), 2);  // the same calls, under another plan
  results.Commit();
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM region WHERE plan_id = 2"), 2);
  EXPECT_EQ(Number(reader, "SELECT first_call FROM region WHERE kind = 'eager' LIMIT 1"), 6);
  EXPECT_EQ(Number(reader, "SELECT stream FROM placement WHERE plan_id = 1 AND call_id = 5"), 1);
  EXPECT_EQ(Number(reader, "SELECT wait_call FROM sync WHERE plan_id = 2"), 5);
  EXPECT_EQ(Number(reader, "SELECT json_extract(document, '$.version') FROM plan LIMIT 1"), 1);
}

TEST_F(TraceTest, AFindingIsKeptOnceWithItsLatestVerdict) {
  Reader reader(Make(), Reader::Mode::kReadWrite);
  Results results(reader);
  Finding finding{.rule = "CAP-02",
                  .severity = Severity::kError,
                  .call_id = 4,
                  .code = 107027,
                  .message = "host read"};
  results.AddFinding(finding);
  finding.verdict = "reproduced";
  results.AddFinding(finding);
  finding.call_id = 0;  // the trace as a whole
  results.AddFinding(finding);
  results.AddFinding(finding);
  results.Commit();
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM finding"), 2);
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM finding WHERE verdict = 'reproduced'"), 2);
}

TEST_F(TraceTest, APredictionLeavesAProvenFindingUnlessItsCodeIsAnother) {
  Reader reader(Make(), Reader::Mode::kReadWrite);
  Results results(reader);
  Finding finding{.rule = "CAP-02", .call_id = 4, .code = 107027, .message = "host read"};
  finding.verdict = "reproduced";
  finding.evidence = R"([{"probe":107027}])";
  results.AddFinding(finding);
  finding.verdict = "predicted";
  finding.evidence = "[]";
  results.AddFinding(finding);
  results.Commit();
  EXPECT_EQ(Number(reader,
                   "SELECT count(*) FROM finding WHERE verdict = 'reproduced' AND "
                   "evidence <> '[]'"),
            1);
  finding.code = 107030;
  results.AddFinding(finding);
  results.Commit();
  EXPECT_EQ(Number(reader,
                   "SELECT count(*) FROM finding WHERE verdict = 'predicted' AND "
                   "code = 107030"),
            1);
}

TEST_F(TraceTest, StepsAreReplaced) {
  Reader reader(Make(), Reader::Mode::kReadWrite);
  Results results(reader);
  results.ReplaceSteps({{0, 1, 8, "period"}});
  const auto steps = reader.Steps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].last_call, 8);
  EXPECT_EQ(Number(reader, "SELECT step FROM call WHERE call_id = 6"), 0);
}

TEST_F(TraceTest, RolesShowInTheBufferView) {
  Reader reader(Make(), Reader::Mode::kReadWrite);
  Results results(reader);
  results.SetBufferRole(1, "input");
  results.SetBufferRole(1, "parameter");
  results.Commit();
  EXPECT_EQ(Number(reader, "SELECT count(*) FROM buffer WHERE role = 'parameter'"), 1);
}

TEST_F(TraceTest, ATraceOpenedForReadingIsRefused) {
  Reader reader(Make());
  const auto [kind, sentence] = ErrorOf([&] { Results results(reader); });
  EXPECT_EQ(kind, 4);
  EXPECT_EQ(sentence, "results cannot be added to '" + Path() +
                          "': the file or its folder is read-only; copy the trace to a writable "
                          "folder");
}

TEST_F(TraceTest, AReadOnlyFolderIsRefused) {
  Make();
  std::filesystem::permissions(Path(), std::filesystem::perms(0666));
  std::filesystem::permissions(folder_, std::filesystem::perms(0555));
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) _exit(99);
    _exit(ErrorOf([&] {
            Reader reader(Path(), Reader::Mode::kReadWrite);
            Results results(reader);
          }).first);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  EXPECT_EQ(WEXITSTATUS(status), 4);
}

TEST_F(TraceTest, ATraceThatIsBeingRecordedIsRefused) {
  Writer writer(Path(), WriterOptions());
  Fill(writer);
  writer.Commit();
  Reader reader(Path(), Reader::Mode::kReadWrite);
  const auto [kind, sentence] = ErrorOf([&] { Results results(reader); });
  EXPECT_EQ(kind, 4);
  EXPECT_NE(sentence.find("while it is being recorded"), std::string::npos);
}

}  // namespace
}  // namespace acltape::storage
