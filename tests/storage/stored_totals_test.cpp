// The totals that a trace stores: whatever was recorded, dropped or copied, queries answer with
// them as they do without them.
#include "storage/stored_totals.h"

#include <fmt/format.h>

#include <map>
#include <random>

#include "storage/database.h"
#include "storage/host_gaps.h"
#include "storage/query.h"
#include "storage/results.h"
#include "storage/trace_copy.h"
#include "tests/storage/rows_text.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

// All answers that totals make faster.
std::string Answers(const std::string& path) {
  const Reader reader(path);
  const TraceCounts counts = CountsOf(reader);
  std::string text =
      fmt::format("{} calls, {} leaves, {} buffers\n", counts.calls, counts.leaves, counts.buffers);
  for (const char* name : {"top_ops", "host_gaps", "steps", "threads"}) {
    text += fmt::format("{}\n{}", name, Rows(reader, FindNamedQuery(name)->sql));
  }
  return text + "longest_host_gaps\n" + Rows(reader, "SELECT * FROM longest_host_gaps");
}

class StoredTotals : public TraceTest {
 protected:
  void Change(const std::string& path, const std::string& sql) {
    Database database(path, SQLITE_OPEN_READWRITE);
    database.Execute(sql.c_str());
  }

  std::string WithoutTotals(const std::string& path) {
    const std::string copy = Path("without.db");
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    Change(copy,
           "DELETE FROM table_total; DELETE FROM signature_total; DELETE FROM thread_total; "
           "DELETE FROM step_total; DELETE FROM host_gap");
    return Answers(copy);
  }

  int64_t Number(const std::string& path, const char* sql) {
    Database database(path, SQLITE_OPEN_READONLY);
    return database.Integer(sql);
  }

  // The trace has totals, and they change no answer.
  void ExpectSound(const std::string& path) {
    EXPECT_EQ(Number(path, "SELECT count(*) FROM table_total"), 2);
    EXPECT_EQ(Answers(path), WithoutTotals(path));
  }
};

// Calls that enclose each other at random, given to a Writer as a recording gives them: in the
// order in which they end, with ids in the order in which they begin.
class RandomCalls {
 public:
  RandomCalls(Writer& writer, uint64_t seed) : writer_(writer), random_(seed) {
    for (const char* name : {"aten::a", "aten::b", "aten::_local_scalar_dense"}) {
      const int64_t op = writer.InternOp({0, "aten", name, "", ""});
      for (int copy = 0; copy < 3; ++copy) signatures_.push_back(writer.AddSignature(op, {}));
    }
    for (int64_t thread = 1; thread <= kThreads; ++thread) {
      writer.AddThread(thread, 1, thread, "");
    }
  }

  // Adds calls one after the other, each with calls inside.
  void Add(int64_t outermost) {
    for (int64_t i = 0; i < outermost; ++i) Call(1 + Below(kThreads), 0, 0);
  }
  int64_t last_call() const { return last_call_; }

 private:
  static constexpr int64_t kThreads = 3;

  int64_t Below(int64_t end) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(end));
  }
  // Small times, so that many are equal, and some are none.
  void Pass(int64_t thread) { now_[thread] += Below(4) == 0 ? 0 : Below(40); }

  void Call(int64_t thread, int64_t parent, int depth) {
    Pass(thread);
    storage::Call call;
    call.call_id = ++last_call_;
    call.parent_id = parent;
    call.thread_id = thread;
    call.signature_id = signatures_[static_cast<size_t>(Below(9))];
    call.phase = static_cast<Phase>(Below(3));
    call.leaf = Below(3) != 0;
    call.begin_ns = 1000000 + now_[thread];
    for (int64_t inner = depth < 4 ? Below(3) : 0; inner > 0; --inner) {
      Call(thread, call.call_id, depth + 1);
    }
    Pass(thread);
    call.end_ns = 1000000 + now_[thread];
    writer_.AddCall(call, 0);
    if (Below(2) == 0) writer_.AddBuffer({1 + Below(call.call_id), 0, 16, 0, 0, false});
  }

  Writer& writer_;
  std::mt19937_64 random_;
  std::vector<int64_t> signatures_;
  std::map<int64_t, int64_t> now_;
  int64_t last_call_ = 0;
};

