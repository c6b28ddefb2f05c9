// Reader gives back everything that Writer wrote.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <fstream>

#include "storage/database.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

TEST_F(TraceTest, CallsComeBackAsWritten) {
  const Reader reader(Make());
  const auto calls = reader.Calls(false);
  ASSERT_EQ(calls.size(), 8u);
  EXPECT_EQ(reader.Calls(true).size(), 6u);
  EXPECT_EQ(reader.CallCount(true), 6);
  const Call& call = calls[5];
  EXPECT_EQ(call.call_id, 6);
  EXPECT_EQ(call.parent_id, 5);
  EXPECT_EQ(call.begin_ns, kBase + 10100);
  EXPECT_EQ(call.end_ns, kBase + 10900);
  EXPECT_EQ(call.phase, Phase::kBackward);
  EXPECT_TRUE(call.leaf);
  EXPECT_EQ(call.buffers, std::vector<int64_t>({1, 2, 3, 7}));
  EXPECT_EQ(call.signature_id, calls[1].signature_id);
  EXPECT_EQ(call.scope_id, 1);
  EXPECT_EQ(reader.GetOp(call.op_id).FullName(), "aten::addmm");
}

TEST_F(TraceTest, ArgumentsAreFilledWithTheBuffersOfTheCall) {
  const Reader reader(Make());
  const auto calls = reader.Calls(false);
  for (const int64_t index : {1, 5}) {
    const auto arguments = reader.Arguments(calls[static_cast<size_t>(index)]);
    ASSERT_EQ(arguments.size(), 5u);
    EXPECT_EQ(arguments[0].name, "self");
    EXPECT_EQ(arguments[3].real, 0.5);
    EXPECT_EQ(arguments[4].direction, Direction::kOut);
    EXPECT_EQ(arguments[4].tensors[0].buffer_id, index == 1 ? 4 : 7);
    const Layout& layout = reader.GetLayout(arguments[4].tensors[0].layout_id);
    EXPECT_EQ(layout.shape, std::vector<int64_t>({2, 4}));
    EXPECT_EQ(layout.strides, std::vector<int64_t>({4, 1}));
  }
}

