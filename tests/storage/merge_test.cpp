// Traces of single ranks that become one, and back.
#include "storage/merge.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "storage/signature_rows.h"
#include "storage/split.h"
#include "tests/storage/rows_text.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

SignatureArgument Int(int position, const char* name, int64_t value) {
  SignatureArgument argument;
  argument.position = position;
  argument.name = name;
  argument.kind = ValueKind::kInt;
  argument.integer = value;
  return argument;
}

// The recording of a rank: three calls, 1000 ns apart.
//   acl::record(stream, event)     in the range "step"
//   aclnnCat(buffers 1 and 2)      with a value of the rank, or of both
//   HcclAllReduce(buffer 2, communicator)
struct Rank {
  int64_t process = 1;
  int64_t pid = 100;
  int64_t rank = 0;
  int64_t begin_ns = 0;     // the begin of its first call
  int64_t first_id = 1;     // the first call, and all else that is counted
  int64_t id_stride = 1;    // between the calls: another rank has those between
  std::string value = "v";  // content of buffer 1
};

class MergeTest : public TraceTest {
 protected:
  static void AddRank(Writer& writer, const Rank& rank) {
    const int64_t id = rank.first_id;
    writer.AddProcess(rank.process, rank.pid, "python3", rank.rank);
    writer.AddThread(id, rank.process, rank.pid, "main");
    writer.AddStream({.id = id, .process_id = rank.process, .handle = 7000 + rank.rank});
    writer.AddEvent({.id = id, .process_id = rank.process, .handle = 8000 + rank.rank});
    writer.AddCommunicator({id, rank.process, 9000 + rank.rank, "world", rank.rank, 2});
    const int64_t record = writer.InternOp({0, "aclrt", "aclrtRecordEvent", "",
                                            "aclrtRecordEvent(aclrtEvent event, aclrtStream "
                                            "stream)"});
    const int64_t cat = writer.InternOp({0, "aclnn", "aclnnCat", "", "aclnnCat(...)"});
    const int64_t reduce = writer.InternOp({0, "hccl", "HcclAllReduce", "",
                                            "HcclAllReduce(void*(inout!) sendBuf, uint64_t count, "
                                            "HcclComm comm)"});
    const int64_t vector = writer.InternLayout({0, DType::kFloat32, 0, {1}, {1}, 0});
    const int64_t of_record =
        writer.AddSignature(record, {Int(0, "event", id), Int(1, "stream", id)});
    SignatureArgument list;
    list.name = "tensors";
    list.kind = ValueKind::kTensorList;
    list.tensors = {{0, vector}, {1, vector}};
    const int64_t of_cat = writer.AddSignature(cat, {list});
    const int64_t of_reduce =
        writer.AddSignature(reduce, {Tensor(0, "sendBuf", Direction::kInOut, 0, vector),
                                     Int(1, "count", id), Int(2, "comm", id)});
    const int64_t scope = writer.InternScope(0, "user", "step");
    writer.AddStack(id, {{"train.py", 7, "main"}});
    const int64_t signatures[] = {of_record, of_cat, of_reduce};
    const std::vector<int64_t> buffers[] = {{}, {2 * id - 1, 2 * id}, {2 * id}};
    for (int64_t i = 0; i < 3; ++i) {
      Call call;
      call.call_id = id + rank.id_stride * i;
      call.parent_id = i == 2 ? id : 0;
      call.signature_id = signatures[i];
      call.thread_id = id;
      call.begin_ns = kBase + rank.begin_ns + 1000 * i;
      call.end_ns = call.begin_ns + 100;
      call.leaf = i == 1;
      call.stream_id = id;
      call.buffers = buffers[i];
      writer.AddCall(call, scope, id);
    }
    const int64_t last = id + 2 * rank.id_stride;
    writer.AddScopeRange(scope, id, id, last, kBase + rank.begin_ns, kBase + rank.begin_ns + 3000);
    writer.AddStep({rank.rank, id, last, "range:step"});
    writer.AddDeviceSpan({last, id, kBase + rank.begin_ns + 2050, kBase + rank.begin_ns + 2090, 5});
    writer.AddBuffer({2 * id - 1, 0x1000, 4, id, last, false, 1, kBase + rank.begin_ns, 0});
    writer.AddBuffer({2 * id, 0x2000, 4, id, 0, false, 1, kBase + rank.begin_ns, 0});
    const std::string digest = DigestOf(rank.value.data(), rank.value.size());
    writer.AddPayload(digest, rank.value.data(), rank.value.size());
    Snapshot snapshot;
    snapshot.call_id = id + rank.id_stride;
    snapshot.tensor = {2 * id - 1, vector};
    snapshot.digest = digest;
    snapshot.bytes = static_cast<int64_t>(rank.value.size());
    writer.AddSnapshot(snapshot, std::nullopt);
    writer.AddLedger({"recorder_stall", Severity::kNotice, 3, "all", "cause", "remedy"});
  }

