// The views over the fixture: query and expected rows on one screen.
#include <fmt/format.h>

#include <bit>

#include "storage/database.h"
#include "storage/query.h"
#include "storage/scalar_list.h"
#include "storage/schema.h"
#include "tests/storage/query_rows.h"
#include "tests/storage/rows_text.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

TEST_F(TraceTest, CallPutsTheInternedPartsTogether) {
  const Reader reader(Make());
  EXPECT_EQ(Rows(reader,
                 "SELECT call_id, parent_id, op, thread_id, step, phase, scope_id, "
                 "begin_ns - 1000000000000, end_ns - begin_ns, status, leaf FROM call "
                 "WHERE call_id IN (1, 2, 6)"),
            "1 - aten::linear 1 0 forward 1 0 1000 0 0\n"
            "2 1 aten::addmm 1 0 forward 1 100 800 0 1\n"
            "6 5 aten::addmm 1 1 backward 1 10100 800 0 1\n");
}

TEST_F(TraceTest, CallHasEveryColumnOfTheContract) {
  const Reader reader(Make());
  AllRows(reader,
          "SELECT call_id, parent_id, op_id, thread_id, stream_id, step, phase, scope_id, "
          "stack_id, begin_ns, end_ns, prepare_ns, launch_ns, status, model_id FROM call");
  AllRows(reader,
          "SELECT call_id, position, name, direction, kind, tensor_id, integer, real, text, list "
          "FROM argument");
  AllRows(reader,
          "SELECT tensor_id, buffer_id, byte_offset, dtype, shape, strides, format FROM tensor");
  AllRows(reader,
          "SELECT buffer_id, device, address, bytes, alloc_call, free_call, pool, role FROM "
          "buffer");
  AllRows(reader, "SELECT digest, bytes, codec, data FROM payload");
  AllRows(reader,
          "SELECT call_id, position, moment, tensor_id, digest, min, max, mean, l2, nan_count, "
          "inf_count FROM snapshot");
}

TEST_F(TraceTest, ArgumentExplodesSignatures) {
  const Reader reader(Make());
  EXPECT_EQ(Rows(reader,
                 "SELECT position, name, direction, kind, buffer_id, tensor_id = "
                 "(buffer_id << 24 | layout_id), integer, real, list, dtype, shape "
                 "FROM argument WHERE call_id IN (6, 7)"),
            "0 self in tensor 1 1 - - - float32 [4]\n"
            "1 mat1 in tensor 2 1 - - - float32 [2,4]\n"
            "2 mat2 in tensor 3 1 - - - float32 [2,4]\n"
            "3 beta in real - - - 0.5 - - -\n"
            "4 out out tensor 7 1 - - - float32 [2,4]\n"
            "0 self in tensor 7 1 - - - float32 [2,4]\n"
            "1 size in int_list - - - - [8] - -\n"
            "2 out out tensor 7 1 - - - float32 [8]\n");
}

// Scalars of the ACL level: what the program holds as the bits of a double is a number for SQL.
TEST_F(TraceTest, ArgumentGivesRealScalarsAsNumbersAndNotAsBits) {
  const auto bits = [](double value) { return std::bit_cast<int64_t>(value); };
  const auto scalar = [](int position, const char* dtype, int64_t integer, double real) {
    SignatureArgument argument;
    argument.position = position;
    argument.kind = ValueKind::kScalar;
    argument.text = dtype;
    argument.integer = integer;
    argument.real = real;
    return argument;
  };
  SignatureArgument list = scalar(4, "float64,int64,float32,float32", 0, 0);
  list.kind = ValueKind::kScalarList;
  list.integers = {bits(0.5), int64_t{1} << 62, bits(2), bits(-0.0)};
  {
    Writer writer(Path(), WriterOptions());
    Call call;
    call.call_id = 1;
    call.signature_id = writer.AddSignature(
        writer.InternOp({0, "aclnn", "aclnnAdd", "", ""}),
        {scalar(0, "float32", bits(1), 1), scalar(1, "int64", 7, 0), scalar(2, "bool", 1, 0),
         scalar(3, "float64", bits(std::nan("")), std::nan("")), list});
    writer.AddCall(call, 0);
    writer.Finish("complete");
  }
  const Reader reader(Path());
  EXPECT_EQ(Rows(reader, "SELECT position, text, integer, real, list FROM argument"),
            "0 float32 - 1 -\n"
            "1 int64 7 - -\n"
            "2 bool 1 - -\n"
            "3 float64 - - -\n"
            "4 float64,int64,float32,float32 - - [0.5,4611686018427387904,2.0,-0.0]\n");
  const auto read = reader.Arguments(reader.Calls(false).at(0));
  EXPECT_EQ(read.at(4).integers, list.integers);
  EXPECT_TRUE(std::isnan(read.at(3).real));
}

