// Reductions of memory into memory: rules RED.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr auto kSum = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM;
constexpr auto kMax = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX;
constexpr auto kMin = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN;
constexpr aclrtReduceKind kKinds[] = {kSum, kMax, kMin};

double FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }
double BfloatOf(uint16_t bits) { return FloatOf(uint32_t{bits} << 16); }
double HalfOf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}
template <typename T>
double IntegerOf(T value) {
  return value;
}

double Reference(aclrtReduceKind kind, double a, double b) {
  return kind == kSum ? a + b : kind == kMax ? std::max(a, b) : std::min(a, b);
}

class Reduce : public SoftDevice {
 protected:
  static constexpr size_t kElements = 4096;
  static constexpr size_t kBytes = kElements * 4;

  void SetUp() override {
    SoftDevice::SetUp();
    ASSERT_OK(aclrtMalloc(&to_, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclrtMalloc(&from_, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    std::memset(to_, 0, kBytes);
    std::memset(from_, 0, kBytes);
  }
  void TearDown() override {
    aclrtFree(to_);
    aclrtFree(from_);
    SoftDevice::TearDown();
  }

  template <typename T>
  T* To() {
    return static_cast<T*>(to_);
  }
  template <typename T>
  T* From() {
    return static_cast<T*>(from_);
  }
  void Run(aclrtReduceKind kind, aclDataType type, size_t bytes) {
    ASSERT_OK(aclrtReduceAsync(to_, from_, bytes, kind, type, stream_, nullptr));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
  }

  // Reduces numbers of any bits and holds that no other number of the type is nearer to the result
  // in double precision. `Bits` is an element as it lies in memory.
  template <typename Bits>
  void CheckNearest(aclDataType type, double (*number_of)(Bits)) {
    std::mt19937 random(7);
    for (aclrtReduceKind kind : kKinds) {
      std::vector<Bits> old_values(kElements);
      for (size_t i = 0; i < kElements; ++i) {
        old_values[i] = To<Bits>()[i] = static_cast<Bits>(random());
        From<Bits>()[i] = static_cast<Bits>(random());
      }
      Run(kind, type, kElements * sizeof(Bits));
      size_t checked = 0;
      for (size_t i = 0; i < kElements; ++i) {
        const double a = number_of(old_values[i]);
        const double b = number_of(From<Bits>()[i]);
        const double exact = Reference(kind, a, b);
        const Bits bits = To<Bits>()[i];
        const double result = number_of(bits);
        if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(result)) continue;
        ++checked;
        const double error = std::abs(result - exact);
        for (int step : {-1, 1}) {
          const double neighbour = number_of(static_cast<Bits>(bits + step));
          EXPECT_TRUE(std::isnan(neighbour) || error <= std::abs(neighbour - exact))
              << a << " and " << b << " give " << result;
        }
      }
      EXPECT_GT(checked, kElements / 2);
    }
  }

  // Integers small enough that no sum leaves the type: all results are those in double precision.
  template <typename T>
  void CheckExact(aclDataType type) {
    std::mt19937 random(11);
    std::uniform_int_distribution<int32_t> draw(std::numeric_limits<T>::min() / 2,
                                                std::numeric_limits<T>::max() / 2);
    for (aclrtReduceKind kind : kKinds) {
      std::vector<T> old_values(kElements);
      for (size_t i = 0; i < kElements; ++i) {
        old_values[i] = To<T>()[i] = static_cast<T>(draw(random));
        From<T>()[i] = static_cast<T>(draw(random));
      }
      Run(kind, type, kElements * sizeof(T));
      for (size_t i = 0; i < kElements; ++i) {
        EXPECT_EQ(To<T>()[i], Reference(kind, old_values[i], From<T>()[i]));
      }
    }
  }

  void* to_ = nullptr;
  void* from_ = nullptr;
};

TEST_F(Reduce, RED_01_IntegersGiveTheExactResult) {
  CheckExact<int8_t>(ACL_INT8);
  CheckExact<int16_t>(ACL_INT16);
  CheckExact<int32_t>(ACL_INT32);
}

TEST_F(Reduce, RED_01_FloatsGiveTheNearestNumberToTheExactResult) {
  CheckNearest<uint32_t>(ACL_FLOAT, FloatOf);
  CheckNearest<uint16_t>(ACL_FLOAT16, HalfOf);
  CheckNearest<uint16_t>(ACL_BF16, BfloatOf);
}

TEST_F(Reduce, RED_01_SumsOfIntegersWrapAround) {
  To<int8_t>()[0] = 127;
  From<int8_t>()[0] = 2;
  Run(kSum, ACL_INT8, 1);
  EXPECT_EQ(To<int8_t>()[0], -127);
  To<int16_t>()[0] = -32768;
  From<int16_t>()[0] = -1;
  Run(kSum, ACL_INT16, 2);
  EXPECT_EQ(To<int16_t>()[0], 32767);
  To<int32_t>()[0] = std::numeric_limits<int32_t>::max();
  From<int32_t>()[0] = 1;
  Run(kSum, ACL_INT32, 4);
  EXPECT_EQ(To<int32_t>()[0], std::numeric_limits<int32_t>::min());
}

TEST_F(Reduce, RED_01_ANanOnEitherSideGivesNan) {
  for (aclrtReduceKind kind : kKinds) {
    To<float>()[0] = NAN;
    From<float>()[0] = 1;
    To<float>()[1] = 1;
    From<float>()[1] = NAN;
    Run(kind, ACL_FLOAT, 8);
    EXPECT_TRUE(std::isnan(To<float>()[0])) << kind;
    EXPECT_TRUE(std::isnan(To<float>()[1])) << kind;
  }
}

TEST_F(Reduce, RED_01_CountIsInBytesAndElementsMayLieAtAnyAddress) {
  auto* to = static_cast<char*>(to_) + 1;
  auto* from = static_cast<char*>(from_) + 3;
  const float two[] = {2, 2};
  const float three[] = {3, 3};
  std::memcpy(to, two, 8);
  std::memcpy(from, three, 8);
  ASSERT_OK(aclrtReduceAsync(to, from, 4, kSum, ACL_FLOAT, stream_, nullptr));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  float result[2];
  std::memcpy(result, to, 8);
  EXPECT_EQ(result[0], 5);
  EXPECT_EQ(result[1], 2);
}

TEST_F(Reduce, RED_02_Refusals) {
  auto reduce = [&](void* to, const void* from, uint64_t bytes, aclrtReduceKind kind = kSum,
                    aclDataType type = ACL_FLOAT, void* reserve = nullptr) {
    return aclrtReduceAsync(to, from, bytes, kind, type, stream_, reserve);
  };
  EXPECT_CODE(100000, reduce(nullptr, from_, 4));
  EXPECT_CODE(100000, reduce(to_, nullptr, 4));
  EXPECT_CODE(100000, reduce(to_, from_, 4, kSum, ACL_FLOAT, to_));
  EXPECT_CODE(107000, reduce(to_, from_, 0));
  EXPECT_CODE(107000, reduce(to_, from_, 6));
  EXPECT_CODE(107000, reduce(to_, from_, 8, kSum, ACL_DOUBLE));
  EXPECT_CODE(107000, reduce(to_, from_, 4, static_cast<aclrtReduceKind>(9)));
  EXPECT_CODE(107000, reduce(to_, from_, 4, static_cast<aclrtReduceKind>(14)));
  EXPECT_CODE(207000, reduce(to_, from_, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL));
  EXPECT_CODE(107000, reduce(static_cast<char*>(to_) + kBytes - 4, from_, 64));
  float host = 1;
  EXPECT_CODE(107000, reduce(to_, &host, 4));
  void* pinned = nullptr;
  ASSERT_OK(aclrtMallocHost(&pinned, 64));
  EXPECT_CODE(107000, reduce(pinned, from_, 4));
  ASSERT_OK(aclrtFreeHost(pinned));
  EXPECT_CODE(107017, aclrtReduceAsync(to_, from_, 4, kSum, ACL_FLOAT,
                                       reinterpret_cast<aclrtStream>(CreateEx()), nullptr));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(To<float>()[0], 0);
}

TEST_F(Reduce, RED_02_MemoryThatWasFreedBeforeTheTaskRanFailsIt) {
  void* gone = nullptr;
  ASSERT_OK(aclrtMalloc(&gone, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  Gate gate;
  Launch(stream_, gate);
  gate.WaitUntilEntered();
  ASSERT_OK(aclrtReduceAsync(to_, gone, 64, kSum, ACL_FLOAT, stream_, nullptr));
  ASSERT_OK(aclrtFree(gone));
  gate.Open();
  EXPECT_CODE(507013, aclrtSynchronizeStream(stream_));
}

TEST_F(Reduce, RED_03_InACaptureItIsATaskOfTheGraph) {
  To<float>()[0] = 1;
  From<float>()[0] = 2;
  Begin(stream_);
  ASSERT_OK(aclrtReduceAsync(to_, from_, 4, kSum, ACL_FLOAT, stream_, nullptr));
  aclmdlRI model = End(stream_);
  EXPECT_EQ(To<float>()[0], 1);
  for (float expected : {3.0f, 5.0f, 7.0f}) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    EXPECT_EQ(To<float>()[0], expected);
  }
  EXPECT_OK(aclmdlRIDestroy(model));
}

}  // namespace
}  // namespace acltape::device