  std::string MakeRank(const std::string& name, const Rank& rank, int64_t base = kBase) const {
    Writer::Options options;
    options.base_ns = base;
    Writer writer(Path(name), options);
    writer.SetMeta("collector_pid", std::to_string(rank.pid + 1));
    AddRank(writer, rank);
    writer.Finish("complete");
    return Path(name);
  }

  // Merges the traces, each with a shift of its clock.
  std::unique_ptr<Reader> MergeAll(const std::vector<std::string>& paths,
                                   const std::vector<int64_t>& shifts, MergeOptions options = {}) {
    std::vector<std::unique_ptr<Reader>> traces;
    std::vector<MergeSource> sources;
    for (size_t i = 0; i < paths.size(); ++i) {
      traces.push_back(std::make_unique<Reader>(paths[i]));
      sources.push_back({traces.back().get(), shifts[i], 0, "by the test"});
    }
    options.output = Path("all.db");
    options.overwrite = true;
    Merge(sources, options);
    return std::make_unique<Reader>(Path("all.db"));
  }

  // Two ranks; the calls of the second one are 500 ns later on its clock.
  std::unique_ptr<Reader> MergeTwo(int64_t shift_ns, const MergeOptions& options = {}) {
    MakeRank("a.db", {.pid = 100, .rank = 0});
    MakeRank("b.db", {.pid = 200, .rank = 1, .begin_ns = 500}, kBase + 200);
    return MergeAll({Path("a.db"), Path("b.db")}, {0, shift_ns}, options);
  }
};

TEST_F(MergeTest, CallsAreNumberedByWhenTheyBegan) {
  const std::unique_ptr<Reader> all = MergeTwo(0);
  EXPECT_EQ(Rows(*all,
                 "SELECT c.call_id, c.op, p.rank, c.begin_ns - 1000000000000, c.parent_id, c.leaf "
                 "FROM call c JOIN thread USING (thread_id) JOIN process p USING (process_id) "
                 "ORDER BY 1"),
            "1 aclrtRecordEvent 0 0 - 0\n"
            "2 aclrtRecordEvent 1 500 - 0\n"
            "3 aclnnCat 0 1000 - 1\n"
            "4 aclnnCat 1 1500 - 1\n"
            "5 HcclAllReduce 0 2000 1 0\n"
            "6 HcclAllReduce 1 2500 2 0\n");
}

TEST_F(MergeTest, AShiftOfTheClockMovesAllTimesOfATrace) {
  const std::unique_ptr<Reader> all = MergeTwo(-2100);
  EXPECT_EQ(Rows(*all,
                 "SELECT c.call_id, p.rank, c.begin_ns - 1000000000000 FROM call c JOIN thread "
                 "USING (thread_id) JOIN process p USING (process_id) ORDER BY 1"),
            "1 1 -1600\n2 1 -600\n3 0 0\n4 1 400\n5 0 1000\n6 0 2000\n");
  EXPECT_EQ(Rows(*all, "SELECT begin_ns - 1000000000000, error_ns FROM device_span ORDER BY 1"),
            "450 5\n2050 5\n");
  EXPECT_EQ(Rows(*all, "SELECT begin_ns - 1000000000000 FROM scope_range ORDER BY 1"),
            "-1600\n0\n");
  EXPECT_EQ(Rows(*all, "SELECT alloc_ns - 1000000000000 FROM buffer ORDER BY 1"),
            "-1600\n-1600\n0\n0\n");
}

TEST_F(MergeTest, ArgumentsNameTheObjectsOfTheirOwnProcess) {
  const std::unique_ptr<Reader> all = MergeTwo(0);
  EXPECT_EQ(
      Rows(*all,
           "SELECT a.call_id, e.handle, s.handle FROM argument a JOIN event e ON e.event_id = "
           "a.integer AND a.name = 'event' JOIN call c USING (call_id) JOIN stream s USING "
           "(stream_id) ORDER BY 1"),
      "1 8000 7000\n2 8001 7001\n");
  EXPECT_EQ(Rows(*all,
                 "SELECT a.call_id, m.handle, m.rank FROM argument a JOIN communicator m ON "
                 "m.communicator_id = a.integer WHERE a.name = 'comm' ORDER BY 1"),
            "5 9000 0\n6 9001 1\n");
  // A number that is no handle stays.
  EXPECT_EQ(Rows(*all, "SELECT call_id, integer FROM argument WHERE name = 'count' ORDER BY 1"),
            "5 1\n6 1\n");
  EXPECT_EQ(Rows(*all, "SELECT call_id, communicator, rank, number FROM collective ORDER BY 1"),
            "5 world 0 1\n6 world 1 1\n");
}

