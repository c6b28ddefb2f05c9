// Records that are not what they should be: random bytes, random bodies under sound headers, and
// sound records with single bytes changed. Meant to run under AddressSanitizer and
// UndefinedBehaviorSanitizer too.
#include <xxhash.h>

#include <random>

#include "recorder/collector/arena_owner.h"
#include "recorder/collector/argument_decoder.h"
#include "recorder/collector/ring_log.h"
#include "storage/database.h"
#include "storage/writer.h"
#include "tests/recorder/producer.h"
#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

using collector::DecodedArgument;

std::span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(DecodeArguments, ReadsEveryKind) {
  Signature signature;
  signature.Tensor(1, {2, 3}).Int(-5).Real(0.25);
  signature.Put(wire::ArgumentTag::kNone);
  signature.Put(wire::ArgumentTag::kUndefinedTensor);
  signature.Put(wire::ArgumentTag::kBool).Put(uint8_t{1});
  signature.Put(wire::ArgumentTag::kText).Put(uint32_t{2}).Put('h').Put('i');
  signature.Put(wire::ArgumentTag::kIntList).Put(uint32_t{2}).Put(int64_t{7}).Put(int64_t{8});
  signature.Put(wire::ArgumentTag::kRealList).Put(uint32_t{1}).Put(1.5);
  signature.Put(wire::ArgumentTag::kBoolList).Put(uint32_t{2}).Put(uint8_t{0}).Put(uint8_t{1});
  signature.Put(wire::ArgumentTag::kTensorList)
      .Put(uint32_t{2})
      .Tensor(0, {})
      .Put(wire::ArgumentTag::kNone);
  signature.Put(wire::ArgumentTag::kDtype).Put(uint8_t{5});
  signature.Put(wire::ArgumentTag::kComplex).Put(1.0).Put(-2.0);
  std::vector<DecodedArgument> arguments;
  ASSERT_TRUE(collector::DecodeArguments(BytesOf(signature.bytes), 2, &arguments));
  ASSERT_EQ(arguments.size(), 13u);
  EXPECT_EQ(arguments[0].value.tensors[0].slot, 1);
  EXPECT_EQ(arguments[0].layouts[0].shape, std::vector<int64_t>({2, 3}));
  EXPECT_EQ(arguments[0].layouts[0].strides, std::vector<int64_t>({3, 1}));
  EXPECT_EQ(arguments[1].value.integer, -5);
  EXPECT_EQ(arguments[2].value.real, 0.25);
  EXPECT_FALSE(arguments[4].value.tensors[0].defined());
  EXPECT_EQ(arguments[6].value.text, "hi");
  EXPECT_EQ(arguments[7].value.integers, std::vector<int64_t>({7, 8}));
  EXPECT_EQ(arguments[10].value.tensors.size(), 2u);
  EXPECT_EQ(arguments[12].value.reals, std::vector<double>({1.0, -2.0}));
}

TEST(DecodeArguments, RefusesASlotThatTheCallDoesNotHave) {
  std::vector<DecodedArgument> arguments;
  const std::string bytes = Signature().Tensor(2, {4}).bytes;
  EXPECT_FALSE(collector::DecodeArguments(BytesOf(bytes), 2, &arguments));
  EXPECT_TRUE(collector::DecodeArguments(BytesOf(bytes), 3, &arguments));
}

TEST(DecodeArguments, RefusesEveryTruncation) {
  const std::string whole = Signature().Tensor(0, {4, 5}).Int(1).Real(2).bytes;
  const std::string first = Signature().Tensor(0, {4, 5}).bytes;
  for (size_t length = 1; length < whole.size(); ++length) {
    std::vector<DecodedArgument> arguments;
    const bool fits = length == first.size() || length == first.size() + 9;
    EXPECT_EQ(collector::DecodeArguments(BytesOf(whole.substr(0, length)), 1, &arguments), fits)
        << "cut to " << length << " bytes";
  }
}

TEST(DecodeArguments, AListThatAnnouncesMoreThanThereIsTakesNoMemory) {
  for (const auto tag :
       {wire::ArgumentTag::kIntList, wire::ArgumentTag::kRealList, wire::ArgumentTag::kBoolList,
        wire::ArgumentTag::kTensorList, wire::ArgumentTag::kText}) {
    const std::string bytes = Signature().Put(tag).Put(uint32_t{0xfffffff0}).bytes;
    std::vector<DecodedArgument> arguments;
    EXPECT_FALSE(collector::DecodeArguments(BytesOf(bytes), 1, &arguments));
  }
}

TEST(DecodeArguments, SurvivesRandomBytes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200000; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (round % 3 == 0 ? 20 : 256));
    std::vector<DecodedArgument> arguments;
    collector::DecodeArguments(BytesOf(bytes), static_cast<uint32_t>(random() % 4), &arguments);
  }
}

