// The contents of the page of a small trace.
#include "page/page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "analyzer/diff/verdict.h"
#include "page/layers.h"
#include "page/own_graphs.h"
#include "page/part_of_steps.h"
#include "storage/database.h"
#include "storage/results.h"
#include "tests/analyzer/trace_builder.h"
#include "tests/page/page_parts.h"

namespace acltape::page {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the words of the trace builder

class PageOfTrace : public ::testing::Test {
 protected:
  // Calls in a row, each of the result of the one before.
  std::string Write(int calls, const PageOptions& options, const std::string& op = "aten::relu") {
    return Write(std::vector<std::string>(static_cast<size_t>(calls), op), options);
  }
  std::string Write(const std::vector<std::string>& ops, const PageOptions& options) {
    TraceBuilder trace(file_.path());
    Tensor x = trace.NewTensor({2, 3});
    for (const std::string& op : ops) {
      const Tensor y = trace.NewTensor({2, 3});
      trace.Call(op, {In("self", x)}, {Out("out", y)});
      x = y;
    }
    trace.Finish();
    const storage::Reader reader(file_.path());
    std::ostringstream out;
    report_ = WritePage(reader, options, out);
    return out.str();
  }

  TemporaryTrace file_{"page"};
  PageReport report_;
};

TEST_F(PageOfTrace, HoldsItsCallsAndTheirArguments) {
  const std::string page = Write(5, {.title = "five"});
  EXPECT_EQ(report_.calls_shown, 5);
  EXPECT_EQ(PartOf(page, "facts")["title"], "five");
  const nlohmann::json signatures = PartOf(page, "signatures");
  ASSERT_EQ(signatures["ops"].size(), 1u);
  EXPECT_EQ(signatures["ops"][0][0], "aten::relu");
  EXPECT_EQ(signatures["signatures"][0][1][0], nlohmann::json::array({"self", 0, "float32[2, 3]"}));
  EXPECT_NE(page.find("data-name=\"calls.begin\" data-count=\"5\""), std::string::npos);
}

TEST_F(PageOfTrace, SaysWhichPartIsShown) {
  const std::string page = Write(9, {.most_calls = 4});
  EXPECT_EQ(report_.calls_shown, 4);
  EXPECT_EQ(report_.calls, 9);
  EXPECT_EQ(PartOf(page, "extent"), (nlohmann::json{{"shown", 4}, {"all", 9}}));
  EXPECT_NE(page.find("data-name=\"calls.id\" data-count=\"4\""), std::string::npos);
}

TEST_F(PageOfTrace, HasTheDevicesWorkForTheCallsThatItShows) {
  EXPECT_EQ(Write(5, {}).find("data-name=\"device."), std::string::npos);
  {
    storage::Reader reader(file_.path(), storage::Reader::Mode::kReadWrite);
    reader.database().Execute(
        "INSERT INTO device_span SELECT call_id, 1, end_ns, end_ns + 100, 0 FROM call");
  }
  const storage::Reader reader(file_.path());
  for (const auto& [most_calls, spans] : {std::pair{4, 4}, std::pair{5, 5}}) {
    std::ostringstream out;
    WritePage(reader, {.most_calls = most_calls}, out);
    for (const char* column : {"call", "stream", "begin", "duration"}) {
      EXPECT_NE(
          out.str().find(fmt::format("data-name=\"device.{}\" data-count=\"{}\"", column, spans)),
          std::string::npos)
          << column;
    }
  }
}

TEST_F(PageOfTrace, ShowsAStepOfAnUnrepeatedProgramWithoutAPlan) {
  const std::string page = Write({"aten::relu", "aten::tanh", "aten::neg"}, {});
  const nlohmann::json plan = PartOf(page, "plan");
  EXPECT_EQ(plan["source"], "");
  EXPECT_NE(plan["why_none"], "");
  EXPECT_EQ(plan["nodes"].size(), 3u);
  EXPECT_EQ(plan["edges"].size(), 2u);  // each reads what the one before wrote
}

TEST_F(PageOfTrace, ExperimentsWithPlantedFaultsAndTrialsThatHeldAreNoErrorsOfTheTrace) {
  Write({"aten::relu", "aten::tanh"}, {});
  {
    storage::Reader written(file_.path(), storage::Reader::Mode::kReadWrite);
    storage::Results results(written);
    const auto add = [&](const char* message, const char* verdict) {
      results.AddFinding({.rule = "BISECT",
                          .severity = storage::Severity::kError,
                          .call_id = 1,
                          .message = message,
                          .evidence = "[]",
                          .verdict = verdict});
    };
    add("captured, call 1 gives other results", "reproduced");
    add("captured, call 2 gives other results", "reproduced");  // an older acltape kept it
    results.AddWitness({.kind = "bisect",
                        .message = "captured, call 2 gives other results",
                        .command = "acltape experiment t.db --plant wrong_bits@2"});
    add("the plan gives other results when memory moves", "refuted");
    results.Commit();
  }
  const storage::Reader reader(file_.path());
  std::ostringstream out;
  WritePage(reader, {}, out);
  const nlohmann::json view = PartOf(out.str(), "findings");
  EXPECT_EQ(view["source"], "both");  // lint stored nothing, so the page looks itself
  std::vector<std::string> stored;
  for (const nlohmann::json& row : view["findings"]) {
    if (row["rule"] == "BISECT") stored.push_back(row["message"]);
  }
  EXPECT_EQ(stored, std::vector<std::string>{"captured, call 1 gives other results"});
}

TEST_F(PageOfTrace, EachMomentOfAStepCountsOnceForItsFirstKind) {
  Write({"aten::relu", "aten::tanh", "aten::neg", "aten::relu"}, {});
  storage::Reader writable(file_.path(), storage::Reader::Mode::kReadWrite);
  // Step 0: an operator of the host from 0 to 100 and one of the device from 50 to 200. Step 1: an
  // operator of the device from 400 to 500, then one for which the trace names no place. The
  // loader's range from 220 to 390 lies between the steps and belongs to the one that follows.
  writable.database().Execute(
      "DELETE FROM step; DELETE FROM step_total; DELETE FROM scope; DELETE FROM scope_range; "
      "INSERT OR REPLACE INTO meta(key, value) VALUES ('base_ns', '1000'); "
      "INSERT OR REPLACE INTO thread(thread_id, process_id) SELECT DISTINCT thread_id, 1 FROM "
      "call_row; "
      "INSERT INTO step(step, first_call, last_call, found_by) VALUES (0, 1, 2, 'period'), "
      "(1, 3, 4, 'period'); "
      "UPDATE call_row SET bits = 4 | (1 << 3), begin_ns = 0, duration_ns = 100 WHERE call_id = 1; "
      "UPDATE call_row SET bits = 4 | (2 << 3), begin_ns = 50, duration_ns = 150 WHERE call_id = "
      "2; "
      "UPDATE call_row SET bits = 4 | (2 << 3), begin_ns = 400, duration_ns = 100 WHERE call_id = "
      "3; "
      "UPDATE call_row SET bits = 4, begin_ns = 510, duration_ns = 40 WHERE call_id = 4; "
      "INSERT INTO scope(scope_id, kind, name, path) VALUES "
      "(1, 'user', 'enumerate(DataLoader)#_Iter.__next__', 'loader'); "
      "INSERT INTO scope_range(scope_id, thread_id, first_call, last_call, begin_ns, end_ns) "
      "SELECT 1, min(thread_id), 3, 2, 1220, 1390 FROM call_row");
  const storage::Reader trace(file_.path());
  std::ostringstream out;
  WritePage(trace, {}, out);
  const nlohmann::json rows = PartOf(out.str(), "breakdown")["rows"];
  ASSERT_EQ(rows.size(), 2u);
  const auto part = [&rows](size_t step, const char* name) { return rows[step][name]; };
  EXPECT_EQ(part(0, "step_ns"), 200);
  EXPECT_EQ(part(0, "host_operators_ns"), 100);
  EXPECT_EQ(part(0, "issuing_ns"), 100);  // the first 50 of it count for the operator of the host
  EXPECT_EQ(part(0, "program_ns"), 0);
  EXPECT_EQ(part(0, "loading_ns"), 0);
  EXPECT_EQ(part(1, "wall_ns"), 150);
  EXPECT_EQ(part(1, "before_ns"), 200);
  EXPECT_EQ(part(1, "loading_ns"), 170);
  EXPECT_EQ(part(1, "issuing_ns"), 100);
  EXPECT_EQ(part(1, "place_not_known_ns"), 40);
  EXPECT_EQ(part(1, "program_ns"), 350 - 170 - 100 - 40);
  EXPECT_TRUE(part(1, "device_compute_ns").is_null());  // the times of a device are not known
}

TEST_F(PageOfTrace, AStepIsThatOfTheProcessWhoseRangeMarksIt) {
  Write({"aten::relu", "aten::tanh", "aten::neg", "aten::relu"}, {});
  storage::Reader writable(file_.path(), storage::Reader::Mode::kReadWrite);
  // A worker of a loader calls first in each step, and for a shorter time than the program.
  writable.database().Execute(
      "DELETE FROM step; DELETE FROM step_total; DELETE FROM scope; DELETE FROM scope_range; "
      "INSERT OR REPLACE INTO meta(key, value) VALUES ('base_ns', '1000'); "
      "INSERT OR REPLACE INTO process(process_id, pid, name) VALUES (1, 10, 'main'), "
      "(2, 11, 'pt_data_worker'); "
      "INSERT OR REPLACE INTO thread(thread_id, process_id) VALUES (7, 1), (8, 2); "
      "UPDATE call_row SET thread_id = iif(call_id % 2 = 1, 8, 7), bits = 4 | (1 << 3), "
      "begin_ns = 100 * call_id, duration_ns = iif(call_id % 2 = 1, 10, 50); "
      "INSERT INTO step(step, first_call, last_call, found_by) VALUES (0, 1, 2, 'range:step'), "
      "(1, 3, 4, 'range:step'); INSERT INTO scope(scope_id, kind, name, path) VALUES "
      "(1, 'user', 'step', 'step'); "
      "INSERT INTO scope_range(scope_id, thread_id, first_call, last_call, begin_ns, end_ns) "
      "VALUES (1, 7, 1, 2, 1200, 1250), (1, 7, 3, 4, 1400, 1450)");
  const storage::Reader trace(file_.path());
  std::ostringstream out;
  WritePage(trace, {}, out);
  const nlohmann::json rows = PartOf(out.str(), "breakdown")["rows"];
  ASSERT_EQ(rows.size(), 2u);
  for (size_t step = 0; step < 2; ++step) {
    EXPECT_EQ(rows[step]["wall_ns"], 50) << step;
    EXPECT_EQ(rows[step]["host_operators_ns"], 50) << step;
  }
  EXPECT_EQ(rows[1]["before_ns"], 150);
  EXPECT_EQ(PartOf(out.str(), "facts")["process_of_steps"], 1);
}

TEST_F(PageOfTrace, TwoTracesHaveVerdictAndCoverageOfTheDiff) {
  const auto write = [](const std::string& path, const std::vector<float>& result, bool kept) {
    TraceBuilder trace(path);
    const Tensor x = trace.NewTensor({2}), y = trace.NewTensor({2}), z = trace.NewTensor({2});
    trace.Call("aten::relu", {In("self", x)}, {Out("out", y)}).Before(x, std::vector<float>{1, 2});
    if (kept) trace.After("out", result);
    trace.Call("aten::neg", {In("self", y)}, {Out("out", z)});
    trace.Finish();
  };
  struct Case {
    std::vector<float> other;
    bool kept;
    const char* verdict;
  };
  TemporaryTrace other("page-other");
  for (const Case& row :
       {Case{{1, 3}, true, "different: 1 place with a cause of its own"},
        Case{{1, 2},
             true,
             "not known: 2 calls are aligned, and compared results tell of 1 of 2 "
             "leaves that computed"},
        Case{{1, 2},
             false,
             "not known: 2 calls are aligned, and compared results tell of 0 of 2 "
             "leaves that computed"}}) {
    write(file_.path(), {1, 2}, row.kept);
    write(other.path(), row.other, row.kept);
    const storage::Reader a(file_.path()), b(other.path());
    std::ostringstream out;
    WritePage(a, {.against = &b}, out);
    const nlohmann::json diff = PartOf(out.str(), "against")["diff"];
    EXPECT_EQ(diff["verdict"], row.verdict);
    const auto report = analyzer::diff::Diff(a, b, {});
    EXPECT_EQ(diff["verdict"], analyzer::diff::VerdictOf(report));
    EXPECT_EQ(diff["coverage"], report.coverage.Share());
  }
}

TEST_F(PageOfTrace, TakesATraceWithoutCalls) {
  const std::string page = Write(0, {});
  EXPECT_EQ(report_.calls, 0);
  EXPECT_NE(PartOf(page, "plan")["why_none"], "");
}

TEST_F(PageOfTrace, KeepsBytesThatAreNoText) {
  const std::string page = Write(1, {}, "aten::\xff\xfe");
  EXPECT_NE(PartOf(page, "signatures")["ops"][0][0].get<std::string>().find("\xef\xbf\xbd"),
            std::string::npos);
}

TEST_F(PageOfTrace, HidesTheEnvironmentOfTheProgram) {
  Write(1, {});
  storage::Reader writable(file_.path(), storage::Reader::Mode::kReadWrite);
  writable.database().Execute(
      "INSERT OR REPLACE INTO meta(key, value) VALUES ('environment', '{\"TOKEN\": \"secret\"}')");
  std::ostringstream out;
  WritePage(writable, {}, out);
  EXPECT_EQ(out.str().find("secret"), std::string::npos);
}

TEST_F(PageOfTrace, StepsAreThoseOfTheOneProcessWithADevice) {
  Write({"aten::relu", "aten::tanh", "aten::neg"}, {});
  storage::Reader trace(file_.path(), storage::Reader::Mode::kReadWrite);
  EXPECT_EQ(ProcessOfSteps(trace), "");  // there is one process
  trace.database().Execute(
      "INSERT OR REPLACE INTO process(process_id, pid, name) VALUES (1, 10, 'main'), "
      "(2, 11, 'worker'); INSERT OR REPLACE INTO thread(thread_id, process_id) VALUES (7, 1), "
      "(8, 2); UPDATE call_row SET thread_id = iif(call_id = 1, 7, 8)");
  EXPECT_EQ(ProcessOfSteps(trace), "1");  // none used a device: the first one
  trace.database().Execute(
      "UPDATE op SET dialect = 'aclnn' WHERE op_id = (SELECT s.op_id FROM signature s JOIN "
      "call_row c USING (signature_id) WHERE c.call_id = 2)");
  EXPECT_EQ(ProcessOfSteps(trace), "2");
}

TEST_F(PageOfTrace, ATensorLiesInTheBlockThatHoldsItsAddressWhileItLives) {
  Write({"aten::relu", "aten::tanh"}, {});
  storage::Reader trace(file_.path(), storage::Reader::Mode::kReadWrite);
  trace.database().Execute(
      "UPDATE op SET dialect = 'aclrt' WHERE op_id = (SELECT s.op_id FROM signature s JOIN "
      "call_row c USING (signature_id) WHERE c.call_id = 1); "
      "UPDATE buffer_row SET alloc_call = 1, flags = 256");
  const auto buffer = [](int64_t id, int64_t address, int64_t bytes, int64_t begin,
                         int64_t alloc_call) {
    LivingBuffer made;
    made.id = id;
    made.device = 1;
    made.address = address;
    made.bytes = bytes;
    made.begin_ns = begin;
    made.end_ns = begin + 100;
    made.alloc_call = alloc_call;
    return made;
  };
  std::vector<LivingBuffer> buffers{
      buffer(1, 1000, 64, 10, 1),  // a block, and one at its place after it was freed
      buffer(2, 1000, 64, 200, 1), buffer(3, 1016, 16, 50, 2), buffer(4, 1016, 16, 250, 2),
      buffer(5, 1056, 16, 50, 2)  // ends beyond the block
  };
  InferLayers(trace, buffers);
  EXPECT_EQ(buffers[0].layer, Layer::kBlock);
  EXPECT_EQ(buffers[2].layer, Layer::kTensor);
  EXPECT_EQ(buffers[2].block, 1);
  EXPECT_EQ(buffers[3].block, 2);
  EXPECT_EQ(buffers[4].block, 0);
}

TEST(OwnGraphs, TheRunThatWarmsUpBeforeACaptureIsNoAdvice) {
  const nlohmann::json own = {
      {"graphs", {{{"graph", 9}, {"operator_names", {"aclnnMm", "aclnnAdd"}}}}}};
  // Nodes are [call, operator, region, stream, ns, graph of the program].
  nlohmann::json plan = {
      {"regions", {{{"region", 0}}, {{"region", 1}}}},
      {"nodes",
       {{1, "aclnnMm", 0, 0, 5, 0}, {2, "aclnnAdd", 0, 0, 5, 0}, {3, "aclnnMul", 1, 0, 5, 0}}},
      {"in_own_graphs", 0}};
  MarkOwnGraphs(own, plan);
  EXPECT_EQ(plan["regions"][0]["own_graph"], 9);
  EXPECT_FALSE(plan["regions"][1].contains("own_graph"));
  EXPECT_EQ(plan["in_own_graphs"], 2);
}

TEST_F(PageOfTrace, RefusesAJournalThatIsNone) {
  Write(1, {});
  const storage::Reader reader(file_.path());
  std::ostringstream out;
  EXPECT_THROW(WritePage(reader, {.journal = "/nowhere/journal"}, out), Error);
  EXPECT_THROW(WritePage(reader, {.journal = file_.path()}, out), Error);
  EXPECT_EQ(out.str(), "");  // nothing is written before what can be refused
}

}  // namespace
}  // namespace acltape::page