TEST_F(MergeTest, TensorsNameTheBuffersOfTheirOwnProcess) {
  const std::unique_ptr<Reader> all = MergeTwo(0);
  EXPECT_EQ(Rows(*all,
                 "SELECT u.call_id, u.element, u.buffer_id, b.alloc_call, b.free_call FROM "
                 "tensor_use u JOIN buffer b USING (buffer_id) ORDER BY 1, 2"),
            "3 0 1 1 5\n3 1 2 1 -\n4 0 3 2 6\n4 1 4 2 -\n5 0 2 1 -\n6 0 4 2 -\n");
  EXPECT_EQ(Rows(*all, "SELECT call_id, tensor_id >> 24, tensor_id & 16777215 FROM snapshot"),
            "3 1 1\n4 3 1\n");
}

TEST_F(MergeTest, WhatRepeatsIsKeptOnce) {
  const std::unique_ptr<Reader> all = MergeTwo(0);
  // Both ranks have the same operators, layout, scope, line and content, and the list of tensors is
  // one signature.
  EXPECT_EQ(Rows(*all,
                 "SELECT (SELECT count(*) FROM op), (SELECT count(*) FROM layout), "
                 "(SELECT count(*) FROM scope), (SELECT count(*) FROM stack), "
                 "(SELECT count(*) FROM payload), (SELECT count(*) FROM signature)"),
            "3 1 1 1 1 5\n");
  EXPECT_EQ(Rows(*all, "SELECT DISTINCT file, line FROM call_location"), "train.py 7\n");
}

TEST_F(MergeTest, StepsOfARankAreThoseThatItMarked) {
  const std::unique_ptr<Reader> all = MergeTwo(0);
  EXPECT_EQ(Rows(*all, "SELECT step, first_call, last_call, found_by FROM step"),
            "0 1 5 range:step\n1 2 6 range:step\n");
  const Reader rank(Path("all.db"), TracePart{.process = "rank:1", .level = {}});
  ASSERT_EQ(rank.Steps().size(), 1U);
  EXPECT_EQ(rank.Steps()[0].first_call, 2);
}

TEST_F(MergeTest, MetaSaysWhereEachTraceCameFrom) {
  const std::unique_ptr<Reader> all = MergeTwo(0);
  EXPECT_EQ(all->State(), "complete");
  EXPECT_EQ(Rows(*all,
                 "SELECT json_extract(value, '$.first_process'), json_extract(value, "
                 "'$.last_process'), json_extract(value, '$.meta.base_ns'), json_extract(value, "
                 "'$.clock') FROM json_each((SELECT value FROM meta WHERE key = 'merged_from'))"),
            "1 1 1000000000000 by the test\n2 2 1000000000200 by the test\n");
  EXPECT_EQ(Rows(*all, "SELECT count FROM ledger"), "6\n");
}

TEST_F(MergeTest, WhatOneTraceSaysOfItsValuesIsSaidOfAll) {
  MakeRank("a.db", {});
  {
    Writer writer(Path("b.db"), WriterOptions());
    writer.SetMeta("redacted", "values");
    writer.SetMeta("trimmed_ids", "[1,2,3]");
    AddRank(writer, {.pid = 200, .rank = 1});
    writer.Finish("complete");
  }
  const std::unique_ptr<Reader> all = MergeAll({Path("a.db"), Path("b.db")}, {0, 0});
  EXPECT_EQ(all->Meta("redacted"), "values");
  EXPECT_EQ(all->Meta("trimmed_ids"), "");  // the calls have other numbers
}

TEST_F(MergeTest, ContentsCanBeLeftOut) {
  const std::unique_ptr<Reader> all = MergeTwo(0, {.contents = false});
  EXPECT_EQ(Rows(*all, "SELECT (SELECT count(*) FROM payload), (SELECT count(*) FROM snapshot)"),
            "0 2\n");
}

TEST_F(MergeTest, ATraceThatLacksSomethingMakesThePartsOneThatDoes) {
  MakeRank("a.db", {});
  {
    Writer writer(Path("b.db"), WriterOptions());
    AddRank(writer, {.pid = 200, .rank = 1});
    writer.Finish("partial");
  }
  EXPECT_EQ(MergeAll({Path("a.db"), Path("b.db")}, {0, 0})->State(), "partial");
}