// Lists of recordings from before hold the bits themselves.
TEST(ScalarList, BitsOfAnOlderListAreReadAsTheNumbersTheyAre) {
  std::vector<int64_t> values;
  EXPECT_TRUE(ParseScalars("float64,int64", "[4602678819172646912,3]", values));
  EXPECT_EQ(values, std::vector<int64_t>({std::bit_cast<int64_t>(0.5), 3}));
  EXPECT_TRUE(ParseScalars("float32", "[null,9e999]", values));
  EXPECT_TRUE(std::isnan(std::bit_cast<double>(values.at(0))));
  EXPECT_EQ(std::bit_cast<double>(values.at(1)), std::numeric_limits<double>::infinity());
  EXPECT_FALSE(ParseScalars("int64", "[0.5]", values));
}

TEST_F(TraceTest, ArgumentGivesTensorListsAsTensorIds) {
  {
    Writer writer(Path(), WriterOptions());
    const int64_t layout = writer.InternLayout({0, DType::kBool, 0, {3}, {1}, 0});
    SignatureArgument list;
    list.name = "indices";
    list.position = 1;
    list.kind = ValueKind::kTensorList;
    list.tensors = {{0, layout}, {}, {1, layout}};
    Call call;
    call.call_id = 1;
    call.leaf = true;
    call.signature_id =
        writer.AddSignature(writer.InternOp({0, "aten", "aten::index", "Tensor", ""}), {list});
    call.buffers = {5, 6};
    writer.AddCall(call, 0);
    writer.Finish("complete");
  }
  const Reader reader(Path());
  EXPECT_EQ(Rows(reader, "SELECT list FROM argument"),
            fmt::format("[{},0,{}]\n", 5 << 24 | 1, 6 << 24 | 1));
  EXPECT_EQ(Rows(reader, "SELECT element, buffer_id FROM tensor_use"), "0 5\n2 6\n");
  // A mask as index has a shape that depends on its content.
  EXPECT_EQ(Rows(reader, "SELECT call_id, op, code FROM capture_breaks"),
            "1 aten::index.Tensor 107027\n");
}

TEST_F(TraceTest, BackwardWorkOfADeviceHasTheLineOfItsForwardLeaf) {
  {
    Writer writer(Path(), {});
    const auto signature = [&](const char* dialect, const char* name) {
      return writer.AddSignature(writer.InternOp({0, dialect, name, "", ""}), {});
    };
    const auto add = [&](int64_t id, int64_t parent, int64_t signature, bool leaf, int64_t stack,
                         int64_t forward) {
      Call call;
      call.call_id = id;
      call.parent_id = parent;
      call.signature_id = signature;
      call.leaf = leaf;
      writer.AddCall(call, 0, stack, forward);
    };
    writer.AddStack(7, {{"model.py", 17, "forward"}});
    add(1, 0, signature("aten", "aten::addmm"), true, 0, 0);
    add(2, 1, signature("aclnn", "aclnnAddmm"), true, 7, 0);
    add(3, 0, signature("autograd", "AddmmBackward0"), false, 0, 1);
    add(4, 3, signature("aten", "aten::mm"), true, 0, 0);
    add(5, 4, signature("aclnn", "aclnnMm"), true, 0, 0);
    writer.Finish("complete");
  }
  const Reader reader(Path());
  EXPECT_EQ(Rows(reader,
                 "SELECT call_id, op, aten_call, ifnull(backward_node, '-'), "
                 "ifnull(forward_call, '-'), file, line, function FROM device_call_origin"),
            "2 aclnnAddmm 1 - - model.py 17 forward\n"
            "5 aclnnMm 4 AddmmBackward0 1 model.py 17 forward\n");
}

TEST_F(TraceTest, TensorHasEachPairOnce) {
  const Reader reader(Make());
  EXPECT_EQ(Rows(reader, "SELECT buffer_id, dtype, shape FROM tensor ORDER BY tensor_id"),
            "1 float32 [4]\n2 float32 [2,4]\n3 float32 [2,4]\n4 float32 [2,4]\n4 float32 [8]\n"
            "7 float32 [2,4]\n7 float32 [8]\n");
}