// Every kind of value, the odd ones too.
TEST_F(TraceTest, ArgumentsOfEveryKindComeBack) {
  std::vector<SignatureArgument> written;
  const auto add = [&written](ValueKind kind) -> SignatureArgument& {
    SignatureArgument& argument = written.emplace_back();
    argument.position = static_cast<int>(written.size()) - 1;
    argument.name = "a" + std::to_string(argument.position);
    argument.kind = kind;
    return argument;
  };
  add(ValueKind::kNone);
  add(ValueKind::kTensor).tensors = {SlotRef()};  // undefined
  add(ValueKind::kTensorList).tensors = {{1, 1}, {}, {0, 1}};
  add(ValueKind::kTensorList);  // empty
  add(ValueKind::kInt).integer = INT64_MIN;
  add(ValueKind::kReal).real = std::numeric_limits<double>::infinity();
  add(ValueKind::kReal).real = std::nan("");
  add(ValueKind::kReal).real = -0.0;
  add(ValueKind::kBool).integer = 1;
  add(ValueKind::kText).text = std::string("sum\0\xff", 5);
  add(ValueKind::kIntList).integers = {-1, 2};
  add(ValueKind::kIntList);  // empty
  add(ValueKind::kRealList).reals = {0.1, -std::numeric_limits<double>::infinity()};
  add(ValueKind::kBoolList).integers = {1, 0};
  add(ValueKind::kDtype).integer = static_cast<int64_t>(DType::kBfloat16);
  add(ValueKind::kDevice).text = "npu:0";
  add(ValueKind::kMemoryFormat).integer = 2;
  add(ValueKind::kLayout).integer = 0;
  add(ValueKind::kComplex).reals = {1, -2};
  add(ValueKind::kOther).text = "Generator";
  SignatureArgument& scalar = add(ValueKind::kScalar);
  scalar.text = "float16";
  scalar.real = -0.0;
  scalar.integer = std::bit_cast<int64_t>(-0.0);
  SignatureArgument& whole = add(ValueKind::kScalar);
  whole.text = "int64";
  whole.integer = -7;
  SignatureArgument& complex = add(ValueKind::kScalar);
  complex.text = "complex64";
  complex.reals = {0.5, -1};
  SignatureArgument& scalars = add(ValueKind::kScalarList);
  scalars.text = "int32,bool";
  scalars.integers = {3, 1};
  {
    Writer writer(Path(), WriterOptions());
    writer.InternLayout({0, DType::kInt8, 0, {}, {}, 0, ""});
    Call call;
    call.call_id = 1;
    call.signature_id = writer.AddSignature(writer.InternOp({0, "aten", "x", "", ""}), written);
    call.buffers = {11, 12};
    call.status = 1;
    writer.AddCall(call, 0);
    writer.Finish("complete");
  }
  const Reader reader(Path());
  const auto calls = reader.Calls(false);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].status, 1);
  const auto read = reader.Arguments(calls[0]);
  ASSERT_EQ(read.size(), written.size());
  for (size_t i = 0; i < read.size(); ++i) {
    SCOPED_TRACE(written[i].name + " " + std::string(ValueKindName(written[i].kind)));
    EXPECT_EQ(read[i].kind, written[i].kind);
    EXPECT_EQ(read[i].name, written[i].name);
    EXPECT_EQ(read[i].integer, written[i].integer);
    EXPECT_TRUE(read[i].real == written[i].real ||
                (std::isnan(read[i].real) && std::isnan(written[i].real)));
    EXPECT_EQ(std::signbit(read[i].real), std::signbit(written[i].real));
    if (written[i].kind != ValueKind::kDtype) {
      EXPECT_EQ(read[i].text, written[i].text);
    }
    EXPECT_EQ(read[i].integers, written[i].integers);
    EXPECT_EQ(read[i].reals, written[i].reals);
    EXPECT_EQ(read[i].tensors.size(), written[i].tensors.size());
  }
  EXPECT_FALSE(read[1].tensors[0].defined());
  EXPECT_EQ(read[2].tensors[0].buffer_id, 12);
  EXPECT_FALSE(read[2].tensors[1].defined());
  EXPECT_EQ(read[2].tensors[2].buffer_id, 11);
}

TEST_F(TraceTest, WhatOnlyCallsOfTheAclInterfaceHaveComesBack) {
  {
    Writer writer(Path(), WriterOptions());
    Layout layout{0, DType::kUint16, 64, {2, 3}, {3, 1}, 0, "FRACTAL_NZ"};
    EXPECT_EQ(writer.InternLayout(layout), 1);
    layout.format.clear();
    EXPECT_EQ(writer.InternLayout(layout), 2);
    Call call;
    call.call_id = 3;
    call.signature_id = writer.AddSignature(writer.InternOp({0, "aclnn", "aclnnAdd", "", ""}), {});
    call.stream_id = 5;
    call.model_id = 6;
    call.prepare_ns = 700;
    call.launch_ns = 800;
    writer.AddCall(call, 0);
    call.call_id = 4;
    call.stream_id = call.model_id = call.prepare_ns = call.launch_ns = 0;
    call.status = 107027;
    writer.AddCall(call, 0);
    writer.AddStream({5, 1, 0x1000, 2, 3, "", 1, 0, 4});
    writer.AddEvent({8, 1, 0x2000, 0, 9, "", 2, 0, 0});
    writer.AddModel({6, 1, 0x3000, 0, 0, "relaxed", 2, 0, 0});
    writer.AddModel({6, 1, 0x3000, 0, 0, "relaxed", 2, 3, 4});  // replaces the row
    writer.Finish("complete");
  }
  const Reader reader(Path());
  EXPECT_EQ(reader.GetLayout(1).format, "FRACTAL_NZ");
  EXPECT_EQ(reader.GetLayout(1).EndByte(), 64 + 12);
  EXPECT_EQ(reader.GetLayout(2).format, "");
  const auto calls = reader.Calls(false);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].stream_id, 5);
  EXPECT_EQ(calls[0].model_id, 6);
  EXPECT_EQ(calls[0].prepare_ns, 700);
  EXPECT_EQ(calls[0].launch_ns, 800);
  EXPECT_EQ(calls[0].status, 0);
  EXPECT_EQ(calls[1].stream_id, 0);
  EXPECT_EQ(calls[1].status, 107027);
  const auto streams = reader.Streams();
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].id, 5);
  EXPECT_EQ(streams[0].handle, 0x1000);
  EXPECT_EQ(streams[0].device, 2);
  EXPECT_EQ(streams[0].flags, 3);
  EXPECT_EQ(streams[0].destroy_call, 4);
  const auto events = reader.Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].flags, 9);
  EXPECT_EQ(events[0].create_call, 2);
  const auto models = reader.Models();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].mode, "relaxed");
  EXPECT_EQ(models[0].end_call, 3);
  EXPECT_EQ(models[0].destroy_call, 4);
}

