#include "replayer/values/contents.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/analyzer/trace_builder.h"

namespace acltape::replayer {
namespace {

using test::In;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using test::TraceBuilder;

// relu(x), with or without the content of x.
void WriteRelu(const std::string& path, bool snapshot, bool payload) {
  TraceBuilder trace(path);
  const Tensor x = trace.NewTensor({3});
  trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({3}))});
  if (snapshot) trace.Before(x, std::vector<float>{-1, 0, 2}, payload);
  trace.Finish();
}

TEST(Contents, RecordedInputsAreFedBeforeTheirFirstRead) {
  TemporaryTrace file("feeds");
  WriteRelu(file.path(), true, true);
  const storage::Reader reader(file.path());
  const analyzer::Program program = analyzer::LoadProgram(reader);
  Contents contents(program, Data::kRecorded, 1);
  ASSERT_EQ(contents.FeedsOf(0).size(), 1u);
  const Bytes bytes = contents.Get(contents.FeedsOf(0)[0]);
  float values[3];
  ASSERT_EQ(bytes->size(), sizeof values);
  std::memcpy(values, bytes->data(), sizeof values);
  EXPECT_EQ(values[2], 2.0f);
  EXPECT_FALSE(contents.has_recorded_results());
}

TEST(Contents, ATraceWithoutValuesSaysHowToRecordThem) {
  for (const bool snapshot : {false, true}) {
    TemporaryTrace file("novalues");
    WriteRelu(file.path(), snapshot, /*payload=*/false);
    const storage::Reader reader(file.path());
    const analyzer::Program program = analyzer::LoadProgram(reader);
    try {
      Contents contents(program, Data::kRecorded, 1);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kTrace);
      EXPECT_NE(std::string(error.what()).find("records no values"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("--payload inputs"), std::string::npos);
    }
  }
}

TEST(Contents, WhatStaysInMemoryIsBounded) {
  TemporaryTrace file("bounded");
  {
    TraceBuilder trace(file.path());
    for (int i = 0; i < 5; ++i) {
      const Tensor x = trace.NewTensor({100});
      trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({100}))});
      trace.Before(x, std::vector<float>(100, static_cast<float>(i)));
    }
    trace.Finish();
  }
  const storage::Reader reader(file.path());
  const analyzer::Program program = analyzer::LoadProgram(reader);
  Contents contents(program, Data::kRecorded, 1);
  const auto first_value = [&](int64_t leaf) {
    float value = -1;
    std::memcpy(&value, contents.Get(contents.FeedsOf(leaf)[0])->data(), sizeof value);
    return value;
  };
  // Five of 400 bytes each.
  for (const auto& [most, kept] : {std::pair<int64_t, int64_t>{Contents::kKeptBytes, 2000},
                                   {2000, 2000},
                                   {1000, 400},
                                   {399, 0},
                                   {0, 0}}) {
    contents.KeepAtMost(most);
    for (int64_t leaf = 0; leaf < 5; ++leaf) {
      EXPECT_EQ(first_value(leaf), static_cast<float>(leaf));
      EXPECT_LE(contents.kept_bytes(), most);
    }
    EXPECT_EQ(contents.kept_bytes(), kept) << most;
  }
}

TEST(Contents, SyntheticValuesAreSeededFiniteAndDifferPerBuffer) {
  TemporaryTrace file("synthetic");
  {
    TraceBuilder trace(file.path());
    trace.Call("aten::add.Tensor",
               {In("self", trace.NewTensor({64})),
                In("other", trace.NewTensor({64}, storage::DType::kFloat16))},
               {Out("out", trace.NewTensor({64}))});
    trace.Finish();
  }
  const storage::Reader reader(file.path());
  const analyzer::Program program = analyzer::LoadProgram(reader);
  Contents first(program, Data::kSynthesised, 1);
  Contents again(program, Data::kSynthesised, 1);
  Contents other(program, Data::kSynthesised, 2);
  ASSERT_EQ(first.FeedsOf(0).size(), 2u);
  const Feed& feed = first.FeedsOf(0)[0];
  EXPECT_EQ(*first.Get(feed), *again.Get(feed));
  EXPECT_NE(*first.Get(feed), *other.Get(feed));
  const Bytes bytes = first.Get(feed);
  for (size_t i = 0; i < bytes->size(); i += 4) {
    float value;
    std::memcpy(&value, bytes->data() + i, sizeof value);
    EXPECT_LE(std::fabs(value), 1.0f);
  }
}

}  // namespace
}  // namespace acltape::replayer