TEST_F(TraceTest, TopOpsAddsUpLeavesOnly) {
  const Reader reader(Make());
  EXPECT_EQ(Rows(reader, "SELECT op, dialect, calls, total_ns, mean_ns, percent FROM top_ops"),
            "aten::addmm aten 2 1600 800 59.26\n"
            "aten::_local_scalar_dense aten 2 1000 500 37.04\n"
            "aten::view aten 2 100 50 3.7\n");
}

// Two streams of one device. Times count from kBase.
//   stream 1: call 2 (500 .. 900, launched until 600), call 3 (1000 .. 1600, launched until 800)
//   stream 2: call 4 (1100 .. 1300, launched until 1050), call 5 (2500 .. 2600, begun at 2400)
class DeviceViewsTest : public TraceTest {
 protected:
  std::string MakeTimed() {
    Writer writer(Path(), WriterOptions());
    const auto signature = [&](const char* dialect, const char* name) {
      return writer.AddSignature(writer.InternOp({0, dialect, name, "", ""}), {});
    };
    const auto add = [&](int64_t id, int64_t parent, int64_t signature, int64_t begin,
                         int64_t end) {
      Call call;
      call.call_id = id;
      call.parent_id = parent;
      call.signature_id = signature;
      call.thread_id = 1;
      call.begin_ns = kBase + begin;
      call.end_ns = kBase + end;
      call.leaf = true;
      writer.AddCall(call, 0, id == 5 ? 1 : 0);
    };
    const int64_t add_op = signature("aclnn", "aclnnAdd");
    writer.AddStack(1, {{"model.py", 17, "forward"}});
    add(1, 0, signature("aten", "aten::linear"), 300, 850);
    add(2, 1, signature("aclnn", "aclnnMm"), 400, 600);
    add(3, 1, add_op, 700, 800);
    add(4, 0, add_op, 1000, 1050);
    add(5, 0, add_op, 2400, 2450);
    for (const int64_t id : {1, 2}) {
      Handle stream;
      stream.id = id;
      stream.process_id = 1;
      writer.AddStream(stream);
    }
    writer.AddDeviceSpan({2, 1, kBase + 500, kBase + 900, 10});
    writer.AddDeviceSpan({3, 1, kBase + 1000, kBase + 1600, 10});
    writer.AddDeviceSpan({4, 2, kBase + 1100, kBase + 1300, 10});
    writer.AddDeviceSpan({5, 2, kBase + 2500, kBase + 2600, 10});
    writer.Finish("complete");
    return Path();
  }
};

TEST_F(DeviceViewsTest, ALeafHasTheTimeOfWhatItLaunched) {
  const Reader reader(MakeTimed());
  EXPECT_EQ(
      Rows(reader, "SELECT call_id, tasks, device_ns, exact FROM device_time ORDER BY call_id"),
      "1 2 1000 0\n2 1 400 0\n3 1 600 1\n4 1 200 1\n5 1 100 1\n");
  EXPECT_EQ(
      Rows(reader, "SELECT op, device_ns, device_mean_ns, device_percent FROM top_ops ORDER BY op"),
      "aclnnAdd 900 300 69.23\naclnnMm 400 400 30.77\naten::linear 1000 1000 100\n");
}

TEST_F(DeviceViewsTest, WorkOfSeveralStreamsCountsOnceForTheDevice) {
  const Reader reader(MakeTimed());
  EXPECT_EQ(Rows(reader,
                 "SELECT stream_id, tasks, busy_ns, idle_ns, idle_percent, longest_idle_ns, "
                 "launch_ns FROM device_use"),
            "- 4 1100 1000 47.62 900 100\n"
            "1 2 1000 100 9.09 100 100\n"
            "2 2 300 1200 80 1200 0\n");
}

TEST_F(DeviceViewsTest, GapsSayWhoWasLateAndWhere) {
  const Reader reader(MakeTimed());
  EXPECT_EQ(Rows(reader, std::string(FindNamedQuery("device_gaps")->sql)),
            "900 0 1000000001600 5 aclnnAdd 2 - the host was late model.py:17\n"
            "100 0 1000000000900 3 aclnnAdd 1 - the work waited on the device -\n");
}

