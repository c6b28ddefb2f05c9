// Contents: compressed or not, in one piece or several, checked when read.
#include <random>

#include "storage/database.h"
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