// A log over a writer, without rings and without a program.
class RingLogTest : public RecordTest {
 protected:
  void SetUp() override {
    RecordTest::SetUp();
    collector::ArenaOptions options;
    options.slots = 1;
    arena_ = std::make_unique<collector::ArenaOwner>(options);
    writer_ = std::make_unique<storage::Writer>(Path(), storage::Writer::Options{});
    trace_ = std::make_unique<collector::TraceBuilder>(*writer_, arena_->header(), arena_->clock(),
                                                       "step");
  }
  void TearDown() override {
    trace_.reset();
    writer_.reset();
    RecordTest::TearDown();
  }

  // Feeds all bytes as the drain does.
  static void Feed(collector::RingLog& log, std::span<const std::byte> bytes) {
    while (!bytes.empty()) bytes = bytes.subspan(log.Consume(bytes));
  }

  // The bytes of one record of every kind, each sound.
  std::vector<std::byte> SoundRecords() {
    arena_->header().next_call_id.store(100);
    arena_->header().next_buffer_id.store(100);
    const Arena arena = Arena::Open(arena_->fd());
    Producer producer(arena);
    producer.ThreadName("main");
    producer.Op(0, "aten::add", "Tensor", Producer::kAddSchema);
    producer.Op(1, "aten::linear", "", "aten::linear(Tensor a) -> Tensor");
    producer.Meta("torch_version", "1.13");
    producer.Write(wire::RecordKind::kWindow, wire::WindowRecord{{}, wire::Tick(), 1, 3, 0});
    producer.ScopeBegin("step");
    const uint64_t frame = producer.FrameBegin(1);
    const uint64_t buffer = producer.Birth(16, frame);
    const std::string content(100, 'x');
    const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
    producer.Data(hash.low64, hash.high64, content, 60);
    const uint64_t call = producer.NextCallId();
    producer.Call(call, 0, {buffer, buffer, buffer}, Producer::AddSignature(), frame);
    producer.Snapshot(call, buffer, hash.low64, hash.high64, 100);
    producer.Write(wire::RecordKind::kLedger, wire::LedgerRecord{{}, 3, 1, 0},
                   Producer::Texts({"kind", "subject", "cause", "remedy"}));
    producer.FrameEnd(frame);
    producer.ScopeEnd();
    producer.Death(buffer);
    const std::string arguments = Producer::AddSignature();
    wire::AclCallRecord acl{};
    acl.call_id = producer.NextCallId();
    acl.begin_tick = acl.end_tick = wire::Tick();
    acl.prepare_ticks = 10;
    acl.signature_bytes = static_cast<uint32_t>(arguments.size());
    acl.stream_id = 1;
    acl.slot_count = 3;
    acl.launched = 1;
    const uint64_t slots[] = {buffer, buffer, buffer};
    producer.Write(wire::RecordKind::kAclCall, acl,
                   arguments + std::string(reinterpret_cast<const char*>(slots), sizeof(slots)));
    wire::HandleRecord handle{};
    handle.handle_id = 1;
    producer.Write(wire::RecordKind::kHandle, handle);
    producer.Write(wire::RecordKind::kPlace, wire::PlaceRecord{{}, 2, 17},
                   Producer::Texts({"train.py", "main"}));
    producer.Write(wire::RecordKind::kDeviceSpan,
                   wire::DeviceSpanRecord{{}, acl.call_id, 5'000'000, 700, 1, 20});
    wire::FailureTextRecord failure{};
    failure.call_id = acl.call_id;
    producer.Write(wire::RecordKind::kFailureText, failure, Producer::Texts({"no room"}));
    producer.Write(wire::RecordKind::kCommunicator, wire::CommunicatorRecord{{}, 2, 0x1000, 1, 2},
                   Producer::Texts({"world"}));
    producer.Write(static_cast<wire::RecordKind>(999), wire::TextRecord{});
    std::byte* ring = wire::MapRing(arena_->fd(), arena_->header(), 0);
    std::vector<std::byte> bytes(ring, ring + producer.slot()->head.load());
    wire::UnmapRing(ring, arena_->header());
    return bytes;
  }

  std::unique_ptr<collector::ArenaOwner> arena_;
  std::unique_ptr<storage::Writer> writer_;
  std::unique_ptr<collector::TraceBuilder> trace_;
};

