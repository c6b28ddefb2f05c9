#include "replayer/script/value_store.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "replayer/script/output_judge.h"
#include "storage/error.h"
#include "storage/payload.h"

namespace acltape::replayer {
namespace {

using Content = std::vector<uint8_t>;

Content RandomBytes(std::mt19937_64& random, size_t size) {
  Content content(size);
  for (uint8_t& byte : content) byte = static_cast<uint8_t>(random());
  return content;
}

TEST(ValueStore, GivesBackWhatWasKeptFromMemoryAndFromTheFile) {
  std::mt19937_64 random(1);
  script::ValueStore store(1000);
  std::vector<Content> contents;
  for (const size_t size : {600, 500, 0, 300, 4096, 1, 100, 70000}) {
    contents.push_back(RandomBytes(random, size));
    store.Keep(std::to_string(contents.size()), contents.back());
  }
  EXPECT_EQ(store.bytes_in_memory(), 600 + 300 + 1);
  EXPECT_EQ(store.bytes_in_file(), 500 + 4096 + 100 + 70000);
  for (size_t i = contents.size(); i > 0; --i) {
    const Bytes bytes = store.Get(std::to_string(i));
    ASSERT_NE(bytes, nullptr) << i;
    EXPECT_EQ(*bytes, contents[i - 1]) << i;
  }
  EXPECT_EQ(store.Get("other"), nullptr);
}

TEST(ValueStore, KeepsAContentOnce) {
  script::ValueStore store(10);
  for (int i = 0; i < 5; ++i) {
    store.Keep("small", Content(8, 1));
    store.Keep("large", Content(80, 2));
  }
  EXPECT_EQ(store.bytes_in_memory(), 8);
  EXPECT_EQ(store.bytes_in_file(), 80);
}

TEST(ValueStore, SaysWhereItsFileCannotBe) {
  const char* before = std::getenv("TMPDIR");
  const std::string folder = before == nullptr ? "" : before;
  setenv("TMPDIR", "/no/such/folder", 1);
  script::ValueStore store(0);
  std::string message;
  try {
    store.Keep("a", Content(8));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    message = error.what();
  }
  if (before == nullptr) {
    unsetenv("TMPDIR");
  } else {
    setenv("TMPDIR", folder.c_str(), 1);
  }
  EXPECT_NE(message.find("/no/such/folder"), std::string::npos) << message;
  EXPECT_NE(message.find("TMPDIR"), std::string::npos) << message;
  EXPECT_EQ(store.Get("a"), nullptr);
  store.Keep("a", Content(8, 3));  // the folder is another one now
  EXPECT_EQ(*store.Get("a"), Content(8, 3));
}

Content Floats(const std::vector<float>& values) {
  Content content(values.size() * sizeof(float));
  std::memcpy(content.data(), values.data(), content.size());
  return content;
}

storage::Layout Vector(int64_t elements) {
  storage::Layout layout;
  layout.dtype = storage::DType::kFloat32;
  layout.shape = {elements};
  layout.strides = {1};
  return layout;
}

TEST(OutputJudge, AppliesTheRulesOfTheOperatorAndSaysWhichOneWasBroken) {
  script::OutputJudge judge(std::make_shared<const analyzer::metrics::Standard>(
                                analyzer::metrics::Standard::Load("ascend")),
                            0);
  const Content reference = Floats({1, 2, 3, 4});
  const std::string digest = judge.Keep(reference);
  const auto judged = [&](const char* op, const std::vector<float>& values) {
    return judge.Judge(op, Vector(4), digest, Floats(values));
  };
  const float near = 4.0000005F;  // one unit
  EXPECT_FALSE(judged("aten::mul.Tensor", {1, 2, 3, near}));
  ASSERT_TRUE(judged("aten::mul.Tensor", {1, 2, 3, 5}));
  const script::OutputDifference difference = *judged("aten::mul.Tensor", {1, 2, 3, 5});
  EXPECT_EQ(difference.metrics.max_abs, 1);
  EXPECT_EQ(difference.metrics.first_index, 3);
  EXPECT_NE(difference.reason.find(" > "), std::string::npos) << difference.reason;
  EXPECT_NE(difference.reason.find("float32"), std::string::npos) << difference.reason;
  EXPECT_NE(difference.reason.find("elementwise"), std::string::npos) << difference.reason;
  const auto product = judged("aten::mm", {1, 2, 3, 5});
  ASSERT_TRUE(product);
  EXPECT_NE(product->reason.find("matmul"), std::string::npos) << product->reason;
}

TEST(OutputJudge, WithoutTheReferencesValuesAnotherDigestIsADifference) {
  const script::OutputJudge judge(std::make_shared<const analyzer::metrics::Standard>(
      analyzer::metrics::Standard::Load("ascend")));
  const auto difference = judge.Judge("aten::mul", Vector(1), "unknown", Floats({1}));
  ASSERT_TRUE(difference);
  EXPECT_NE(difference->reason.find("no values"), std::string::npos) << difference->reason;
}

TEST(OutputJudge, BitwiseKeepsDigestsAlone) {
  script::OutputJudge judge(std::make_shared<const analyzer::metrics::Standard>());
  EXPECT_TRUE(judge.bitwise());
  const Content content = Floats({1, 2});
  EXPECT_EQ(judge.Keep(content), storage::DigestOf(content.data(), content.size()));
}

}  // namespace
}  // namespace acltape::replayer
