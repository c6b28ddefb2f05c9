// The identities by which lint knows findings again in another recording.
#include "cli/plan/lint_identity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "analyzer/calls/work.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::cli {
namespace {

using namespace test;

// The identities of the findings about a capture in which an adapter asks for an event so often.
std::set<std::string> IdentitiesWithQueries(int queries) {
  const TemporaryTrace file("lint-identity");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const int64_t event = trace.NewEvent();
  const Tensor a = trace.Device({16});
  trace.BeginCapture(stream);
  trace.Op("aclnnRelu", stream, {In("self", a), Out("out", a)});
  trace.Record(event, stream);
  for (int i = 0; i < queries; ++i) {
    trace.Interface("aclrtQueryEventStatus", {Int("event", event), Int("status", 1)});
  }
  trace.Op("aclnnRelu", stream, {In("self", a), Out("out", a)});
  trace.EndCapture(stream);
  trace.Finish();
  const storage::Reader reader(file.path());
  const analyzer::Work work = analyzer::LoadWork(reader);
  const analyzer::lint::LintReport report = analyzer::lint::Lint(work, {});
  std::set<std::string> identities;
  for (const LocatedFinding& one : LocateFindings(work, report)) identities.insert(one.Identity());
  return identities;
}

TEST(LintIdentity, TheNumberOfQueriesOfAnEventIsNoPartOfIt) {
  EXPECT_TRUE(IdentitiesWithQueries(2).contains("LINT-06 | aclrtQueryEventStatus |  |  | 1"));
  EXPECT_EQ(IdentitiesWithQueries(2), IdentitiesWithQueries(5));
}

TEST(LintIdentity, ABaselineWithThePlacesOfQueriesKnowsThem) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / "acltape-lint-identity.json";
  std::ofstream(path) << R"({"acltape_lint_baseline": 1, "findings": [
    {"identity": "LINT-06 | aclrtQueryEventStatus |  | train.py (main) | 3"},
    {"identity": "LINT-22 | aclnnMul |  | train.py (main) | 2"}]})";
  const std::set<std::string> known = ReadBaseline(path);
  std::filesystem::remove(path);
  EXPECT_EQ(known, (std::set<std::string>{"LINT-06 | aclrtQueryEventStatus |  |  | 1",
                                          "LINT-22 | aclnnMul |  | train.py (main) | 2"}));
}

}  // namespace
}  // namespace acltape::cli
