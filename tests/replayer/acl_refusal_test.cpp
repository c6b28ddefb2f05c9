// A replay of an ACL program says what it finds wrong, leaves out, or cannot do.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "storage/database.h"
#include "storage/reader.h"
#include "tests/replayer/acl_fixture.h"

namespace acltape::replayer {
namespace {

using test::AclRecorded;
using test::AclTraceBuilder;
using test::Explain;
using test::Floats;
using test::In;
using test::Int;
using test::Out;
using test::Scalar;
using test::Tensor;
using test::Written;

int64_t Number(const std::string& path, const std::string& query) {
  const storage::Reader reader(path);
  return reader.database().Integer(query.c_str(), /*otherwise=*/-1);
}

TEST(AclRefusal, AWrongRecordedValueIsFoundInEveryWay) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({3});
    trace.Upload(x, Floats{1, 2, 3});
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", x), Scalar("other", 2)})
        .After("selfRef", Floats{2, 4.5, 6});  // planted
    trace.Synchronize(stream);
    trace.Download(x, Floats{2, 4, 6});
  });
  recorded.ForEachWay([&](const ReplayReport& report, Mode, Streams) {
    EXPECT_EQ(report.compared, 2);
    ASSERT_EQ(report.differing, 1);
    const Mismatch& mismatch = report.mismatches.at(0);
    EXPECT_EQ(mismatch.op, "aclnnInplaceMuls");
    EXPECT_EQ(mismatch.name, "selfRef");
    EXPECT_EQ(mismatch.metrics.first_index, 1);
    EXPECT_EQ(mismatch.metrics.first_a, "4.5");
    EXPECT_EQ(mismatch.metrics.first_b, "4");
    EXPECT_EQ(report.ExitCode(), 1);
    const std::string run = std::to_string(report.run_id);
    EXPECT_EQ(Number(recorded.path(), "SELECT count(*) FROM comparison WHERE run_id = " + run +
                                          " AND verdict = 'different' AND call_id = " +
                                          std::to_string(mismatch.call_id)),
              1);
    EXPECT_EQ(Number(recorded.path(), "SELECT exit_code FROM run WHERE run_id = " + run), 1);
  });
}

TEST(AclRefusal, AWrongDigestAloneIsFound) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const Tensor x = trace.Device({1});
    trace.Upload(x, Floats{1});
    trace.Download(x, Floats{2}, 0, /*payload=*/false);  // planted
  });
  const ReplayReport report = recorded.Replay();
  ASSERT_EQ(report.differing, 1);
  EXPECT_TRUE(report.mismatches.at(0).digest_only);
}

TEST(AclRefusal, AWrongBufferAfterAnExecutionIsFound) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({2});
    trace.Upload(x, Floats{1, 2});
    trace.BeginCapture(stream);
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", x), Scalar("other", 2)});
    const int64_t model = trace.EndCapture(stream);
    trace.Execute(model, stream).AfterWhole(x, Floats{2, 5});  // planted
    trace.Synchronize(stream);
  });
  recorded.ForEachWay([](const ReplayReport& report, Mode, Streams) {
    ASSERT_EQ(report.differing, 1) << Explain(report);
    EXPECT_EQ(report.mismatches.at(0).op, "aclmdlRIExecuteAsync");
    EXPECT_EQ(report.mismatches.at(0).metrics.first_index, 6);  // bytes
  });
}

TEST(AclRefusal, ACopyWithoutItsBytesIsNamed) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const Tensor x = trace.Device({1});
    trace.Upload(x, Floats{1}, 0, /*payload=*/false);
  });
  const std::string text = recorded.ErrorOf(ErrorKind::kTrace);
  EXPECT_NE(text.find("call 2 aclrtMemcpy needs the bytes that it copied"), std::string::npos)
      << text;
  EXPECT_NE(text.find("--payload inputs"), std::string::npos) << text;
}

TEST(AclRefusal, AnInputWithoutContentIsNamed) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({1});
    trace.Op("aclnnRelu", stream, {In("self", x), Out("out", trace.Device({1}))});
  });
  const std::string text = recorded.ErrorOf(ErrorKind::kTrace);
  EXPECT_NE(text.find("aclnnRelu needs the content of buffer 1"), std::string::npos) << text;
}

TEST(AclRefusal, AnInputOfAGraphWithoutContentIsNamedAtItsExecution) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({1});
    const Tensor y = trace.Device({1});
    trace.BeginCapture(stream);
    trace.Op("aclnnRelu", stream, {In("self", x), Out("out", y)});
    trace.Execute(trace.EndCapture(stream), stream);
  });
  const std::string text = recorded.ErrorOf(ErrorKind::kTrace);
  EXPECT_NE(text.find("aclmdlRIExecuteAsync needs the content of buffer 1 for call 5 aclnnRelu"),
            std::string::npos)
      << text;
}

TEST(AclRefusal, AnOperatorThatTheDeviceLacksTakesItsRecordedResults) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({2});
    const Tensor y = trace.Device({2});
    trace.Upload(x, Floats{1, 2});
    trace.Op("aclnnNoSuchOperator", stream, {In("self", x), Out("out", y)})
        .After("out", Floats{0.5, -0.5});
    trace.Op("aclnnRelu", stream, {In("self", y), Out("out", x)}).After("out", Floats{0.5, 0});
    trace.Synchronize(stream);
  });
  recorded.ForEachWay([](const ReplayReport& report, Mode, Streams) {
    EXPECT_EQ(report.differing, 0) << Explain(report);
    EXPECT_EQ(report.compared, 1);
    EXPECT_EQ(report.substituted, 1);
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_EQ(report.notes[0].rule, "LOWER-SUBSTITUTED");
    EXPECT_NE(report.notes[0].message.find("aclnnNoSuchOperator"), std::string::npos);
  });
}

