// The advice how to record more names what the trace lacks, and no option that it had already.
#include "analyzer/calls/record_more.h"

#include <gtest/gtest.h>

#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Out;

struct Recording {
  const char* payload;
  bool on_device;
  bool device_level;
  const char* more;
  const char* inputs;
};

constexpr const char* kLedger = "see the ledger of `acltape info` for what the recording lacks";
const Recording kRecordings[] = {
    {"none", false, false, "record with --payload all",
     "record with --payload inputs or --payload all"},
    {"inputs", false, false, "record with --payload all", kLedger},
    {"all", false, false, kLedger, kLedger},
    {"none", true, false, "record with --level aten,acl --payload all",
     "record with --level aten,acl, and --payload inputs or --payload all"},
    {"inputs", true, false, "record with --level aten,acl --payload all",
     "record with --level aten,acl"},
    {"all", true, false, "record with --level aten,acl --payload all",
     "record with --level aten,acl"},
    {"inputs", true, true, "record with --payload all", kLedger},
    {"all", true, true, kLedger, kLedger},
};

TEST(RecordMore, NamesWhatTheTraceLacks) {
  for (const Recording& recording : kRecordings) {
    SCOPED_TRACE(recording.payload);
    test::TemporaryTrace file("record-more");
    test::AclTraceBuilder trace(file.path());
    const test::Tensor x = trace.NewTensor({4});
    trace.Call("aten::relu", {In("self", x)}, {Out("out", x)});
    if (recording.on_device) {
      storage::Buffer memory;
      memory.buffer_id = 1000;
      memory.device = 1;
      trace.writer().AddBuffer(memory);
    }
    // Copies and fills alone are calls of the device, too.
    if (recording.device_level) trace.Synchronize(trace.NewStream());
    trace.writer().SetMeta("payload", recording.payload);
    trace.Finish();
    const storage::Reader reader(file.path());
    EXPECT_EQ(HowToRecordMore(reader), recording.more);
    EXPECT_EQ(HowToRecordInputs(reader), recording.inputs);
  }
}

TEST(RecordMore, OfARedactedTraceNoRecordingBringsTheValuesBack) {
  test::TemporaryTrace file("record-more");
  test::TraceBuilder trace(file.path());
  trace.writer().SetMeta("payload", "all");
  trace.writer().SetMeta("redacted", "values");
  trace.Finish();
  const storage::Reader reader(file.path());
  const char* advice =
      "it was redacted: take the trace that it was made of, or replay with --data synthesised";
  EXPECT_EQ(HowToRecordMore(reader), advice);
  EXPECT_EQ(HowToRecordInputs(reader), advice);
}

}  // namespace
}  // namespace acltape::analyzer
