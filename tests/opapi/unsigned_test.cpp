// Unsigned integers of 16, 32 and 64 bits, which libtorch lacks: what operators move and convert.
#include <cmath>
#include <limits>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

template <typename T>
aclDataType DtypeOf();
template <>
aclDataType DtypeOf<uint16_t>() {
  return ACL_UINT16;
}
template <>
aclDataType DtypeOf<uint32_t>() {
  return ACL_UINT32;
}
template <>
aclDataType DtypeOf<uint64_t>() {
  return ACL_UINT64;
}
template <>
aclDataType DtypeOf<int32_t>() {
  return ACL_INT32;
}
template <>
aclDataType DtypeOf<int64_t>() {
  return ACL_INT64;
}
template <>
aclDataType DtypeOf<float>() {
  return ACL_FLOAT;
}
template <>
aclDataType DtypeOf<double>() {
  return ACL_DOUBLE;
}

// Lets the handle of a call's argument stand for a vector of numbers.
template <typename T>
void Refer(const PackedCall& call, int i, std::vector<T>& numbers) {
  const auto size = static_cast<int64_t>(numbers.size());
  ASSERT_EQ(aclInitTensor(call.tensor(i), &size, 1, DtypeOf<T>(), nullptr, 0, ACL_FORMAT_ND, &size,
                          1, numbers.data()),
            OK);
}

void Make(PackedCall& call) {
  const aclrtStream stream = TestStream();
  ASSERT_EQ(call.Prepare(), OK) << TakeMessage();
  ASSERT_EQ(call.Launch(stream), OK) << TakeMessage();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << TakeMessage();
}

const Tensor kAny = at::zeros({1});

// The operators convert as C does, where C says what comes of it.
template <typename From, typename To>
void ExpectConversion(std::vector<From> from) {
  std::vector<To> expected, cast(from.size()), copied(from.size());
  for (const From number : from) expected.push_back(static_cast<To>(number));
  PackedCall convert("aclnnCast", {kAny, static_cast<int64_t>(DtypeOf<To>()), kAny});
  Refer(convert, 0, from);
  Refer(convert, 2, cast);
  Make(convert);
  EXPECT_EQ(cast, expected);
  PackedCall copy("aclnnInplaceCopy", {kAny, kAny});
  Refer(copy, 0, copied);
  Refer(copy, 1, from);
  Make(copy);
  EXPECT_EQ(copied, expected);
}

TEST(Unsigned, NumbersAreConvertedAsInC) {
  const std::vector<uint16_t> small = {0, 1, 0x7FFF, 0x8000, 0xFFFF};
  const std::vector<uint32_t> middle = {0, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
  const std::vector<uint64_t> large = {0,
                                       7,
                                       0x7FFFFFFFFFFFFFFF,
                                       0x8000000000000000,
                                       0x8000000000000401,
                                       0xFFFFFFFFFFFFFBFF,
                                       0xFFFFFFFFFFFFFFFF};
  ExpectConversion<uint16_t, int32_t>(small);
  ExpectConversion<uint16_t, float>(small);
  ExpectConversion<uint16_t, uint64_t>(small);
  ExpectConversion<uint16_t, uint16_t>(small);
  ExpectConversion<uint32_t, int64_t>(middle);
  ExpectConversion<uint32_t, uint16_t>(middle);
  ExpectConversion<uint32_t, float>(middle);
  ExpectConversion<uint64_t, uint32_t>(large);
  ExpectConversion<uint64_t, float>(large);
  ExpectConversion<uint64_t, double>(large);
  ExpectConversion<uint64_t, uint64_t>(large);
  ExpectConversion<int64_t, uint16_t>({-1, 65536, 70000, 3});
  ExpectConversion<int64_t, uint64_t>({-1, std::numeric_limits<int64_t>::min()});
  ExpectConversion<float, uint32_t>({0, 2.75F, 4294967040.0F});
  ExpectConversion<double, uint64_t>({0, 1.5, std::ldexp(1, 63), std::ldexp(1, 64) - 2048});
}

TEST(Unsigned, FillsTakeThem) {
  std::vector<uint16_t> numbers = {1, 2, 3};
  PackedCall zero("aclnnInplaceZero", {kAny});
  Refer(zero, 0, numbers);
  Make(zero);
  EXPECT_EQ(numbers, (std::vector<uint16_t>{0, 0, 0}));
  PackedCall fill("aclnnInplaceFillScalar", {kAny, at::Scalar(60000)});
  Refer(fill, 0, numbers);
  Make(fill);
  EXPECT_EQ(numbers, (std::vector<uint16_t>{60000, 60000, 60000}));
  std::vector<uint64_t> wide(2), value = {0xFFFFFFFFFFFFFFFE};
  PackedCall of_tensor("aclnnInplaceFillTensor", {kAny, kAny});
  Refer(of_tensor, 0, wide);
  Refer(of_tensor, 1, value);
  Make(of_tensor);
  EXPECT_EQ(wide, (std::vector<uint64_t>{value[0], value[0]}));
}

// Operators that compute refuse them.
TEST(Unsigned, SumsOfThemAreRefused) {
  std::vector<uint32_t> numbers = {1, 2, 3};
  PackedCall add("aclnnAdd", {kAny, kAny, 1, kAny});
  for (int i : {0, 1, 3}) Refer(add, i, numbers);
  EXPECT_EQ(add.Prepare(), kReject);
}

// 1.5 is 0x3FC00000.
TEST(Unsigned, ParametersOfQuantisedProductsAreWrittenAndReadInThem) {
  std::vector<float> scales = {1.5F, 0.5F};
  std::vector<uint64_t> parameters(2);
  PackedCall make("aclnnTransQuantParamV2", {kAny, Null{}, kAny});
  Refer(make, 0, scales);
  Refer(make, 2, parameters);
  Make(make);
  EXPECT_EQ(parameters, (std::vector<uint64_t>{0x40003FC00000, 0x40003F000000}));
  const Tensor x = at::full({1, 4}, 3, at::kChar), weight = at::full({4, 2}, 2, at::kChar);
  const Tensor out = Unwritten(at::empty({1, 2}, at::kHalf));
  PackedCall product("aclnnQuantMatmulV3", {x, weight, kAny, Null{}, Null{}, false, false, out});
  Refer(product, 2, parameters);
  Make(product);
  EXPECT_TRUE(SameBits(out, at::tensor({36.0, 12.0}).to(at::kHalf).view({1, 2})));
}

}  // namespace
}  // namespace acltape::opapi