TEST_F(RingLogTest, AProcessThatEndedUnseenHasTheNameOfItsFirstThread) {
  const int64_t main = trace_->AddThread({7, 7, "", {}});
  const int64_t worker = trace_->AddThread({7, 8, "", {}});
  const int64_t seen = trace_->AddThread({9, 9, "python3", {}});
  trace_->SetRank(main, "3");
  trace_->NameThread(main, "child");
  trace_->NameThread(worker, "pool");
  trace_->NameThread(seen, "renamed");
  trace_->Finish();
  writer_->Finish("complete");
  const storage::Reader reader(Path());
  EXPECT_EQ(reader.database().Integer(
                "SELECT count(*) FROM process WHERE pid = 7 AND name = 'child' AND rank = 3"),
            1);
  EXPECT_EQ(
      reader.database().Integer("SELECT count(*) FROM process WHERE pid = 9 AND name = 'python3'"),
      1);
}

TEST_F(RingLogTest, SoundRecordsOfEveryKindAreTaken) {
  const auto bytes = SoundRecords();
  collector::RingLog log(*trace_, 0, {1, 1, "program", {}});
  Feed(log, bytes);
  EXPECT_FALSE(log.broken());
  log.Finish(2);
  trace_->Finish();
  EXPECT_FALSE(trace_->data_lost());
  writer_->Finish("complete");
  const storage::Reader reader(Path());
  EXPECT_EQ(reader.Calls(false).size(), 3u);
  EXPECT_EQ(reader.Streams().size(), 1u);
  EXPECT_EQ(reader.Steps().size(), 1u);
  EXPECT_EQ(reader.database().Integer(
                "SELECT count(*) FROM device_span WHERE stream_id = 1 AND begin_ns = 5000000 AND "
                "end_ns = 5000700 AND error_ns = 20"),
            1);
  EXPECT_EQ(reader.database().Integer("SELECT count(*) FROM failure_text WHERE text = 'no room'"),
            1);
  EXPECT_EQ(reader.database().Integer("SELECT count(*) FROM recorded_window WHERE window_id = 1 "
                                      "AND process_id = 1 AND last_call > first_call"),
            1);
  EXPECT_EQ(reader.Meta("torch_version"), "1.13");
  const auto ledger = reader.Ledger();
  ASSERT_NE(Find(ledger, "unknown_record"), nullptr);
  EXPECT_EQ(Find(ledger, "unknown_record")->subject, "kind 999");
  ASSERT_NE(Find(ledger, "kind"), nullptr);
  EXPECT_EQ(Find(ledger, "kind")->count, 3);
}

TEST_F(RingLogTest, ChangedBytesNeverCrash) {
  const auto sound = SoundRecords();
  std::mt19937_64 random(2);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes = sound;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    collector::RingLog log(*trace_, 0, {1, static_cast<uint32_t>(round), "program", {}});
    Feed(log, bytes);
    log.Finish(1);
  }
  trace_->Finish();
  writer_->Finish("partial");
  EXPECT_NE(Find(storage::Reader(Path()).Ledger(), "malformed_record"), nullptr);
}

TEST_F(RingLogTest, RandomBodiesUnderSoundHeadersNeverCrash) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint64_t> words(1 + random() % 24);
    for (uint64_t& word : words) word = random() % 3 == 0 ? random() : random() % 8;
    const wire::RecordHeader header{static_cast<wire::RecordKind>(random() % 15), 0,
                                    static_cast<uint32_t>(8 * words.size())};
    memcpy(words.data(), &header, sizeof(header));
    collector::RingLog log(*trace_, 0, {1, static_cast<uint32_t>(round), "program", {}});
    Feed(log, std::as_bytes(std::span(words)));
    log.Finish(0);
  }
}

TEST_F(RingLogTest, AMalformedRecordEndsTheLogAndIsADataLoss) {
  auto bytes = SoundRecords();
  const std::vector<std::byte> rest(1000, std::byte{0xff});
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  collector::RingLog log(*trace_, 0, {1, 1, "program", {}});
  Feed(log, bytes);
  EXPECT_TRUE(log.broken());
  EXPECT_EQ(log.call_records(), 2u);
  EXPECT_TRUE(trace_->data_lost());
}

TEST_F(RingLogTest, AThreadThatCountedMoreCallsThanItSentIsADataLoss) {
  const auto bytes = SoundRecords();
  collector::RingLog log(*trace_, 0, {1, 1, "program", {}});
  Feed(log, bytes);
  log.Finish(5);
  EXPECT_TRUE(trace_->data_lost());
}

TEST_F(RecordTest, AProgramThatWritesGarbageEndsWellAndIsPartial) {
  for (const char* seed : {"1", "2", "3"}) {
    auto options = Options({"garbage", seed});
    options.overwrite = true;
    const auto summary = collector::Record(options);
    EXPECT_EQ(summary.exit_code, 0);
    EXPECT_EQ(summary.state, "partial");
    EXPECT_GE(summary.leaves, 1);
    EXPECT_NE(Find(summary.ledger, "malformed_record"), nullptr);
  }
}

}  // namespace
}  // namespace acltape::test