TEST_F(TraceTest, BuffersComeBackAndUnknownOnesAreEmpty) {
  const Reader reader(Make());
  const Buffer& buffer = reader.GetBuffer(4);
  EXPECT_EQ(buffer.bytes, 32);
  EXPECT_EQ(buffer.alloc_call, 2);
  EXPECT_EQ(buffer.alloc_ns, kBase + 100);
  EXPECT_EQ(buffer.free_ns, kBase + 5000);
  EXPECT_TRUE(reader.GetBuffer(2).foreign);
  EXPECT_EQ(reader.GetBuffer(2).free_ns, 0);
  EXPECT_FALSE(reader.HasBuffer(99));
  EXPECT_EQ(reader.GetBuffer(99).buffer_id, 99);
  EXPECT_EQ(reader.GetBuffer(99).bytes, 0);
}

TEST_F(TraceTest, StepsSnapshotsLedgerAndMetaComeBack) {
  const Reader reader(Make());
  const auto steps = reader.Steps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].first_call, 5);
  EXPECT_EQ(steps[1].found_by, "range:step");
  const auto snapshots = reader.Snapshots();
  ASSERT_EQ(snapshots.size(), 2u);
  EXPECT_FALSE(snapshots[0].after);  // before comes before after
  EXPECT_TRUE(snapshots[0].has_payload);
  EXPECT_EQ(snapshots[0].tensor.buffer_id, 1);
  EXPECT_TRUE(snapshots[1].after);
  EXPECT_FALSE(snapshots[1].has_payload);
  EXPECT_EQ(snapshots[1].position, 4);
  const auto ledger = reader.Ledger();
  ASSERT_EQ(ledger.size(), 1u);
  EXPECT_EQ(ledger[0].severity, Severity::kNotice);
  EXPECT_EQ(ledger[0].count, 3);
  EXPECT_EQ(reader.State(), "complete");
  EXPECT_EQ(reader.Meta("command"), R"(["python3","model.py"])");
  EXPECT_EQ(reader.Meta("nothing", "else"), "else");
}

TEST_F(TraceTest, LedgerRowsOfOneKindAndSubjectAddUp) {
  {
    Writer writer(Path(), WriterOptions());
    writer.AddLedger({"kind", Severity::kInfo, 2, "subject", "", ""});
    writer.AddLedger({"kind", Severity::kInfo, 3, "subject", "", ""});
    writer.AddLedger({"kind", Severity::kInfo, 1, "other", "", ""});
    writer.Finish("complete");
  }
  const auto ledger = Reader(Path()).Ledger();
  ASSERT_EQ(ledger.size(), 2u);
  EXPECT_EQ(ledger[1].count, 5);
}

TEST_F(TraceTest, ManyRowsInSeveralTransactionsAllArrive) {
  auto options = WriterOptions();
  options.commit_rows = 100;
  {
    Writer writer(Path(), options);
    const int64_t signature = writer.AddSignature(writer.InternOp({0, "aten", "x", "", ""}), {});
    for (int64_t id = 1000; id >= 1; --id) {  // not in order either
      Call call;
      call.call_id = id;
      call.signature_id = signature;
      call.begin_ns = kBase + id;
      call.end_ns = kBase + id + 1;
      writer.AddCall(call, 0);
      writer.AddBuffer({id, id, id, 0, 0, false, 0, 0, 0});
    }
    writer.Finish("complete");
  }
  const Reader reader(Path());
  const auto calls = reader.Calls(false);
  ASSERT_EQ(calls.size(), 1000u);
  for (int64_t id = 1; id <= 1000; ++id) {
    ASSERT_EQ(calls[static_cast<size_t>(id - 1)].call_id, id);
    ASSERT_EQ(reader.GetBuffer(id).bytes, id);
  }
}