TEST_F(MergeTest, TracesOfOtherOptionsAreRefused) {
  MakeRank("a.db", {});
  {
    Writer writer(Path("b.db"), WriterOptions());
    writer.SetMeta("payload", "all");
    AddRank(writer, {.pid = 200, .rank = 1});
    writer.Finish("complete");
  }
  const auto [kind, text] = ErrorOf([&] { MergeAll({Path("a.db"), Path("b.db")}, {0, 0}); });
  EXPECT_EQ(kind, static_cast<int>(ErrorKind::kUsage));
  EXPECT_NE(text.find("were recorded with the same options"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(Path("all.db")));
}

TEST_F(MergeTest, OneProcessInTwoTracesIsRefused) {
  MakeRank("a.db", {});
  const auto [kind, text] = ErrorOf([&] { MergeAll({Path("a.db"), Path("a.db")}, {0, 0}); });
  EXPECT_EQ(kind, static_cast<int>(ErrorKind::kUsage));
  EXPECT_NE(text.find("both hold the process with pid 100"), std::string::npos) << text;
}

TEST_F(MergeTest, ADamagedTraceIsNamedAndNothingIsLeft) {
  MakeRank("a.db", {});
  MakeRank("b.db", {.pid = 200, .rank = 1});
  {
    Database file(Path("b.db"), SQLITE_OPEN_READWRITE);
    file.Execute("UPDATE call_row SET begin_ns = 'evil' WHERE call_id = 2");
  }
  const auto [kind, text] = ErrorOf([&] { MergeAll({Path("a.db"), Path("b.db")}, {0, 0}); });
  EXPECT_EQ(kind, static_cast<int>(ErrorKind::kTrace));
  EXPECT_NE(text.find("b.db' cannot be used: row 2 of its table call_row"), std::string::npos)
      << text;
  EXPECT_FALSE(std::filesystem::exists(Path("all.db")));
}

TEST_F(MergeTest, ATraceOfTwoRanksComesBackFromItsParts) {
  {
    Writer writer(Path("whole.db"), WriterOptions());
    AddRank(writer, {.process = 1, .pid = 100, .rank = 0, .first_id = 1, .id_stride = 2});
    AddRank(writer, {.process = 2,
                     .pid = 200,
                     .rank = 1,
                     .begin_ns = 500,
                     .first_id = 2,
                     .id_stride = 2,
                     .value = "w"});
    writer.Finish("complete");
  }
  const Reader whole(Path("whole.db"));
  std::vector<std::string> parts;
  for (const RankProcesses& rank : ProcessesByRank(whole)) {
    parts.push_back(Path("rank" + std::to_string(rank.rank) + ".db"));
    CopyProcesses(whole, rank, parts.back(), false);
    const Reader part(parts.back());
    EXPECT_EQ(Rows(part,
                   "SELECT (SELECT count(*) FROM call), (SELECT count(*) FROM buffer), (SELECT "
                   "count(*) FROM payload), (SELECT count(*) FROM step), (SELECT count(*) FROM "
                   "stream), (SELECT count(*) FROM op), (SELECT count(*) FROM stack)"),
              "3 2 1 1 1 3 1\n");
  }
  ASSERT_EQ(parts.size(), 2U);
  const std::unique_ptr<Reader> all = MergeAll(parts, {0, 0});
  for (const char* sql :
       {"SELECT call_id, parent_id, op, begin_ns, end_ns, leaf, step, handle FROM call JOIN stream "
        "USING (stream_id) ORDER BY 1",
        "SELECT u.call_id, u.position, u.element, b.address, b.alloc_call, b.free_call, b.alloc_ns "
        "FROM tensor_use u JOIN buffer b USING (buffer_id) ORDER BY 1, 2, 3",
        "SELECT call_id, communicator, rank, number FROM collective ORDER BY 1",
        "SELECT call_id, digest FROM snapshot ORDER BY 1", "SELECT digest FROM payload ORDER BY 1",
        "SELECT step, first_call, last_call FROM step ORDER BY 1", "SELECT kind, count FROM ledger",
        "SELECT first_call, last_call, begin_ns, end_ns FROM scope_range ORDER BY 1",
        "SELECT pid, rank, name FROM process ORDER BY 1",
        "SELECT * FROM call_location ORDER BY 1"}) {
    EXPECT_EQ(Rows(*all, sql), Rows(whole, sql)) << sql;
  }
}

TEST(HandlesOfTest, SchemasTellWhichArgumentsAreHandles) {
  using Kinds = std::vector<std::optional<HandleKind>>;
  EXPECT_EQ(HandlesOf("aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)"),
            (Kinds{HandleKind::kStream, HandleKind::kEvent}));
  EXPECT_EQ(HandlesOf("aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI*(out!) modelRI)"),
            (Kinds{HandleKind::kStream, HandleKind::kModel}));
  EXPECT_EQ(HandlesOf("HcclBarrier(HcclComm comm, aclrtStream stream)"),
            (Kinds{HandleKind::kCommunicator, HandleKind::kStream}));
  EXPECT_EQ(HandlesOf("aclrtSynchronizeDevice()"), Kinds{});
  EXPECT_EQ(HandlesOf("aclrtMalloc(void**(out!) devPtr, size_t size)"),
            (Kinds{std::nullopt, std::nullopt}));
}

}  // namespace
}  // namespace acltape::storage