TEST_F(StoredTotals, OfRandomNestedCallsChangeNoAnswer) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Writer::Options options;
    options.overwrite = true;
    options.base_ns = 1000000;
    Writer writer(Path(), options);
    RandomCalls calls(writer, seed);
    // Also more gaps than are stored.
    calls.Add(seed % 5 == 0 ? 6000 : 20);
    const int64_t half = calls.last_call() / 2;
    writer.AddStep({0, 1, half, "range:step"});
    writer.AddStep({1, half + 1, calls.last_call(), "range:step"});
    writer.Finish("complete");
    ExpectSound(Path());
    EXPECT_EQ(Number(Path(), "SELECT count(*) FROM step_total"), 2);
    if (seed % 5 == 0) {
      EXPECT_EQ(Number(Path(), "SELECT count(*) FROM host_gap"), 1000);
    }
  }
}

TEST_F(StoredTotals, AGapBeginsWhereAllLeavesBeforeHaveEnded) {
  {
    Writer writer(Path(), {});
    const int64_t signature = writer.AddSignature(writer.InternOp({0, "aten", "a", "", ""}), {});
    const auto leaf = [&](int64_t id, int64_t begin, int64_t end) {
      Call call;
      call.call_id = id;
      call.thread_id = 1;
      call.signature_id = signature;
      call.leaf = true;
      call.begin_ns = begin;
      call.end_ns = end;
      writer.AddCall(call, 0);
    };
    leaf(2, 20, 30);   // inside of 1
    leaf(3, 60, 70);   // inside of 1
    leaf(1, 10, 100);  // the time between 2 and 3 is no gap
    leaf(4, 115, 120);
    leaf(5, 120, 130);
    leaf(6, 137, 140);
    writer.Finish("complete");
  }
  const Reader reader(Path());
  for (const char* view : {"host_gaps", "longest_host_gaps"}) {
    EXPECT_EQ(
        Rows(reader, fmt::format("SELECT gap_ns, after_call, before_call, begin_ns FROM {}", view)),
        "15 1 4 100\n7 5 6 130\n");
  }
  ExpectSound(Path());
}

TEST_F(StoredTotals, OfALeafThatEnclosesMoreThanIsKeptInMemoryChangeNoAnswer) {
  {
    Writer writer(Path(), {});
    const int64_t signature = writer.AddSignature(writer.InternOp({0, "aten", "a", "", ""}), {});
    Call call;
    call.thread_id = 1;
    call.signature_id = signature;
    call.leaf = true;
    constexpr int64_t kInside = 10000;
    for (int64_t id = 2; id < kInside; ++id) {
      call.call_id = id;
      call.begin_ns = id * 100;
      call.end_ns = call.begin_ns + id % 90;
      writer.AddCall(call, 0);
    }
    call.call_id = 1;
    call.begin_ns = 50;
    writer.AddCall(call, 0);
    call.call_id = kInside;
    call.begin_ns = call.end_ns + 7;
    call.end_ns = call.begin_ns;
    writer.AddCall(call, 0);
    writer.Finish("complete");
  }
  ExpectSound(Path());
  EXPECT_EQ(Number(Path(), "SELECT gap_ns FROM host_gap"), 7);
}

TEST_F(StoredTotals, OfARecordingThatDroppedItsBeginAreThoseOfTheRest) {
  {
    Writer writer(Path(), {});
    RandomCalls calls(writer, 7);
    calls.Add(200);
    writer.DropBefore(calls.last_call() / 2, 0, [](const std::string&) { return true; });
    calls.Add(50);
    writer.ForgetDropped();
    writer.Finish("complete");
  }
  ExpectSound(Path());
  EXPECT_LT(Number(Path(), "SELECT rows FROM table_total WHERE table_name = 'call_row'"),
            Number(Path(), "SELECT max(call_id) FROM call_row"));
}

TEST_F(StoredTotals, OfACallThatCameTwiceCountItOnce) {
  {
    Writer writer(Path(), WriterOptions());
    Fill(writer);
    Call call;
    call.call_id = 3;
    call.thread_id = 1;
    call.signature_id = 3;
    call.leaf = true;
    call.begin_ns = kBase + 1500;
    call.end_ns = kBase + 1600;
    call.buffers = {4, 4};
    writer.AddCall(call, 0);
    writer.Finish("complete");
  }
  ExpectSound(Path());
}

