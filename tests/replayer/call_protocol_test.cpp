// Messages between the two ends of the call protocol arrive as they were sent. Damaged ones are
// refused with a sentence.
#include "replayer/sides/call_protocol.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "replayer/sides/byte_versions.h"

namespace acltape::replayer {
namespace {

storage::Layout LayoutOf(storage::DType dtype, int64_t offset, std::vector<int64_t> shape,
                         std::vector<int64_t> strides) {
  storage::Layout layout;
  layout.dtype = dtype;
  layout.byte_offset = offset;
  layout.shape = std::move(shape);
  layout.strides = std::move(strides);
  return layout;
}

// One of every command, with every kind of value.
std::vector<sides::SideCommand> Commands() {
  const auto bytes =
      std::make_shared<const std::vector<uint8_t>>(std::vector<uint8_t>{9, 8, 7, 6, 5, 4});
  analyzer::lowering::LoweredValue list;
  list.kind = storage::ValueKind::kTensorList;
  analyzer::lowering::LoweredTensor strided;
  strided.present = true;
  strided.memory = analyzer::lowering::OperandMemory::Block(3);
  strided.layout = LayoutOf(storage::DType::kBfloat16, 64, {2, 0, 5}, {10, 5, 1});
  strided.layout.format = "NCHW";
  strided.layout.flags = 1;
  list.tensors = {strided, analyzer::lowering::LoweredTensor{}};
  analyzer::lowering::LoweredValue scalar;
  scalar.kind = storage::ValueKind::kScalar;
  scalar.integer = -7;
  scalar.real = 0.1;
  scalar.text = "float32";
  analyzer::lowering::LoweredValue numbers;
  numbers.kind = storage::ValueKind::kRealList;
  numbers.integers = {INT64_MIN, 0, INT64_MAX};
  numbers.reals = {-0.0, 1e300};
  return {sides::PutBytes{{1, 256}, bytes, 2, 3}, sides::TakeBytes{{0, 5}, 1 << 20},
          sides::MoveBytes{{1, 2}, {3, 4}, 5},
          sides::CallOperator{812, {"aclnnCat", {list, scalar, numbers, {}}}},
          sides::TakeDigest{{2, 8}, LayoutOf(storage::DType::kFloat32, 8, {}, {})}};
}

// Bodies and how they are read.
struct Body {
  const char* name;
  std::string body;
  void (*decode)(std::string_view);
};
std::vector<Body> Bodies() {
  sides::SideResult digest;
  digest.digest = std::string(32, 'a');
  sides::SideResult bytes;
  bytes.bytes = {1, 2, 3};
  return {
      {"open", sides::EncodeOpen("/opt/lib64"),
       [](std::string_view body) { sides::DecodeOpen(body); }},
      {"text", sides::EncodeText("why"), [](std::string_view body) { sides::DecodeText(body); }},
      {"prepare", sides::EncodePrepare({0, 4096}),
       [](std::string_view body) { sides::DecodePrepare(body); }},
      {"perform", sides::EncodePerform(Commands()),
       [](std::string_view body) { sides::DecodePerform(body); }},
      {"results", sides::EncodeResults({digest, bytes}),
       [](std::string_view body) { sides::DecodeResults(body); }},
  };
}

TEST(CallProtocol, CommandsArriveAsTheyWereSent) {
  const std::vector<sides::SideCommand> got =
      sides::DecodePerform(sides::EncodePerform(Commands()));
  ASSERT_EQ(got.size(), 5u);
  const auto& put = std::get<sides::PutBytes>(got[0]);
  EXPECT_EQ(put.to, (Spot{1, 256}));
  EXPECT_EQ(*put.content, (std::vector<uint8_t>{7, 6, 5}));
  EXPECT_EQ(put.first, 0);
  EXPECT_EQ(put.bytes, 3);
  EXPECT_EQ(std::get<sides::TakeBytes>(got[1]).bytes, 1 << 20);
  EXPECT_EQ(std::get<sides::MoveBytes>(got[2]).from, (Spot{3, 4}));
  const auto& call = std::get<sides::CallOperator>(got[3]);
  EXPECT_EQ(call.call_id, 812);
  EXPECT_EQ(call.invocation.op, "aclnnCat");
  ASSERT_EQ(call.invocation.arguments.size(), 4u);
  const analyzer::lowering::LoweredValue& list = call.invocation.arguments[0];
  ASSERT_EQ(list.tensors.size(), 2u);
  EXPECT_EQ(list.tensors[0].memory.block(), 3);
  EXPECT_EQ(list.tensors[0].layout.shape, (std::vector<int64_t>{2, 0, 5}));
  EXPECT_EQ(list.tensors[0].layout.strides, (std::vector<int64_t>{10, 5, 1}));
  EXPECT_EQ(list.tensors[0].layout.dtype, storage::DType::kBfloat16);
  EXPECT_EQ(list.tensors[0].layout.format, "NCHW");
  EXPECT_EQ(list.tensors[0].layout.flags, 1u);
  EXPECT_FALSE(list.tensors[1].present);
  EXPECT_EQ(call.invocation.arguments[1].real, 0.1);
  EXPECT_EQ(call.invocation.arguments[1].text, "float32");
  EXPECT_EQ(call.invocation.arguments[2].integers.front(), INT64_MIN);
  EXPECT_TRUE(std::signbit(call.invocation.arguments[2].reals[0]));
  EXPECT_TRUE(std::get<sides::TakeDigest>(got[4]).layout.shape.empty());
}

TEST(CallProtocol, EveryMessageCutShortIsRefused) {
  for (const Body& own : Bodies()) {
    for (size_t bytes = 0; bytes < own.body.size(); ++bytes) {
      EXPECT_THROW(own.decode(std::string_view(own.body).substr(0, bytes)), Error)
          << own.name << " of " << bytes << " bytes";
    }
    EXPECT_THROW(own.decode(own.body + '\0'), Error) << own.name;
  }
}

// Whatever the numbers in it say, reading ends with a message or an Error.
TEST(CallProtocol, DamagedMessagesAreReadOrRefused) {
  std::mt19937_64 random(7);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    for (const Body& own : Bodies()) {
      std::string body = own.body;
      for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
        body[random() % body.size()] = static_cast<char>(random() % 4 == 0 ? 0xFF : random());
      }
      try {
        own.decode(body);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(CallProtocol, WhatIsNoMessageIsNamed) {
  const auto why = [](std::string_view body) -> std::string {
    try {
      sides::DecodePerform(body);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  std::string body = sides::EncodePerform({sides::TakeBytes{{0, 0}, 1}});
  body[8] = 5;  // after the five commands
  EXPECT_EQ(why(body), "a message between the sides has a command of no known kind.");
  body = sides::EncodePerform({});
  body[7] = 1;
  EXPECT_EQ(why(body), "a message between the sides has a list that goes beyond its end.");
  EXPECT_THROW(sides::DecodePrepare(sides::EncodePrepare({-1})), Error);
  std::string other_version = sides::EncodeOpen("");
  other_version[0] = 2;
  EXPECT_THROW(sides::DecodeOpen(other_version), Error);
}

class Frames : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  void Close(int end) {
    close(ends_[end]);
    ends_[end] = -1;
  }
  void Write(const void* bytes, size_t count) {
    ASSERT_EQ(write(ends_[0], bytes, count), static_cast<ssize_t>(count));
  }
  std::string Refusal() {
    sides::CallFrame frame;
    try {
      sides::ReceiveFrame(ends_[1], frame);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  int ends_[2] = {-1, -1};
};

TEST_F(Frames, GoAcross) {
  ASSERT_TRUE(sides::SendFrame(ends_[0], sides::CallMessage::kPrepare, "abc"));
  ASSERT_TRUE(sides::SendFrame(ends_[0], sides::CallMessage::kDone, ""));
  sides::CallFrame frame;
  ASSERT_TRUE(sides::ReceiveFrame(ends_[1], frame));
  EXPECT_EQ(frame.kind, sides::CallMessage::kPrepare);
  EXPECT_EQ(frame.body, "abc");
  ASSERT_TRUE(sides::ReceiveFrame(ends_[1], frame));
  EXPECT_EQ(frame.kind, sides::CallMessage::kDone);
  EXPECT_EQ(frame.body, "");
}

TEST_F(Frames, EndBetweenMessagesIsAnEndAndInsideOneAnError) {
  sides::CallFrame frame;
  const char head[16] = {'A', 'C', 'L', 'S', 3, 0, 0, 0, 10};
  Write(head, 5);
  Close(0);
  EXPECT_NE(Refusal().find("ended inside a message"), std::string::npos);
  EXPECT_FALSE(sides::ReceiveFrame(ends_[1], frame));
}

TEST_F(Frames, TornBody) {
  const char head[16] = {'A', 'C', 'L', 'S', 3, 0, 0, 0, 10};
  Write(head, sizeof head);
  Write("abc", 3);
  Close(0);
  EXPECT_NE(Refusal().find("ended inside a message"), std::string::npos);
}

TEST_F(Frames, WrongMagic) {
  Write("GET / HTTP/1.1\r\n", 16);
  EXPECT_NE(Refusal().find("no message"), std::string::npos);
}

TEST_F(Frames, UnknownKind) {
  const char head[16] = {'A', 'C', 'L', 'S', 4};
  Write(head, sizeof head);
  EXPECT_NE(Refusal().find("unknown kind 4"), std::string::npos);
}

TEST_F(Frames, LengthBeyondTheMost) {
  unsigned char head[16] = {'A', 'C', 'L', 'S', 3};
  std::memset(head + 8, 0xFF, 8);
  Write(head, sizeof head);
  EXPECT_NE(Refusal().find("more than one may hold"), std::string::npos);
}

TEST_F(Frames, SendingToNobodyIsToldAndNoSignal) {
  Close(1);
  EXPECT_FALSE(sides::SendFrame(ends_[0], sides::CallMessage::kDone, std::string(1 << 20, 'x')));
}

// Against an array with a version per byte.
TEST(ByteVersions, AreThoseThatWereSetLast) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    sides::ByteVersions versions;
    std::vector<sides::ByteVersion> expected(40);
    for (int i = 0; i < 30; ++i) {
      const auto first = static_cast<int64_t>(random() % 40);
      const auto end = std::min<int64_t>(40, first + static_cast<int64_t>(random() % 12));
      const sides::ByteVersion version{static_cast<int64_t>(random() % 4),
                                       static_cast<int64_t>(random() % 2)};
      versions.Set(first, end, version);
      std::fill(expected.begin() + first, expected.begin() + end, version);
      const auto from = static_cast<int64_t>(random() % 40);
      const auto until = std::min<int64_t>(40, from + static_cast<int64_t>(random() % 20));
      int64_t byte = from;
      const sides::ByteVersion* before = nullptr;
      const auto ranges = versions.Of(from, until);
      for (const sides::ByteVersions::Range& range : ranges) {
        ASSERT_EQ(range.first, byte);
        ASSERT_LT(range.first, range.end);
        for (; byte < range.end; ++byte)
          ASSERT_EQ(range.version, expected[byte]) << "byte " << byte;
        ASSERT_TRUE(before == nullptr || !(*before == range.version)) << "neighbours are alike";
        before = &range.version;
      }
      ASSERT_EQ(byte, std::max(from, until));
    }
  }
}

}  // namespace
}  // namespace acltape::replayer
