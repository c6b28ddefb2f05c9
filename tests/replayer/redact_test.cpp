// Redacted traces: nothing of the values or the machine is left in the file, and they still replay.
#include "replayer/redact.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

#include "replayer/acl_level/replay_level.h"
#include "replayer/values/synthesise.h"
#include "storage/database.h"
#include "storage/tables.h"
#include "tests/analyzer/acl_trace_builder.h"
#include "tests/replayer/small_programs.h"

namespace acltape::replayer {
namespace {

using namespace acltape::test;
using storage::DType;
using storage::Reader;
using storage::Statistics;

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

constexpr int64_t kRows = 6;

// Three steps that look rows of a table up; the index is new in each, and the host reads a value.
void WriteLookup(TraceBuilder& trace, int step) {
  static Tensor table;
  static Floats rows;
  if (step == 0) {
    trace.writer().SetMeta("command", "[\"python3\",\"/home/somebody/secret_model.py\"]");
    trace.writer().SetMeta("host", "secret-host");
    trace.writer().AddProcess(1, 4321, "secret-process");
    trace.writer().AddThread(1, 1, 4321, "secret-thread");
    trace.writer().InternScope(0, "module", "SecretModule");
    table = trace.NewTensor({kRows, 4});
    rows = Numbers(kRows * 4, 3);
  }
  const std::vector<int64_t> index{step, kRows - 1, 2, step};
  const Tensor index_tensor = trace.NewTensor({4}, DType::kInt64);
  const Tensor out = trace.NewTensor({4, 4});
  trace.Call("aten::embedding",
             {In("weight", table), In("indices", index_tensor), Int("padding_idx", -1),
              Bool("scale_grad_by_freq", false), Bool("sparse", false)},
             {Out("out", out)});
  // The collector names the type of what it kept.
  trace.Before(index_tensor, index);
  if (step == 0) trace.Before(table, rows);
  Floats picked;
  for (const int64_t row : index) {
    picked.insert(picked.end(), rows.begin() + row * 4, rows.begin() + row * 4 + 4);
  }
  trace.After("out", picked);
  const Tensor total = trace.NewTensor({});
  trace.Call("aten::sum", {In("self", out), None("dtype")}, {Out("out", total)});
  trace.Call("aten::_local_scalar_dense", {In("self", total)},
             {Real("out", 1234.5678, storage::Direction::kOut)});
}

class RedactTest : public ::testing::Test {
 protected:
  RedactTest() : recorded_(3, WriteLookup, "redact"), redacted_("redacted") {}

  RedactReport Run(std::set<std::string> keep = {}) {
    const Reader reader(recorded_.path());
    RedactOptions options;
    options.output = redacted_.path();
    options.overwrite = true;
    options.keep = std::move(keep);
    return Redact(reader, options);
  }
  ReplayReport Replayed(Mode mode) {
    const Reader reader(redacted_.path());
    ReplayOptions options;
    options.mode = mode;
    options.data = Data::kSynthesised;
    return acl_level::Replay(reader, options, nullptr);
  }