TEST_F(StoredTotals, OfACopyAreThoseOfItsOwnCalls) {
  Make();
  const Reader reader(Path());
  TraceCopy copy(reader, Path("copy.db"), false);
  for (const char* table : {"meta", "thread", "op", "signature", "step", "buffer_row"}) {
    copy.CopyRows(table, table == std::string("meta") ? "key <> 'schema_version'" : "");
  }
  copy.CopyRows("call_row", "call_id < 4");
  copy.Close();
  copy.Accept();
  ExpectSound(Path("copy.db"));
  EXPECT_EQ(CountsOf(Reader(Path("copy.db"))).calls, 3);
}

TEST_F(StoredTotals, AreThereForStepsThatAToolFound) {
  {
    Reader reader(Make(), Reader::Mode::kReadWrite);
    Results(reader).ReplaceSteps({{0, 1, 2, "period"}, {1, 3, 8, "period"}});
  }
  EXPECT_EQ(Number(Path(), "SELECT count(*) FROM step_total WHERE calls = 6"), 1);
  ExpectSound(Path());
}

TEST_F(StoredTotals, AreLeftOutForStepsThatShareCalls) {
  {
    Reader reader(Make(), Reader::Mode::kReadWrite);
    Results(reader).ReplaceSteps({{0, 1, 6, "period"}, {1, 3, 8, "period"}});
  }
  EXPECT_EQ(Number(Path(), "SELECT count(*) FROM step_total"), 0);
  ExpectSound(Path());
}

TEST_F(StoredTotals, OfStepsThatChangedSinceAreNotUsed) {
  Make();
  Change(Path(), "UPDATE step SET last_call = 2 WHERE step = 0");
  EXPECT_EQ(Rows(Reader(Path()), "SELECT step, calls FROM step_summary"), "0 2\n1 4\n");
}

TEST_F(StoredTotals, AreNotMissedInATraceThatIsStillRecorded) {
  Writer writer(Path(), WriterOptions());
  Fill(writer);
  writer.Commit();
  EXPECT_EQ(Number(Path(), "SELECT count(*) FROM table_total"), 0);
  const std::string expected = Answers(Path());
  writer.Finish("complete");
  EXPECT_EQ(Answers(Path()), expected);
}

TEST_F(StoredTotals, AreNotMissedInATraceWithoutTheirTables) {
  Make();
  const std::string expected = Answers(Path());
  Change(Path(),
         "DROP TABLE table_total; DROP TABLE signature_total; DROP TABLE thread_total; "
         "DROP TABLE step_total; DROP TABLE host_gap; PRAGMA user_version = 5");
  EXPECT_EQ(Answers(Path()), expected);
  Reader reader(Path(), Reader::Mode::kReadWrite);
  Results(reader).ReplaceSteps({{0, 1, 8, "period"}});
  EXPECT_EQ(Rows(reader, "SELECT step, calls FROM step_summary"), "0 8\n");
}

TEST_F(StoredTotals, ThatLieEndInNumbersOrInOneSentence) {
  for (const char* lie :
       {"UPDATE thread_total SET calls = 9223372036854775807, leaves = -1; INSERT INTO "
        "thread_total "
        "VALUES(2, 9223372036854775807, 9223372036854775807)",
        "UPDATE table_total SET rows = 'many'", "UPDATE table_total SET rows = NULL",
        "UPDATE signature_total SET leaves = 9223372036854775807, total_ns = 9223372036854775807",
        "UPDATE signature_total SET leaves = 'x', total_ns = x'00', min_ns = 1.5",
        "UPDATE host_gap SET after_call = 99, before_call = 'x'",
        "UPDATE host_gap SET gap_ns = NULL, thread_id = -5",
        "UPDATE step_total SET calls = -1, wall_ns = 'x', signatures = NULL",
        "DELETE FROM table_total", "DELETE FROM thread_total",
        "UPDATE call_row SET begin_ns = -9223372036854775807, duration_ns = 9223372036854775807"}) {
    std::filesystem::remove(Path());
    Make();
    Change(Path(), lie);
    const auto [kind, sentence] = ErrorOf([&] { Answers(Path()); });
    if (kind != 0) {
      EXPECT_NE(sentence.find("integer overflow"), std::string::npos) << lie << ": " << sentence;
    }
    // The calls are read here, not the totals.
    EXPECT_EQ(Reader(Path()).CallCount(false), 8) << lie;
    Reader changed(Path(), Reader::Mode::kReadWrite);
    EXPECT_EQ(ErrorOf([&] { Results(changed).ReplaceSteps({{0, 1, 8, "period"}}); }).first, 0);
  }
}

}  // namespace
}  // namespace acltape::storage