TEST(AclRefusal, AnOperatorWithNeitherKernelNorResultsIsNamed) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({2});
    trace.Upload(x, Floats{1, 2});
    trace.Op("aclnnNoSuchOperator", stream, {In("self", x), Out("out", trace.Device({2}))});
  });
  const std::string text = recorded.ErrorOf(ErrorKind::kTrace);
  EXPECT_NE(text.find("aclnnNoSuchOperator cannot run on this device"), std::string::npos) << text;
  EXPECT_NE(text.find("--payload all"), std::string::npos) << text;
}

TEST(AclRefusal, FailedCallsAreNotIssuedAgain) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({2});
    trace.Upload(x, Floats{1, 2});
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", x), Scalar("other", 9)}, 161002);
    trace.Interface("aclrtSynchronizeStream", {Int("stream", 0)}, 0, 107000);
    trace.Download(x, Floats{1, 2});
  });
  recorded.ExpectEqual(1);
  EXPECT_EQ(recorded.Replay().acl.failed, 2);
}

TEST(AclRefusal, WorkThatFailedFailsAgainAndTheProgramGoesOn) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({2});
    const Tensor index = trace.Device({1}, storage::DType::kInt64);
    const Tensor out = trace.Device({1});
    trace.Upload(x, Floats{1, 2});
    trace.Upload(index, std::vector<int64_t>{7});  // out of range
    trace
        .Op("aclnnIndexSelect", stream,
            {In("self", x), Int("dim", 0), In("index", index), Out("out", out)})
        .After("out", Floats{1e9f});  // arbitrary old content
    trace.Interface("aclrtSynchronizeStream", {Int("stream", stream)}, stream, 507015);
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", x), Scalar("other", 2)})
        .After("selfRef", Floats{2, 4});
    trace.Synchronize(stream);
  });
  recorded.ForEachWay([](const ReplayReport& report, Mode, Streams) {
    EXPECT_EQ(report.differing, 0) << Explain(report);
    EXPECT_EQ(report.compared, 1);
    EXPECT_EQ(report.not_comparable, 1);
    EXPECT_GE(report.acl.task_errors, 1);
    EXPECT_EQ(report.acl.failed, 0);
  });
}

TEST(AclRefusal, HostFunctionsAndUnknownCallsAreCountedAndTold) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    trace.Interface("aclrtLaunchHostFunc",
                    {Int("stream", stream), Int("fn", 0x1234), Int("args", 0)}, stream);
    trace.Interface(
        "aclrtLaunchCallback",
        {Int("fn", 0x1234), Int("userData", 0), Int("blockType", 1), Int("stream", stream)},
        stream);
    trace.Interface("aclrtNobodyKnows", {Int("dst", 0)}, stream);
    trace.Interface("aclrtLaunchKernel", {Int("funcHandle", 0)}, stream);
    trace.Interface("aclrtGetDevice", {Int("deviceId", 0)});
  });
  const ReplayReport report = recorded.Replay();
  EXPECT_EQ(report.acl.host_functions, 2);
  EXPECT_EQ(report.acl.without_effect, 1);
  EXPECT_EQ(report.acl.unknown.at("aclrtNobodyKnows"), 1);
  EXPECT_EQ(report.acl.left_out.at("aclrtLaunchKernel"), 1);
  ASSERT_EQ(report.notes.size(), 3u);
  EXPECT_EQ(report.notes[0].rule, "ACL-UNKNOWN");
  EXPECT_NE(report.notes[0].message.find("aclrtNobodyKnows"), std::string::npos);
  EXPECT_EQ(report.notes[1].rule, "ACL-LEFT-OUT");
  EXPECT_NE(report.notes[1].message.find("the code of the kernel"), std::string::npos);
  EXPECT_EQ(report.notes[2].rule, "ACL-HOST-FUNCTION");
  EXPECT_EQ(report.notes[2].count, 2);
  EXPECT_EQ(report.notes[2].call_id, 2);
}

TEST(AclRefusal, WorkThatNothingReleasesIsNamedOnOneStream) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor cell = trace.Device({8}, storage::DType::kUint8);
    trace.Interface("aclrtMemset",
                    {Out("devPtr", cell), Int("maxCount", 8), Int("value", 0), Int("count", 8)});
    trace.Interface("aclrtValueWait",
                    {In("devAddr", cell), Int("value", 1), Int("flag", 1), Int("stream", stream)},
                    stream);
    trace.Synchronize(stream);
  });
  try {
    recorded.Replay(Mode::kEager, Streams::kFlat);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("waits for work of stream 1 that nothing"),
              std::string::npos)
        << error.what();
  }
}

TEST(AclRefusal, SynthesisedValuesAreNotForAclPrograms) {
  const AclRecorded recorded([](AclTraceBuilder& trace) { trace.NewStream(); });
  ReplayOptions options;
  options.data = Data::kSynthesised;
  storage::Reader reader(recorded.path());
  EXPECT_THROW(acl_level::Replay(reader, options, nullptr), Error);
}

}  // namespace
}  // namespace acltape::replayer