TEST_F(TraceTest, ABufferWrittenTwiceKeepsTheLaterRow) {
  {
    Writer writer(Path(), WriterOptions());
    writer.AddBuffer({1, 64, 32, 0, 0, false, 0, kBase, 0});
    writer.AddBuffer({1, 64, 32, 0, 9, false, 0, kBase, kBase + 7});
    writer.Finish("complete");
  }
  EXPECT_EQ(Reader(Path()).GetBuffer(1).free_call, 9);
}

TEST_F(TraceTest, AWriterThatIsNotFinishedLeavesAPartialTrace) {
  {
    Writer writer(Path(), WriterOptions());
    Fill(writer);
  }
  const Reader reader(Path());
  EXPECT_EQ(reader.State(), "partial");
  EXPECT_EQ(reader.Calls(false).size(), 8u);
}

TEST_F(TraceTest, AReaderSeesWhatIsCommittedWhileTheTraceIsWritten) {
  Writer writer(Path(), WriterOptions());
  Fill(writer);
  writer.Commit();
  {
    const Reader reader(Path());
    EXPECT_EQ(reader.State(), "recording");  // the writer lives in this process
    EXPECT_EQ(reader.Calls(false).size(), 8u);
  }
  writer.Finish("complete");
  EXPECT_EQ(Reader(Path()).State(), "complete");
}

TEST_F(TraceTest, TheStateRecordingIsNotBelievedOnceTheCollectorIsGone) {
  Make();
  Database database(Path(), SQLITE_OPEN_READWRITE);
  database.Execute("UPDATE meta SET value = 'recording' WHERE key = 'state'");
  EXPECT_EQ(Reader(Path()).State(), "recording");  // this process
  // The pid exists but began at another time: another process.
  database.Execute("UPDATE meta SET value = '1' WHERE key = 'collector_start'");
  EXPECT_EQ(Reader(Path()).State(), "partial");
}

TEST_F(TraceTest, DiscardLeavesNothing) {
  Writer writer(Path(), WriterOptions());
  Fill(writer);
  writer.Discard();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(TraceTest, AnExistingFileIsNotOverwrittenUnlessTold) {
  std::ofstream(Path()) << "precious";
  auto options = WriterOptions();
  const auto [kind, sentence] = ErrorOf([&] { Writer writer(Path(), options); });
  EXPECT_EQ(kind, 2);
  EXPECT_EQ(sentence, "'" + Path() + "' exists already; use --force to overwrite it");
  EXPECT_EQ(std::filesystem::file_size(Path()), 8u);
  options.overwrite = true;
  Writer(Path(), options).Finish("complete");
  EXPECT_EQ(Reader(Path()).State(), "complete");
}

TEST_F(TraceTest, AFolderIsNotOverwritten) {
  auto options = WriterOptions();
  options.overwrite = true;
  const auto [kind, sentence] = ErrorOf([&] { Writer writer(folder_, options); });
  EXPECT_EQ(kind, 2);
  EXPECT_EQ(sentence, "'" + folder_ + "' is a folder; name a file");
}

TEST_F(TraceTest, FinishAfterFailureDropsOnlyTheOpenTransaction) {
  Writer writer(Path(), WriterOptions());
  Fill(writer);
  writer.Commit();
  writer.AddStep({7, 1, 8, "lost"});
  writer.FinishAfterFailure({"recording_stopped", Severity::kDataLoss, 1, "trace", "why", "how"});
  const Reader reader(Path());
  EXPECT_EQ(reader.State(), "partial");
  EXPECT_EQ(reader.Steps().size(), 2u);
  EXPECT_EQ(reader.Ledger().size(), 2u);
}

}  // namespace
}  // namespace acltape::storage