TEST_F(TraceTest, WithoutDeviceTimesTheColumnsAreEmpty) {
  const Reader reader(Make());
  EXPECT_EQ(
      Rows(reader, "SELECT op, device_ns, device_mean_ns, device_percent FROM top_ops LIMIT 1"),
      "aten::addmm - - -\n");
  for (const char* name : {"device_idle", "device_gaps", "top_device_ops"}) {
    EXPECT_EQ(Rows(reader, std::string(FindNamedQuery(name)->sql)), "") << name;
  }
}

TEST_F(TraceTest, HostGapsAreBetweenLeavesOfAThreadLongestFirst) {
  const Reader reader(Make());
  EXPECT_EQ(Rows(reader,
                 "SELECT gap_ns, after_call, before_call, after_op, before_op, step FROM "
                 "host_gaps LIMIT 2"),
            "7600 4 6 aten::_local_scalar_dense aten::addmm 0\n"
            "600 2 3 aten::addmm aten::view 0\n");
}

TEST_F(TraceTest, CaptureBreaksNamesHostReads) {
  const Reader reader(Make());
  EXPECT_EQ(Rows(reader, "SELECT call_id, step, op, code FROM capture_breaks"),
            "4 0 aten::_local_scalar_dense 107027\n8 1 aten::_local_scalar_dense 107027\n");
}

// Buffers of the host have device 0. copy_ writes its first argument, and _to_copy a result.
TEST_F(TraceTest, CaptureBreaksNamesEveryOperatorThatCopiesBetweenDevices) {
  {
    Writer writer(Path(), WriterOptions());
    const int64_t layout = writer.InternLayout({0, DType::kFloat32, 0, {3}, {1}, 0});
    const auto add = [&](int64_t id, const char* name, std::vector<SignatureArgument> arguments) {
      Call call;
      call.call_id = id;
      call.leaf = true;
      call.signature_id =
          writer.AddSignature(writer.InternOp({0, "aten", name, "", ""}), arguments);
      call.buffers = {5, 6};
      writer.AddCall(call, 0);
    };
    writer.AddBuffer({5, 0x1000, 12, 0, 0, false, 0, 0, 0});
    writer.AddBuffer({6, 0x2000, 12, 0, 0, false, 1, 0, 0});
    add(1, "aten::copy_",
        {Tensor(0, "self", Direction::kOut, 1, layout),
         Tensor(1, "src", Direction::kIn, 0, layout)});
    add(2, "aten::_to_copy",
        {Tensor(0, "self", Direction::kIn, 0, layout),
         Tensor(7, "out", Direction::kOut, 1, layout)});
    add(3, "aten::clone",
        {Tensor(0, "self", Direction::kIn, 0, layout),
         Tensor(2, "out", Direction::kOut, 1, layout)});
    writer.Finish("complete");
  }
  const Reader reader(Path());
  EXPECT_EQ(Rows(reader, "SELECT call_id, op, code, reason FROM capture_breaks ORDER BY call_id"),
            "1 aten::copy_ 107030 copy between device 0 and device 1\n"
            "2 aten::_to_copy 107030 copy between device 0 and device 1\n");
}

// A trace with a leaf on the host (call 1), two on device 0 (2 and 3, an operator of the ACL level
// by its stream) and one on a device that the recorder does not know (4); a block of device memory
// with a tensor in it, and a tensor of the host.
class DeviceTrace : public TraceTest {
 protected:
  std::string Write() {
    Writer writer(Path(), WriterOptions());
    writer.AddProcess(1, 1, "");
    const int64_t item =
        writer.AddSignature(writer.InternOp({0, "aten", "aten::_local_scalar_dense", "", ""}), {});
    const int64_t add = writer.AddSignature(writer.InternOp({0, "aclnn", "aclnnAdd", "", ""}), {});
    writer.InternLayout({0, DType::kFloat32, 0, {4}, {1}, 0, "", "cuda:0"});
    Handle stream;
    stream.id = 9;
    writer.AddStream(stream);
    const auto leaf = [&](int64_t id, int64_t signature, int device) {
      Call call;
      call.call_id = id;
      call.signature_id = signature;
      call.thread_id = 1;
      call.begin_ns = call.end_ns = kBase + id;
      call.leaf = true;
      call.device = device;
      call.stream_id = signature == add ? 9 : 0;
      writer.AddCall(call, 0);
    };
    leaf(1, item, 0);
    leaf(2, item, 1);
    leaf(3, add, Call::kDeviceNotKnown);
    leaf(4, item, Call::kDeviceNotKnown);
    writer.AddBuffer({5, 0x1000, 64, 0, 0, false, 1, kBase, 0, BufferLayer::kBlock});
    writer.AddBuffer({6, 0x1000, 48, 0, 0, false, 1, kBase, 0, BufferLayer::kTensor, 5});
    writer.AddBuffer({7, 0x9000, 16, 0, 0, false, 0, kBase, 0, BufferLayer::kTensor});
    writer.Finish("complete");
    return Path();
  }
};

