// Every kind of argument of an operator, from a trace of the ACL level to the device.
#include <gtest/gtest.h>

#include <cstring>

#include "replayer/device/scalar_value.h"
#include "tests/replayer/acl_fixture.h"

namespace acltape::replayer {
namespace {

using storage::DType;
using test::AclRecorded;
using test::AclTraceBuilder;
using test::Floats;
using test::In;
using test::Int;
using test::None;
using test::Out;
using test::Scalar;
using test::ScalarInt;
using test::Tensor;
using test::Written;
using Halves = std::vector<uint16_t>;

template <typename T>
T As(const ScalarValue& scalar) {
  T value;
  std::memcpy(&value, scalar.bytes.data(), sizeof value);
  return value;
}

int64_t Bits(double value) { return std::bit_cast<int64_t>(value); }

TEST(AclValues, ScalarsKeepTypeAndBits) {
  EXPECT_EQ(As<float>(RecordedScalar(DType::kFloat32, Bits(0.1f), {})), 0.1f);
  EXPECT_EQ(RecordedScalar(DType::kFloat32, 0, {}).dtype, ACL_FLOAT);
  EXPECT_EQ(As<double>(RecordedScalar(DType::kFloat64, Bits(0.1), {})), 0.1);
  EXPECT_EQ(As<uint16_t>(RecordedScalar(DType::kFloat16, Bits(-1.5), {})), 0xbe00);
  EXPECT_EQ(RecordedScalar(DType::kFloat16, 0, {}).dtype, ACL_FLOAT16);
  EXPECT_EQ(As<uint16_t>(RecordedScalar(DType::kBfloat16, Bits(3.0), {})), 0x4040);
  EXPECT_EQ(As<uint16_t>(RecordedScalar(DType::kFloat16, Bits(-0.0), {})), 0x8000);
  EXPECT_EQ(As<uint16_t>(RecordedScalar(DType::kFloat16, Bits(INFINITY), {})), 0x7c00);
  EXPECT_TRUE(
      std::isnan(HalfToFloat(As<uint16_t>(RecordedScalar(DType::kFloat16, Bits(NAN), {})))));
  EXPECT_TRUE(
      std::isnan(BfloatToFloat(As<uint16_t>(RecordedScalar(DType::kBfloat16, Bits(NAN), {})))));
  EXPECT_EQ(As<int32_t>(RecordedScalar(DType::kInt32, -7, {})), -7);
  EXPECT_EQ(As<int8_t>(RecordedScalar(DType::kInt8, -7, {})), -7);
  EXPECT_EQ(As<bool>(RecordedScalar(DType::kBool, 1, {})), true);
  const ScalarValue complex = RecordedScalar(DType::kComplex64, 0, {1.5, -2});
  EXPECT_EQ(complex.dtype, ACL_COMPLEX64);
  EXPECT_EQ((As<std::array<float, 2>>(complex)), (std::array<float, 2>{1.5f, -2.0f}));
  EXPECT_EQ(RecordedScalar(DType::kUndefined, 0, {}).dtype, ACL_DT_UNDEFINED);
}

TEST(AclValues, EveryHalfComesBackFromItsDouble) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (!std::isnan(value)) {
      ASSERT_EQ(As<uint16_t>(RecordedScalar(DType::kFloat16, Bits(value), {})), half) << value;
    }
    const float brain = BfloatToFloat(half);
    if (!std::isnan(brain)) {
      ASSERT_EQ(As<uint16_t>(RecordedScalar(DType::kBfloat16, Bits(brain), {})), half) << brain;
    }
  }
}

// x * scalar, one call per type of scalar.
TEST(AclValues, ScalarsOfEveryTypeReachTheOperator) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({2});
    const Tensor out = trace.Device({2});
    trace.Upload(x, Floats{1, -3});
    for (const char* type : {"float32", "float64", "float16", "bfloat16"}) {
      trace.Op("aclnnMuls", stream, {In("self", x), Scalar("other", 1.5, type), Out("out", out)})
          .After("out", Floats{1.5, -4.5});
    }
    for (const char* type : {"int64", "int32", "int16", "int8"}) {
      trace.Op("aclnnMuls", stream, {In("self", x), ScalarInt("other", -2, type), Out("out", out)})
          .After("out", Floats{-2, 6});
    }
    trace.Op("aclnnMuls", stream, {In("self", x), ScalarInt("other", 1, "bool"), Out("out", out)})
        .After("out", Floats{1, -3});
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(9);
}

TEST(AclValues, ArraysListsNumbersAndTypes) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({2, 2});
    const Tensor sum = trace.Device({2});
    const Tensor both = trace.Device({4, 2});
    const Tensor half = trace.Device({2, 2}, DType::kFloat16);
    const Tensor upper = AclTraceBuilder::View(both, {2, 2}, {2, 1});
    const Tensor lower = AclTraceBuilder::View(both, {2, 2}, {2, 1}, 4);
    trace.Upload(x, Floats{1, 2, 3, 4});
    test::Value type = Int("dtype", static_cast<int64_t>(DType::kFloat32));
    type.kind = storage::ValueKind::kDtype;
    trace
        .Op("aclnnReduceSum", stream,
            {In("self", x), test::Ints("dims", {1}), test::Bool("keepDims", false), type,
             Out("out", sum)})
        .After("out", Floats{3, 7});
    trace.Op("aclnnCat", stream, {test::List("tensors", {x, x}), Int("dim", 0), Out("out", both)})
        .After("out", Floats{1, 2, 3, 4, 1, 2, 3, 4});
    trace.Op("aclnnCast", stream, {In("self", x), Int("dtype", ACL_FLOAT16), Out("out", half)})
        .After("out", Halves{0x3c00, 0x4000, 0x4200, 0x4400});
    // Outputs of a list are kept one by one.
    trace.Op("aclnnForeachMulScalarV2", stream,
             {test::List("x", {x, upper}), Scalar("scalar", 2), test::OutList("out", {x, lower})});
    trace.AfterElement("out", 0, Floats{2, 4, 6, 8});
    trace.AfterElement("out", 1, Floats{2, 4, 6, 8});
    trace.Synchronize(stream);
    trace.Download(both, Floats{1, 2, 3, 4, 2, 4, 6, 8});
  });
  recorded.ExpectEqual(6);
}

TEST(AclValues, AbsentTensorsEmptyTensorsAndInPlaceForms) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({2});
    trace.Upload(x, Floats{-1, 4});
    trace.Op("aclnnClampMin", stream, {In("self", x), Scalar("min", 0), Out("out", x)})
        .After("out", Floats{0, 4});
    trace.Op("aclnnInplaceAdd", stream, {Written("selfRef", x), In("other", x), Scalar("alpha", 1)})
        .After("selfRef", Floats{0, 8});
    const Tensor out = trace.Device({2});
    trace
        .Op("aclnnClamp", stream,
            {In("self", x), None("clipValueMin"), Scalar("clipValueMax", 5), Out("out", out)})
        .After("out", Floats{0, 5});
    const Tensor empty = AclTraceBuilder::View(x, {0, 2}, {2, 1});
    trace.Op("aclnnRelu", stream, {In("self", empty), Out("out", empty)});
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(3);
}

TEST(AclValues, HalfAndBfloatConvertExactly) {
  EXPECT_EQ(HalfToFloat(0x3555), 0.333251953125f);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(HalfToFloat(0xfc00), -INFINITY);
  EXPECT_EQ(BfloatToFloat(0xc049), -3.140625f);
}

}  // namespace
}  // namespace acltape::replayer
