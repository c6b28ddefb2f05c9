// Contents: compressed or not, in one piece or several, checked when read.
#include <random>

#include "storage/database.h"
#include "storage/results.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

std::string RandomBytes(size_t bytes) {
  std::mt19937_64 random(11);
  std::string content(bytes, '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

TEST(Digests, AreXxh3Of128BitsInHexadecimal) {
  // Reference value of XXH3-128 for empty input and seed 0.
  EXPECT_EQ(DigestOf("", 0), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(DigestText(0x0123456789abcdef, 0xf), "0123456789abcdef000000000000000f");
}

TEST_F(TraceTest, ContentsComeBackWhateverTheySqueezeTo) {
  std::vector<std::string> contents = {"",
                                       "x",
                                       std::string(100000, 'a'),
                                       RandomBytes(100),
                                       RandomBytes(3000000),
                                       std::string(3000000, '\0')};
  // Random where the sample looks, compressible elsewhere, and the other way round.
  contents.push_back(std::string(1000000, 'a') + RandomBytes(200000) + std::string(1000000, 'a'));
  contents.push_back(RandomBytes(1000000) + std::string(200000, 'a') + RandomBytes(1000000));
  {
    Writer writer(Path(), WriterOptions());
    for (const std::string& content : contents) {
      const std::string digest = DigestOf(content.data(), content.size());
      EXPECT_FALSE(writer.HasPayload(digest));
      writer.AddPayload(digest, content.data(), content.size());
      EXPECT_TRUE(writer.HasPayload(digest));
      writer.AddPayload(digest, content.data(), content.size());  // once is enough
    }
    writer.Finish("complete");
  }
  const Reader reader(Path());
  for (const std::string& content : contents) {
    const auto read = reader.Payload(DigestOf(content.data(), content.size()));
    EXPECT_TRUE(std::string(read.begin(), read.end()) == content) << content.size() << " bytes";
  }
  Database database(Path(), SQLITE_OPEN_READONLY);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM payload"), 8);
  // Kept compressed only where that is smaller.
  EXPECT_EQ(database.Integer("SELECT count(*) FROM payload WHERE length(data) > bytes"), 0);
  EXPECT_EQ(database.Text("SELECT codec FROM payload WHERE bytes = 100000"), "zstd");
  EXPECT_EQ(database.Text("SELECT codec FROM payload WHERE bytes = 100"), "raw");
}

// After contents that nothing made smaller, a sample of the next one decides whether to try.
TEST_F(TraceTest, ContentsOfAProgramThatAreAlikeAreSampled) {
  const std::string random = RandomBytes(400000);
  std::vector<std::string> contents;
  for (size_t i = 0; i < 8; ++i) contents.push_back(random.substr(i * 4096, 4096));
  contents.emplace_back(4096, 'a');                 // found by its sample
  contents.push_back(random.substr(100000, 4000));  // in vain again, and not doubtful yet
  contents.push_back(std::string(2000, 'b') + random.substr(0, 300) + std::string(2000, 'b'));
  {
    Writer writer(Path(), WriterOptions());
    for (const std::string& content : contents) {
      writer.AddPayload(DigestOf(content.data(), content.size()), content.data(), content.size());
    }
    writer.Finish("complete");
  }
  const Reader reader(Path());
  for (const std::string& content : contents) {
    const auto read = reader.Payload(DigestOf(content.data(), content.size()));
    EXPECT_TRUE(std::string(read.begin(), read.end()) == content) << content.size() << " bytes";
  }
  Database database(Path(), SQLITE_OPEN_READONLY);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM payload WHERE codec = 'raw'"), 9);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM payload WHERE codec = 'zstd'"), 2);
}

TEST_F(TraceTest, APayloadInPiecesIsPutTogether) {
  Make();
  Database database(Path(), SQLITE_OPEN_READWRITE);
  const std::string digest = DigestOf("hello world", 11);
  database.Execute(("INSERT INTO payload VALUES('" + digest + "',1,6,'raw',x'20776f726c64'),('" +
                    digest + "',0,5,'raw',x'68656c6c6f')")
                       .c_str());
  const auto read = Reader(Path()).Payload(digest);
  EXPECT_EQ(std::string(read.begin(), read.end()), "hello world");
}

constexpr char kHasIndex[] = "SELECT count(*) FROM pragma_index_list('payload') WHERE \"unique\"";

// The index is made when the recording ends; whoever reads before has the contents all the same.
TEST_F(TraceTest, ContentsAreReadWhileTheRecordingGoesOn) {
  Writer writer(Path(), WriterOptions());
  std::vector<std::string> digests;
  for (int i = 0; i < 100; ++i) {
    const std::string content = std::to_string(i) + " of the values";
    digests.push_back(DigestOf(content.data(), content.size()));
    writer.AddPayload(digests.back(), content.data(), content.size());
  }
  writer.Commit();
  {
    const Reader reader(Path());
    EXPECT_EQ(reader.database().Integer(kHasIndex), 0);
    for (int i = 0; i < 100; ++i) {
      const auto read = reader.Payload(digests[static_cast<size_t>(i)]);
      EXPECT_EQ(std::string(read.begin(), read.end()), std::to_string(i) + " of the values");
    }
    EXPECT_EQ(ErrorOf([&] { reader.Payload(std::string(32, 'a')); }).first, 3);
  }
  writer.Finish("complete");
  EXPECT_EQ(Reader(Path()).database().Integer(kHasIndex), 1);
}

// Before schema version 8 the table itself declared what is unique.
TEST_F(TraceTest, ContentsOfAnOlderTraceAreReadAndAdded) {
  Make();
  {
    Database database(Path(), SQLITE_OPEN_READWRITE);
    database.Execute(
        "CREATE TABLE older(digest TEXT, piece INTEGER, bytes INTEGER, codec TEXT, data BLOB, "
        "PRIMARY KEY(digest, piece)); INSERT INTO older SELECT * FROM payload; DROP TABLE payload; "
        "ALTER TABLE older RENAME TO payload; PRAGMA writable_schema=1; UPDATE sqlite_master SET "
        "sql = replace(sql, '\"payload\"', 'payload') WHERE name = 'payload'; "
        "PRAGMA writable_schema=0; PRAGMA user_version=7");
  }
  const std::vector<uint8_t> value = {1, 2, 3, 4};
  const std::string digest = DigestOf(value.data(), value.size());
  {
    Reader reader(Path(), Reader::Mode::kReadWrite);
    Results results(reader);
    for (int twice = 0; twice < 2; ++twice) {
      results.AddValue(2, 4, TensorRef{}, true, value);
    }
    results.Commit();
  }
  const Reader reader(Path());
  EXPECT_EQ(reader.Payload(digest), value);
  EXPECT_EQ(reader.database().Integer(kHasIndex), 1);
  EXPECT_EQ(reader.database().Integer(
                ("SELECT count(*) FROM payload WHERE digest = '" + digest + "'").c_str()),
            1);
}

// A recorder that was killed left no index; a replay adds what it computed.
TEST_F(TraceTest, AValueThatIsAddedToATraceWithoutItsIndexIsThereOnce) {
  Make();
  Database(Path(), SQLITE_OPEN_READWRITE).Execute("DROP INDEX payload_once");
  const std::vector<uint8_t> value = {1, 2, 3, 4};
  {
    Reader reader(Path(), Reader::Mode::kReadWrite);
    for (int twice = 0; twice < 2; ++twice) {
      Results results(reader);
      results.AddValue(2, 4, TensorRef{}, true, value);
      results.Commit();
    }
  }
  const Reader reader(Path());
  EXPECT_EQ(reader.Payload(DigestOf(value.data(), value.size())), value);
  EXPECT_EQ(reader.database().Integer("SELECT count(*) FROM payload WHERE bytes = 4"), 1);
}

TEST(Compressing, ThatSavesTooLittleIsLeftOut) {
  // A tenth of it is zeros.
  const std::string content = RandomBytes(3600) + std::string(400, '\0');
  EXPECT_TRUE(Compress(content.data(), content.size(), {.level = 1, .part = 20}));
  EXPECT_FALSE(Compress(content.data(), content.size(), {.level = 1, .part = 8}));
  EXPECT_FALSE(Compress(content.data(), content.size(), {.level = 0}));
}

TEST_F(TraceTest, AnUnknownPayloadSaysHowToRecordIt) {
  const Reader reader(Make());
  const std::string digest(32, 'a');
  EXPECT_FALSE(reader.HasPayload(digest));
  const auto [kind, sentence] = ErrorOf([&] { reader.Payload(digest); });
  EXPECT_EQ(kind, 3);
  EXPECT_EQ(sentence, "'" + Path() + "' holds no payload " + digest +
                          "; record it with --payload inputs or all");
}

TEST_F(TraceTest, APayloadThatDoesNotMatchItsDigestIsDamaged) {
  for (const char* change :
       {"UPDATE payload SET data = zeroblob(length(data))", "UPDATE payload SET codec = 'zstd'",
        "UPDATE payload SET bytes = bytes + 1", "UPDATE payload SET bytes = -1",
        "UPDATE payload SET bytes = 1000000000000"}) {
    std::filesystem::remove(Path());
    Make();
    const std::string digest = Reader(Path()).Snapshots()[0].digest;
    {
      Database database(Path(), SQLITE_OPEN_READWRITE);
      database.Execute(change);
    }
    const Reader reader(Path());
    const auto [kind, sentence] = ErrorOf([&] { reader.Payload(digest); });
    EXPECT_EQ(kind, 3) << change;
    EXPECT_NE(sentence.find("is damaged"), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace acltape::storage