TEST_F(DeviceTrace, EachLeafHasTheDeviceThatItRanOn) {
  const Reader reader(Write());
  EXPECT_EQ(Rows(reader, "SELECT call_id, ifnull(device, 'not known') FROM call"),
            "1 0\n2 1\n3 1\n4 not known\n");
  std::vector<int> devices;
  for (const Call& call : reader.Calls(true)) devices.push_back(call.device);
  EXPECT_EQ(devices, (std::vector<int>{0, 1, 1, Call::kDeviceNotKnown}));
  EXPECT_EQ(reader.GetLayout(1).memory, "cuda:0");
}

TEST_F(DeviceTrace, WorkOfTheHostBesideADeviceBreaksNoCapture) {
  const Reader reader(Write());
  EXPECT_EQ(Rows(reader, "SELECT call_id FROM capture_breaks ORDER BY call_id"), "2\n4\n");
}

TEST_F(DeviceTrace, ATensorLiesInABlockAndCountsOnce) {
  const Reader reader(Write());
  EXPECT_EQ(Rows(reader, "SELECT buffer_id, layer, ifnull(block, '-') FROM buffer"),
            "5 block -\n6 tensor 5\n7 tensor -\n");
  EXPECT_EQ(Rows(reader, "SELECT device, sum(bytes) FROM buffer WHERE block IS NULL GROUP BY 1"),
            "0 16\n1 64\n");
  EXPECT_EQ(reader.GetBuffer(6).block_id, 5);
}

TEST_F(DeviceTrace, WhatAnOlderTraceLacksIsNotKnown) {
  {
    Write();
    Database database(Path(), SQLITE_OPEN_READWRITE);
    for (const ViewText& view : ViewTexts()) database.Execute(("DROP VIEW " + view.name).c_str());
    database.Execute(
        "ALTER TABLE buffer_row DROP COLUMN block; ALTER TABLE layout DROP COLUMN memory; "
        "UPDATE buffer_row SET flags = flags & ~6; UPDATE call_row SET bits = bits & 7; "
        "PRAGMA user_version = 6");
  }
  const Reader reader(Path());
  EXPECT_EQ(Rows(reader, "SELECT count(*) FROM buffer WHERE layer IS NULL AND block IS NULL"),
            "3\n");
  EXPECT_EQ(Rows(reader, "SELECT call_id, ifnull(device, 'not known') FROM call"),
            "1 not known\n2 not known\n3 1\n4 not known\n");
  EXPECT_EQ(reader.GetLayout(1).memory, "");
}

TEST_F(TraceTest, TensorFlowFollowsABuffer) {
  const Reader reader(Make());
  EXPECT_EQ(Rows(reader,
                 "SELECT call_id, op, position, part, written_by FROM tensor_flow "
                 "WHERE buffer_id = 7 ORDER BY call_id, position"),
            "6 aten::addmm 4 producer -\n"
            "7 aten::view 0 consumer 6\n"
            "7 aten::view 2 view 6\n"
            "8 aten::_local_scalar_dense 0 consumer 6\n");
}

TEST_F(TraceTest, StepSummaryCountsCallsOfAStep) {
  const Reader reader(Make());
  EXPECT_EQ(Rows(reader,
                 "SELECT step, first_call, last_call, calls, leaves, wall_ns, leaf_ns, "
                 "backward_leaves, breaks FROM step_summary"),
            "0 1 4 4 3 2500 1350 0 1\n1 5 8 4 3 2500 1350 1 1\n");
}

TEST_F(TraceTest, BufferGivesAbsoluteTimes) {
  const Reader reader(Make());
  EXPECT_EQ(Rows(reader,
                 "SELECT buffer_id, bytes, alloc_call, is_foreign, alloc_ns, free_ns "
                 "FROM buffer WHERE buffer_id IN (2, 4)"),
            "2 32 - 1 999999999600 -\n4 32 2 0 1000000000100 1000000005000\n");
}

}  // namespace
}  // namespace acltape::storage
