// Random numbers by a task of the stream: rules RND. The statistics have bounds of five standard
// deviations and fixed seeds, so they never fail by chance.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "runtime/philox.h"
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr auto kDropout = ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK;
constexpr auto kUniform = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
constexpr auto kNormal = ACL_RT_RANDOM_NUM_FUNC_TYPE_NORMAL_DIS;
constexpr auto kTruncated = ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS;

template <typename T>
aclrtRandomParaInfo Value(T value) {
  aclrtRandomParaInfo info{};
  std::memcpy(info.valueOrAddr, &value, sizeof(value));
  info.size = sizeof(value);
  return info;
}

aclrtRandomParaInfo Address(const void* address) {
  aclrtRandomParaInfo info = Value(address);
  info.isAddr = 1;
  return info;
}

float NumberOf(aclDataType type, const void* memory, size_t index) {
  if (type == ACL_FLOAT) return static_cast<const float*>(memory)[index];
  const uint16_t bits = static_cast<const uint16_t*>(memory)[index];
  if (type == ACL_FLOAT16) return aclFloat16ToFloat(bits);
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

// A parameter of a floating-point type.
aclrtRandomParaInfo Number(aclDataType type, float value) {
  if (type == ACL_FLOAT) return Value(value);
  if (type == ACL_FLOAT16) return Value(aclFloatToFloat16(value));
  return Value(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
}

struct Moments {
  double mean = 0;
  double variance = 0;
  double skewness = 0;
  double kurtosis = 0;
};

Moments MomentsOf(const std::vector<float>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  Moments moments;
  for (float number : numbers) moments.mean += number / count;
  double third = 0;
  double fourth = 0;
  for (float number : numbers) {
    const double apart = number - moments.mean;
    moments.variance += apart * apart / count;
    third += apart * apart * apart / count;
    fourth += apart * apart * apart * apart / count;
  }
  moments.skewness = third / std::pow(moments.variance, 1.5);
  moments.kurtosis = fourth / (moments.variance * moments.variance);
  return moments;
}

// Pearson's statistic for equal bins. Its mean is one less than the number of bins.
double ChiSquare(const std::vector<size_t>& hits) {
  const double expected =
      static_cast<double>(std::accumulate(hits.begin(), hits.end(), size_t{0})) /
      static_cast<double>(hits.size());
  double sum = 0;
  for (size_t hit : hits) {
    const double apart = static_cast<double>(hit) - expected;
    sum += apart * apart / expected;
  }
  return sum;
}

class Random : public SoftDevice {
 protected:
  static constexpr size_t kNumbers = 200000;
  static constexpr size_t kBytes = kNumbers * 8;
  static constexpr aclDataType kFloats[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

  void SetUp() override {
    SoftDevice::SetUp();
    ASSERT_OK(aclrtMalloc(&result_, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclrtMalloc(&counter_, 16, ACL_MEM_MALLOC_HUGE_FIRST));
    std::memset(result_, 0, kBytes);
    ResetCounter();
  }
  void TearDown() override {
    aclrtFree(result_);
    aclrtFree(counter_);
    SoftDevice::TearDown();
  }

  void ResetCounter() { std::memset(counter_, 0, 16); }
  uint32_t CounterWord() { return *static_cast<uint32_t*>(counter_); }

  aclrtRandomNumTaskInfo Info(aclrtRandomNumFuncType function, aclDataType type,
                              aclrtRandomParaInfo first, aclrtRandomParaInfo second,
                              uint64_t count = kNumbers) {
    aclrtRandomNumTaskInfo info{};
    info.dataType = type;
    info.randomNumFuncParaInfo.funcType = function;
    // The parameters of each distribution lie where those of the uniform one do.
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo = {first, second};
    info.randomResultAddr = result_;
    info.randomCounterAddr = counter_;
    info.randomSeed = Value(uint64_t{20240229});
    info.randomNum = Value(count);
    return info;
  }
  aclrtRandomNumTaskInfo Floats(uint64_t count) {
    return Info(kUniform, ACL_FLOAT, Value(0.0f), Value(1.0f), count);
  }

  void Run(const aclrtRandomNumTaskInfo& info) {
    ASSERT_OK(aclrtRandomNumAsync(&info, stream_, nullptr));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
  }
  std::vector<float> Draw(aclrtRandomNumFuncType function, aclDataType type, float first,
                          float second) {
    Run(Info(function, type, Number(type, first), Number(type, second)));
    std::vector<float> numbers(kNumbers);
    for (size_t i = 0; i < kNumbers; ++i) numbers[i] = NumberOf(type, result_, i);
    return numbers;
  }
  std::vector<float> Results(size_t count) {
    auto* numbers = static_cast<float*>(result_);
    return {numbers, numbers + count};
  }

  // Draws integers of a range of `Bins` numbers and holds that all of them are equally frequent.
  template <typename T, size_t Bins>
  void CheckIntegers(aclDataType type, T least) {
    const T most = static_cast<T>(least + static_cast<T>(Bins));
    Run(Info(kUniform, type, Value(least), Value(most)));
    std::vector<size_t> hits(Bins);
    for (size_t i = 0; i < kNumbers; ++i) {
      const T number = static_cast<T*>(result_)[i];
      ASSERT_GE(number, least);
      ASSERT_LT(number, most);
      ++hits[static_cast<size_t>(number - least)];
    }
    EXPECT_LT(ChiSquare(hits), Bins - 1 + 5 * std::sqrt(2.0 * (Bins - 1)));
  }

  void* result_ = nullptr;
  void* counter_ = nullptr;
};

TEST_F(Random, RND_01_TheGeneratorGivesThePublishedNumbers) {
  struct Known {
    uint64_t seed;
    Philox::Counter counter;
    uint32_t block[4];
  };
  const Known known[] = {
      {0, {{0, 0, 0, 0}}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {UINT64_MAX,
       {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x299f31d0a4093822,
       {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Known& row : known) {
    Philox generator(row.seed, row.counter);
    for (uint32_t word : row.block) EXPECT_EQ(generator.Next(), word);
  }
}

TEST_F(Random, RND_01_UniformNumbersFillTheirRangeEvenly) {
  for (aclDataType type : kFloats) {
    const std::vector<float> numbers = Draw(kUniform, type, -2, 3);
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    EXPECT_GE(*least, -2) << type;
    EXPECT_LT(*most, 3) << type;
    const Moments moments = MomentsOf(numbers);
    EXPECT_NEAR(moments.mean, 0.5, 5 * std::sqrt(25.0 / 12 / kNumbers) + 0.004) << type;
    EXPECT_NEAR(moments.variance, 25.0 / 12, 0.02) << type;
  }
}

TEST_F(Random, RND_01_UniformNumbersAreEvenInBinsAndDoNotFollowEachOther) {
  const std::vector<float> numbers = Draw(kUniform, ACL_FLOAT, 0, 1);
  std::vector<size_t> hits(100);
  double product = 0;
  for (size_t i = 0; i < kNumbers; ++i) {
    ++hits[static_cast<size_t>(numbers[i] * 100)];
    if (i > 0) product += (numbers[i] - 0.5) * (numbers[i - 1] - 0.5);
  }
  EXPECT_LT(ChiSquare(hits), 99 + 5 * std::sqrt(2.0 * 99));
  EXPECT_LT(std::abs(product / kNumbers), 5.0 / 12 / std::sqrt(kNumbers));
}

TEST_F(Random, RND_01_UniformIntegersAreBelowTheirMaximum) {
  CheckIntegers<int32_t, 10>(ACL_INT32, -5);
  CheckIntegers<int64_t, 100>(ACL_INT64, -5000000000);
  CheckIntegers<uint32_t, 7>(ACL_UINT32, 4294967288u);
  CheckIntegers<uint64_t, 64>(ACL_UINT64, UINT64_MAX - 64);
  Run(Info(kUniform, ACL_INT32, Value(int32_t{4}), Value(int32_t{4}), 3));
  EXPECT_EQ(static_cast<int32_t*>(result_)[2], 4);
}

TEST_F(Random, RND_01_NormalNumbersHaveTheirMoments) {
  for (aclDataType type : kFloats) {
    const std::vector<float> numbers = Draw(kNormal, type, 1, 2);
    const Moments moments = MomentsOf(numbers);
    EXPECT_NEAR(moments.mean, 1, 5 * 2 / std::sqrt(kNumbers)) << type;
    EXPECT_NEAR(moments.variance, 4, 5 * 4 * std::sqrt(2.0 / kNumbers)) << type;
    EXPECT_NEAR(moments.skewness, 0, 5 * std::sqrt(6.0 / kNumbers)) << type;
    EXPECT_NEAR(moments.kurtosis, 3, 5 * std::sqrt(24.0 / kNumbers)) << type;
    const auto inside = std::count_if(numbers.begin(), numbers.end(),
                                      [](float number) { return number > -1 && number < 3; });
    EXPECT_NEAR(static_cast<double>(inside) / kNumbers, 0.6827, 0.0065) << type;
  }
}

TEST_F(Random, RND_01_TruncatedNormalNumbersLieWithinTwoDeviations) {
  for (aclDataType type : kFloats) {
    const std::vector<float> numbers = Draw(kTruncated, type, 1, 2);
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    EXPECT_GE(*least, -3) << type;
    EXPECT_LE(*most, 5) << type;
    const Moments moments = MomentsOf(numbers);
    EXPECT_NEAR(moments.mean, 1, 5 * 1.76 / std::sqrt(kNumbers)) << type;
    EXPECT_NEAR(moments.variance, 4 * 0.7737, 0.04) << type;
  }
}

TEST_F(Random, RND_01_ADropoutMaskHasABitForEachNumberAndTheRatioIsThatOfZeros) {
  constexpr size_t kBits = kNumbers - 3;
  for (aclDataType type : kFloats) {
    std::memset(result_, 0xFF, kBytes);
    Run(Info(kDropout, type, Number(type, 0.25f), {}, kBits));
    const auto* bytes = static_cast<const uint8_t*>(result_);
    auto bit = [bytes](size_t i) { return bytes[i / 8] >> i % 8 & 1; };
    size_t ones = 0;
    size_t pairs = 0;
    for (size_t i = 0; i < kBits; ++i) {
      ones += static_cast<size_t>(bit(i));
      if (i > 0) pairs += static_cast<size_t>(bit(i) & bit(i - 1));
    }
    EXPECT_NEAR(static_cast<double>(ones) / kBits, 0.75, 5 * std::sqrt(0.1875 / kBits)) << type;
    EXPECT_NEAR(static_cast<double>(pairs) / kBits, 0.5625, 0.008) << type;
    EXPECT_EQ(bytes[kBits / 8] >> kBits % 8, 0);  // after the last number
    EXPECT_EQ(bytes[kBits / 8 + 1], 0xFF);
  }
}

TEST_F(Random, RND_01_RatiosOfZeroAndOneKeepAllAndNothing) {
  Run(Info(kDropout, ACL_FLOAT, Value(0.0f), {}, 64));
  EXPECT_EQ(*static_cast<uint64_t*>(result_), UINT64_MAX);
  Run(Info(kDropout, ACL_FLOAT, Value(1.0f), {}, 64));
  EXPECT_EQ(*static_cast<uint64_t*>(result_), 0u);
}

TEST_F(Random, RND_02_EqualSeedsAndCountersGiveEqualNumbers) {
  Run(Floats(100));
  const std::vector<float> numbers = Results(100);
  ResetCounter();
  Run(Floats(100));
  EXPECT_EQ(Results(100), numbers);
  ResetCounter();
  aclrtRandomNumTaskInfo info = Floats(100);
  info.randomSeed = Value(uint64_t{20240301});
  Run(info);
  EXPECT_NE(Results(100), numbers);
}

TEST_F(Random, RND_02_TheTaskMovesTheCounterSoThatTheNextOneGoesOn) {
  Run(Floats(16));
  EXPECT_EQ(CounterWord(), 4u);  // blocks of four
  const std::vector<float> numbers = Results(16);
  ResetCounter();
  Run(Floats(8));
  std::vector<float> parts = Results(8);
  Run(Floats(8));
  for (float number : Results(8)) parts.push_back(number);
  EXPECT_EQ(parts, numbers);
}

TEST_F(Random, RND_02_EachReplayOfAGraphDrawsNewNumbers) {
  Begin(stream_);
  const aclrtRandomNumTaskInfo info = Floats(8);
  ASSERT_OK(aclrtRandomNumAsync(&info, stream_, nullptr));
  aclmdlRI model = End(stream_);
  EXPECT_EQ(CounterWord(), 0u);
  std::vector<std::vector<float>> draws;
  for (int replay = 0; replay < 2; ++replay) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    draws.push_back(Results(8));
  }
  EXPECT_NE(draws[0], draws[1]);
  EXPECT_EQ(CounterWord(), 4u);
  EXPECT_OK(aclmdlRIDestroy(model));
}

TEST_F(Random, RND_03_AParameterInMemoryIsReadWhenTheTaskRuns) {
  struct Parameters {
    uint64_t count;
    uint64_t seed;
    float least;
    float most;
  };
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, sizeof(Parameters), ACL_MEM_MALLOC_HUGE_FIRST));
  auto* parameters = static_cast<Parameters*>(memory);
  *parameters = {0, 0, 0, 0};
  aclrtRandomNumTaskInfo info =
      Info(kUniform, ACL_FLOAT, Address(&parameters->least), Address(&parameters->most));
  info.randomNum = Address(&parameters->count);
  info.randomSeed = Address(&parameters->seed);
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtRandomNumAsync(&info, stream_, nullptr));
  *parameters = {8, 5, 10, 11};
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  for (float number : Results(8)) EXPECT_TRUE(number >= 10 && number < 11) << number;
  EXPECT_EQ(static_cast<float*>(result_)[8], 0);
  EXPECT_OK(aclrtFree(memory));
}

TEST_F(Random, RND_03_AShortValueIsFilledWithZeros) {
  aclrtRandomNumTaskInfo info = Floats(8);
  info.randomNum = Value(uint8_t{4});
  Run(info);
  EXPECT_NE(static_cast<float*>(result_)[3], 0);
  EXPECT_EQ(static_cast<float*>(result_)[4], 0);
}

TEST_F(Random, RND_04_NullAndReservedArgumentsAreRefused) {
  aclrtRandomNumTaskInfo info = Floats(8);
  EXPECT_CODE(100000, aclrtRandomNumAsync(nullptr, stream_, nullptr));
  EXPECT_CODE(100000, aclrtRandomNumAsync(&info, stream_, result_));
  info.randomResultAddr = nullptr;
  EXPECT_CODE(100000, aclrtRandomNumAsync(&info, stream_, nullptr));
  info = Floats(8);
  info.randomCounterAddr = nullptr;
  EXPECT_CODE(100000, aclrtRandomNumAsync(&info, stream_, nullptr));
  info = Floats(8);
  info.randomNum = Address(nullptr);
  EXPECT_CODE(100000, aclrtRandomNumAsync(&info, stream_, nullptr));
}

TEST_F(Random, RND_04_BadParametersAreRefused) {
  auto with = [this](auto change) {
    aclrtRandomNumTaskInfo info = Floats(8);
    change(info);
    return aclrtRandomNumAsync(&info, stream_, nullptr);
  };
  using Task = aclrtRandomNumTaskInfo;
  auto uniform = [](Task& t) -> aclrtUniformDisInfo& {
    return t.randomNumFuncParaInfo.paramInfo.uniformDisInfo;
  };
  EXPECT_CODE(107000, with([](Task& t) {
                t.randomNumFuncParaInfo.funcType = static_cast<aclrtRandomNumFuncType>(4);
              }));
  EXPECT_CODE(107000, with([](Task& t) { t.dataType = ACL_DOUBLE; }));
  EXPECT_CODE(107000, with([](Task& t) {
                t.dataType = ACL_INT32;
                t.randomNumFuncParaInfo.funcType = kNormal;
              }));
  EXPECT_CODE(107000, with([](Task& t) { t.randomSeed.size = 0; }));
  EXPECT_CODE(107000, with([](Task& t) { t.randomSeed.size = 9; }));
  EXPECT_CODE(107000, with([](Task& t) { t.randomNum.isAddr = 2; }));
  EXPECT_CODE(107000, with([&](Task& t) { uniform(t).min.size = 8; }));
  EXPECT_CODE(107000, with([&](Task& t) { uniform(t).min = Value(2.0f); }));
  EXPECT_CODE(107000, with([&](Task& t) { uniform(t).max = Value(NAN); }));
  EXPECT_CODE(107000, with([](Task& t) { t.randomNum = Value(kBytes / 4 + 100); }));
  EXPECT_CODE(107000, with([](Task& t) { t.randomNum = Value(UINT64_MAX); }));
  EXPECT_CODE(107000, with([&](Task& t) {
                t.randomNumFuncParaInfo.funcType = kNormal;
                uniform(t).max = Value(-1.0f);
              }));
  EXPECT_CODE(107000, with([&](Task& t) {
                t.randomNumFuncParaInfo.funcType = kDropout;
                uniform(t).min = Value(1.5f);
              }));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(CounterWord(), 0u);
}

TEST_F(Random, RND_04_WhatIsWrongWhenTheTaskRunsFailsIt) {
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  std::memset(memory, 0xFF, 64);
  aclrtRandomNumTaskInfo info = Floats(8);
  info.randomNum = Address(memory);
  ASSERT_OK(aclrtRandomNumAsync(&info, stream_, nullptr));
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015);
  const std::string message = aclGetRecentErrMsg();
  EXPECT_NE(message.find("randomNum is greater"), std::string::npos) << message;
  Gate gate;
  Launch(stream_, gate);
  gate.WaitUntilEntered();
  ASSERT_OK(aclrtRandomNumAsync(&info, stream_, nullptr));
  ASSERT_OK(aclrtFree(memory));
  gate.Open();
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
}

// A built model whose task draws `kDrawn` numbers, and an update that another stream brings.
class RandomUpdate : public Random {
 protected:
  static constexpr size_t kDrawn = 8;

  void SetUp() override {
    Random::SetUp();
    ASSERT_OK(aclrtMalloc(&source_, sizeof(aclrtRandomNumTaskInfo), ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclmdlRIBuildBegin(&model_, 0));
    ASSERT_OK(aclrtCreateStreamWithConfig(&bound_, 0, ACL_STREAM_PERSISTENT));
    ASSERT_OK(aclmdlRIBindStream(model_, bound_, 0));
    ASSERT_OK(aclrtMemsetAsync(result_, 4, 0, 4, bound_));
    ASSERT_OK(aclrtGetThreadLastTaskId(&fill_));
    const aclrtRandomNumTaskInfo info = Floats(kDrawn);
    ASSERT_OK(aclrtRandomNumAsync(&info, bound_, nullptr));
    ASSERT_OK(aclrtGetThreadLastTaskId(&task_));
    ASSERT_OK(aclmdlRIEndTask(model_, bound_));
    ASSERT_OK(aclmdlRIBuildEnd(model_, nullptr));
  }
  void TearDown() override {
    if (model_ != nullptr) aclmdlRIDestroy(model_);
    aclrtFree(source_);
    Random::TearDown();
  }

  void Write(const aclrtRandomNumTaskInfo& info) {
    ASSERT_OK(aclrtMemcpy(source_, sizeof(info), &info, sizeof(info), ACL_MEMCPY_HOST_TO_DEVICE));
  }
  aclrtTaskUpdateInfo Update() {
    aclrtTaskUpdateInfo update{};
    update.id = ACL_RT_UPDATE_RANDOM_TASK;
    update.val.randomTaskAttr.srcAddr = source_;
    update.val.randomTaskAttr.size = sizeof(aclrtRandomNumTaskInfo);
    return update;
  }
  aclError Send(aclrtTaskUpdateInfo update) {
    return aclrtTaskUpdateAsync(bound_, task_, &update, stream_);
  }
  std::vector<float> Execute() {
    std::memset(result_, 0, kBytes);
    ResetCounter();
    EXPECT_OK(aclmdlRIExecuteAsync(model_, stream_));
    EXPECT_OK(aclrtSynchronizeStream(stream_));
    return Results(kDrawn);
  }
  // The numbers that a task with these parameters draws by itself.
  std::vector<float> Expected(const aclrtRandomNumTaskInfo& info) {
    ResetCounter();
    Run(info);
    return Results(kDrawn);
  }

  void* source_ = nullptr;
  aclmdlRI model_ = nullptr;
  aclrtStream bound_ = nullptr;
  uint32_t fill_ = 0;
  uint32_t task_ = 0;
};

TEST_F(RandomUpdate, RND_05_AnUpdateFindsTheTaskByItsStreamAndNumber) {
  const std::vector<float> first = Execute();
  aclrtRandomNumTaskInfo info = Floats(kDrawn);
  info.randomSeed = Value(uint64_t{77});
  const std::vector<float> expected = Expected(info);
  ASSERT_NE(first, expected);
  Write(info);
  ASSERT_OK(Send(Update()));
  EXPECT_EQ(Execute(), expected);
  EXPECT_EQ(Execute(), expected) << "it stays";

  aclrtTaskUpdateInfo update = Update();
  EXPECT_CODE(107000, aclrtTaskUpdateAsync(bound_, fill_, &update, stream_));
  EXPECT_CODE(107000, aclrtTaskUpdateAsync(bound_, 1000, &update, stream_));
  EXPECT_CODE(107005, aclrtTaskUpdateAsync(other_, task_, &update, stream_));
}

TEST_F(RandomUpdate, RND_06_AnUpdateIsWorkOfItsStream) {
  const std::vector<float> first = Execute();
  aclrtRandomNumTaskInfo info = Floats(kDrawn);
  info.randomSeed = Value(uint64_t{78});
  const std::vector<float> expected = Expected(info);
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(Send(Update()));
  Write(info);  // read when the update runs
  ResetCounter();
  ASSERT_OK(aclmdlRIExecuteAsync(model_, other_));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(Results(kDrawn), first) << "the update has not run";
  gate.Open();
  EXPECT_EQ(Execute(), expected);
}

TEST_F(RandomUpdate, RND_06_ItBringsAddressesSeedAndNumberAndNoDistribution) {
  void* elsewhere = nullptr;
  void* counter = nullptr;
  ASSERT_OK(aclrtMalloc(&elsewhere, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMalloc(&counter, 16, ACL_MEM_MALLOC_HUGE_FIRST));
  std::memset(elsewhere, 0, 64);
  std::memset(counter, 0, 16);
  const std::vector<float> first = Execute();
  aclrtRandomNumTaskInfo info =
      Info(kNormal, ACL_FLOAT16, Number(ACL_FLOAT16, 100), Number(ACL_FLOAT16, 1), 4);
  info.randomResultAddr = elsewhere;
  info.randomCounterAddr = counter;
  Write(info);
  ASSERT_OK(Send(Update()));
  std::memset(result_, 0, kBytes);
  ASSERT_OK(aclmdlRIExecuteAsync(model_, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(Results(kDrawn), std::vector<float>(kDrawn)) << "nothing is drawn there any more";
  const auto* drawn = static_cast<const float*>(elsewhere);
  EXPECT_EQ(std::vector<float>(drawn, drawn + 4),
            std::vector<float>(first.begin(), first.begin() + 4))
      << "four numbers of the former distribution, with the same seed";
  EXPECT_EQ(drawn[4], 0);
  EXPECT_NE(*static_cast<uint32_t*>(counter), 0u);
  ASSERT_OK(aclrtFree(elsewhere));
  ASSERT_OK(aclrtFree(counter));
}

TEST_F(RandomUpdate, RND_06_AnUpdateMayOutliveItsModel) {
  Write(Floats(kDrawn));
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(Send(Update()));
  ASSERT_OK(aclmdlRIDestroy(model_));
  model_ = nullptr;
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(RandomUpdate, RND_07_Refusals) {
  Write(Floats(kDrawn));
  aclrtTaskUpdateInfo update = Update();
  EXPECT_CODE(100000, aclrtTaskUpdateAsync(bound_, task_, nullptr, stream_));
  EXPECT_CODE(100000, aclrtTaskUpdateAsync(nullptr, task_, &update, stream_));
  const auto with = [&](auto change) {
    aclrtTaskUpdateInfo changed = Update();
    change(changed);
    return Send(changed);
  };
  EXPECT_CODE(207000, with([](auto& u) { u.id = ACL_RT_UPDATE_AIC_AIV_TASK; }));
  EXPECT_CODE(107000, with([](auto& u) { u.id = static_cast<aclrtUpdateTaskAttrId>(3); }));
  EXPECT_CODE(107000, with([](auto& u) { u.val.randomTaskAttr.srcAddr = nullptr; }));
  EXPECT_CODE(107000, with([](auto& u) { u.val.randomTaskAttr.size = 40; }));
  EXPECT_CODE(107000, with([&](auto& u) { u.val.randomTaskAttr.srcAddr = &update; }));
  Begin(stream_);
  EXPECT_CODE(107027, Send(update));
  Log log;
  Launch(stream_, log, "a");
  ASSERT_OK(aclmdlRIDestroy(End(stream_)));
  EXPECT_OK(aclrtTaskUpdateAsync(bound_, task_, &update, nullptr)) << "the default stream";
  EXPECT_OK(aclrtSynchronizeDevice());
}

TEST_F(RandomUpdate, RND_07_ParametersThatMakeNoSenseFailTheUpdateAndChangeNothing) {
  const std::vector<float> first = Execute();
  aclrtRandomNumTaskInfo info = Floats(kDrawn);
  info.randomSeed.size = 9;
  Write(info);
  ASSERT_OK(Send(Update()));
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015);
  const std::string message = aclGetRecentErrMsg();
  EXPECT_NE(message.find("size of randomSeed is 9"), std::string::npos) << message;
  EXPECT_EQ(Execute(), first);
}

}  // namespace
}  // namespace acltape::device