  Recorded recorded_;
  TemporaryTrace redacted_;
};

TEST_F(RedactTest, NoValueAndNoNameIsLeftInTheFile) {
  const RedactReport report = Run();
  EXPECT_EQ(report.contents, 7);  // the table, three indices, three results
  EXPECT_EQ(report.host_values, 3);
  EXPECT_EQ(report.statistics, report.snapshots);
  const Floats rows = Numbers(kRows * 4, 3);
  const std::string before = Content(recorded_.path()), after = Content(redacted_.path());
  ASSERT_NE(before.find("secret-host"), std::string::npos);
  ASSERT_NE(before.find("SecretModule"), std::string::npos);
  EXPECT_EQ(Reader(redacted_.path()).database().Integer("SELECT count(*) FROM payload"), 0);
  for (const char* word : {"secret", "Secret", "somebody", "1234.5678"}) {
    EXPECT_EQ(after.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(after.find(BytesOf(rows).substr(0, 16)), std::string::npos);
  const Reader reader(recorded_.path());
  for (const storage::Snapshot& snapshot : reader.Snapshots()) {
    EXPECT_EQ(after.find(snapshot.digest), std::string::npos);
    const std::vector<uint8_t> payload = reader.Payload(snapshot.digest);
    EXPECT_EQ(after.find(BytesOf(payload)), std::string::npos);
  }
}

TEST_F(RedactTest, ItReplaysWithValuesThatTakeTheirPlace) {
  Run();
  EXPECT_EQ(Replayed(Mode::kEager).differing, 0);
  const ReplayReport captured = Replayed(Mode::kCaptured);
  EXPECT_EQ(captured.differing, 0) << Explain(captured);
  EXPECT_EQ(captured.compared, 6);  // against the eager replay
  EXPECT_EQ(captured.refusal, "");
}

TEST_F(RedactTest, WhatIsKeptOnRequestIsKept) {
  Run({"meta", "scopes"});
  const std::string after = Content(redacted_.path());
  EXPECT_NE(after.find("secret-host"), std::string::npos);
  EXPECT_NE(after.find("SecretModule"), std::string::npos);
  try {
    Run({"payloads"});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
}

TEST(Redact, OfTextsTheWordsOfOperatorsStay) {
  TemporaryTrace recorded("redact-texts"), redacted("redacted-texts");
  {
    AclTraceBuilder trace(recorded.path());
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({4}), y = trace.Device({4});
    trace.Interface("aclInit", {test::Text("configPath", "/home/somebody/acl.json")});
    trace.Interface("aclrtBinaryLoadFromFile", {test::Text("binPath", "secret_kernels.o")});
    trace.Op("aclnnGeluV2", stream, {In("x", x), test::Text("approximate", "tanh"), Out("y", y)});
    trace.Op("aclnnGeluV2", stream,
             {In("x", x), test::Text("approximate", "a/secret"), Out("y", y)});
    trace.Call("aten::gelu", {In("self", x), test::Text("approximate", "none")}, {Out("out", y)});
    trace.Call("company::gelu", {In("self", x), test::Text("table", "secret_table")},
               {Out("out", y)});
    trace.Finish();
  }
  const Reader reader(recorded.path());
  RedactOptions options;
  options.output = redacted.path();
  Redact(reader, options);
  const std::string after = Content(redacted.path());
  EXPECT_EQ(after.find("somebody"), std::string::npos);
  EXPECT_EQ(after.find("secret"), std::string::npos);
  const Reader kept(redacted.path());
  std::set<std::string> words;
  for (const storage::Call& call : kept.Calls(/*leaves_only=*/false)) {
    for (const storage::Argument& argument : kept.Arguments(call)) {
      if (argument.kind == storage::ValueKind::kText) words.insert(argument.text);
    }
  }
  EXPECT_EQ(words, (std::set<std::string>{"", "none", "tanh"}));
}

// Columns that say how the trace is built. A replay needs them, and docs/commands.md says that they
// stay.
const std::set<std::string> kStays = {"meta.key",
                                      "meta.value",
                                      "op.dialect",
                                      "op.name",
                                      "op.overload",
                                      "op.schema",
                                      "layout.dtype",
                                      "layout.shape",
                                      "layout.strides",
                                      "layout.format",
                                      "layout.memory",
                                      "signature_argument.name",
                                      "signature_argument.direction",
                                      "signature_argument.kind"};

// A text that somebody put into a column is not in the copy, or no acltape reads such a trace.
TEST(Redact, NoColumnOfTextsCarriesWhatSomebodyPutThere) {
  constexpr char kMarker[] = "planted_secret";
  std::string found;
  int planted = 0, refused = 0;
  std::vector<const storage::StoredTable*> tables(std::begin(storage::tables::kRecorded),
                                                  std::end(storage::tables::kRecorded));
  tables.insert(tables.end(), std::begin(storage::tables::kResults),
                std::end(storage::tables::kResults));
  Recorded recorded(3, WriteLookup, "redact-planted");
  const std::string original = Content(recorded.path());
  for (const storage::StoredTable* table : tables) {
    for (const storage::StoredColumn& column : table->columns) {
      const std::string name = std::string(table->name) + "." + std::string(column.name);
      if (!column.type.starts_with("TEXT") || kStays.contains(name)) continue;
      TemporaryTrace with_marker("redact-marker"), redacted("redacted-marker");
      std::ofstream(with_marker.path(), std::ios::binary) << original;
      {
        storage::Database database(with_marker.path(), SQLITE_OPEN_READWRITE);
        // A row where the table has none.
        std::string values;
        for (const storage::StoredColumn& each : table->columns) {
          values += std::string(values.empty() ? "" : ",") +
                    (each.type.starts_with("TEXT") ? "'user'" : "1");
        }
        database.Execute(
            ("INSERT OR IGNORE INTO " + std::string(table->name) + " VALUES(" + values + ")")
                .c_str());
        database.Execute(("UPDATE OR REPLACE " + std::string(table->name) + " SET " +
                          std::string(column.name) + " = '" + kMarker + "'")
                             .c_str());
      }
      ++planted;
      try {
        const Reader reader(with_marker.path());
        RedactOptions options;
        options.output = redacted.path();
        Redact(reader, options);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kTrace) << name << ": " << error.what();
        ++refused;
        continue;
      }
      if (Content(redacted.path()).find(kMarker) != std::string::npos) found += name + " ";
    }
  }
  EXPECT_EQ(found, "");
  EXPECT_GT(planted, 40);
  EXPECT_LT(refused, planted / 2);
}

TEST(Synthesised, NumbersFollowTheStatistics) {
  Statistics statistics;
  statistics.dtype = DType::kFloat32;
  statistics.min = -1;
  statistics.max = 7;
  statistics.mean = 2.5;
  statistics.nan_count = 3;
  statistics.inf_count = 2;
  constexpr int64_t kCount = 20000;
  const std::vector<uint8_t> bytes = Synthesise(DType::kFloat32, kCount * 4, 1, &statistics);
  double sum = 0;
  double least = 0, greatest = 0;
  int64_t nans = 0, infinities = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    float value;
    std::memcpy(&value, bytes.data() + i * 4, 4);
    if (std::isnan(value)) {
      ++nans;
    } else if (std::isinf(value)) {
      ++infinities;
    } else {
      sum += value;
      least = std::min<double>(least, value);
      greatest = std::max<double>(greatest, value);
    }
  }
  EXPECT_EQ(nans, 3);
  EXPECT_EQ(infinities, 2);
  EXPECT_EQ(least, -1);
  EXPECT_EQ(greatest, 7);
  EXPECT_NEAR(sum / kCount, 2.5, 0.1);
  EXPECT_NE(bytes, Synthesise(DType::kFloat32, kCount * 4, 2, &statistics));
  EXPECT_EQ(bytes, Synthesise(DType::kFloat32, kCount * 4, 1, &statistics));
}

TEST(Synthesised, IndicesStayInTheirRangeAndHalvesToo) {
  Statistics statistics;
  statistics.dtype = DType::kInt64;
  statistics.min = 3;
  statistics.max = 5;
  statistics.mean = 4;
  const std::vector<uint8_t> bytes = Synthesise(DType::kInt64, 800, 1, &statistics);
  std::set<int64_t> seen;
  for (int i = 0; i < 100; ++i) {
    int64_t value;
    std::memcpy(&value, bytes.data() + i * 8, 8);
    seen.insert(value);
  }
  EXPECT_EQ(seen, (std::set<int64_t>{3, 4, 5}));
  for (const DType half : {DType::kFloat16, DType::kBfloat16}) {
    Statistics range;
    range.dtype = half;
    range.min = 0.5;
    range.max = 2;
    range.mean = 1;
    const std::vector<uint8_t> halves = Synthesise(half, 2000, 1, &range);
    for (int i = 0; i < 1000; ++i) {
      uint16_t bits;
      std::memcpy(&bits, halves.data() + i * 2, 2);
      EXPECT_GE(bits, half == DType::kFloat16 ? 0x3800 : 0x3f00);
      EXPECT_LE(bits, half == DType::kFloat16 ? 0x4000 : 0x4000);
    }
  }
  // Statistics of another type say nothing.
  EXPECT_EQ(Synthesise(DType::kInt32, 8, 1, &statistics), std::vector<uint8_t>(8, 0));
}

}  // namespace
}  // namespace acltape::replayer
