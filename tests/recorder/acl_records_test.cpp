// The collector turns the records that only the ACL level writes into rows.
#include <bit>
#include <cmath>

#include "recorder/collector/argument_decoder.h"
#include "recorder/collector/handle_lives.h"
#include "recorder/collector/op_schema.h"
#include "storage/blocked_format.h"
#include "storage/writer.h"
#include "tests/recorder/producer.h"
#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

using collector::DecodedArgument;
using storage::ValueKind;
using wire::ArgumentTag;
using wire::DType;

std::vector<DecodedArgument> Decoded(const std::string& bytes) {
  std::vector<DecodedArgument> arguments;
  EXPECT_TRUE(collector::DecodeArguments(
      {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, 1, &arguments));
  return arguments;
}

template <typename T>
Signature& PutScalar(Signature& signature, DType dtype, T value, bool tag = true) {
  char room[16] = {};
  std::memcpy(room, &value, sizeof(value));
  if (tag) signature.Put(ArgumentTag::kScalar);
  signature.Put(dtype);
  for (const char byte : room) signature.Put(byte);
  return signature;
}

TEST(AclArguments, ScalarsOfEveryDtypeKeepTheirValue) {
  struct Case {
    std::string bytes;
    const char* dtype;
    double value;
  };
  const auto scalar = [](DType dtype, auto value) {
    Signature signature;
    return PutScalar(signature, dtype, value).bytes;
  };
  const Case cases[] = {
      {scalar(DType::kFloat32, 1.5f), "float32", 1.5},
      {scalar(DType::kFloat64, -0.1), "float64", -0.1},
      {scalar(DType::kFloat16, uint16_t{0x3e00}), "float16", 1.5},
      {scalar(DType::kFloat16, uint16_t{0x8001}), "float16", -std::ldexp(1, -24)},
      {scalar(DType::kFloat16, uint16_t{0x7bff}), "float16", 65504},
      {scalar(DType::kBfloat16, uint16_t{0xbfc0}), "bfloat16", -1.5},
      {scalar(DType::kInt8, int8_t{-3}), "int8", -3},
      {scalar(DType::kUint8, uint8_t{200}), "uint8", 200},
      {scalar(DType::kInt16, int16_t{-300}), "int16", -300},
      {scalar(DType::kUint16, uint16_t{60000}), "uint16", 60000},
      {scalar(DType::kInt32, int32_t{-70000}), "int32", -70000},
      {scalar(DType::kUint32, uint32_t{4000000000u}), "uint32", 4000000000.0},
      {scalar(DType::kInt64, int64_t{-5}), "int64", -5},
      {scalar(DType::kBool, uint8_t{1}), "bool", 1},
  };
  for (const Case& wanted : cases) {
    SCOPED_TRACE(std::string(wanted.dtype) + " " + std::to_string(wanted.value));
    const auto arguments = Decoded(wanted.bytes);
    ASSERT_EQ(arguments.size(), 1u);
    const storage::SignatureArgument& value = arguments[0].value;
    EXPECT_EQ(value.kind, ValueKind::kScalar);
    EXPECT_EQ(value.text, wanted.dtype);
    if (value.text.find("float") != std::string::npos) {
      EXPECT_EQ(value.real, wanted.value);
      EXPECT_EQ(std::bit_cast<double>(value.integer), wanted.value);
    } else {
      EXPECT_EQ(static_cast<double>(value.integer), wanted.value);
    }
  }
}

TEST(AclArguments, NonFiniteAndComplexScalars) {
  Signature signature;
  PutScalar(signature, DType::kFloat16, uint16_t{0xfc00});
  PutScalar(signature, DType::kFloat16, uint16_t{0x7e01});
  PutScalar(signature, DType::kComplex64, std::array<float, 2>{0.5f, -2});
  const auto arguments = Decoded(signature.bytes);
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[0].value.real, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(arguments[1].value.real));
  EXPECT_EQ(arguments[2].value.reals, std::vector<double>({0.5, -2}));
}

TEST(AclArguments, ScalarListsNameEachDtype) {
  Signature signature;
  signature.Put(ArgumentTag::kScalarList).Put(uint32_t{2});
  PutScalar(signature, DType::kInt32, int32_t{7}, false);
  PutScalar(signature, DType::kFloat32, 0.5f, false);
  const auto arguments = Decoded(signature.bytes);
  ASSERT_EQ(arguments.size(), 1u);
  EXPECT_EQ(arguments[0].value.kind, ValueKind::kScalarList);
  EXPECT_EQ(arguments[0].value.text, "int32,float32");
  EXPECT_EQ(arguments[0].value.integers, std::vector<int64_t>({7, std::bit_cast<int64_t>(0.5)}));
}

TEST(AclArguments, ATensorWithAFormatNamesIt) {
  Signature signature;
  signature.Put(ArgumentTag::kTensor).Put(DType::kFloat16).Put(uint8_t{1});
  signature.Put(static_cast<uint8_t>(wire::kTensorFormat)).Put(uint16_t{0}).Put(int64_t{64});
  signature.Put(int64_t{8}).Put(int64_t{1}).Put(int32_t{3});
  const auto arguments = Decoded(signature.Int(3).bytes);
  ASSERT_EQ(arguments.size(), 2u);
  ASSERT_EQ(arguments[0].layouts.size(), 1u);
  EXPECT_EQ(arguments[0].layouts[0].format, "NC1HWC0");
  EXPECT_EQ(arguments[0].layouts[0].flags, 0u);
  EXPECT_EQ(arguments[0].layouts[0].byte_offset, 64);
  EXPECT_EQ(arguments[1].value.integer, 3);
}

// The layout is that of the blocks, and the format tells the matrix: here the transposed view of
// one of 33 x 50.
TEST(AclArguments, ATensorInBlocksHasTheLayoutOfItsStorage) {
  Signature signature;
  signature.Put(ArgumentTag::kTensor).Put(DType::kFloat16).Put(uint8_t{4});
  signature.Put(static_cast<uint8_t>(wire::kTensorFormat)).Put(uint16_t{0}).Put(int64_t{64});
  for (const int64_t size : {4, 3, 16, 16}) signature.Put(size);
  for (const int64_t stride : {768, 256, 16, 1}) signature.Put(stride);
  signature.Put(int32_t{29}).Put(uint8_t{2});
  for (const int64_t number : {50, 33, 1, 50}) signature.Put(number);
  const auto arguments = Decoded(signature.Int(3).bytes);
  ASSERT_EQ(arguments.size(), 2u);
  const storage::Layout& layout = arguments[0].layouts.at(0);
  EXPECT_EQ(layout.shape, std::vector<int64_t>({4, 3, 16, 16}));
  EXPECT_EQ(layout.format, "FRACTAL_NZ of [50, 33] by [1, 50]");
  EXPECT_EQ(arguments[1].value.integer, 3);
  const auto view = storage::ParseBlockedFormat(layout.format);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->sizes, std::vector<int64_t>({50, 33}));
  EXPECT_EQ(view->strides, std::vector<int64_t>({1, 50}));
}

// Two integers of 4 bits lie in each byte, so the columns of the blocks are half as many.
TEST(AclArguments, IntegersOfFourBitsInBlocksAreBlocksOfBytes) {
  Signature signature;
  signature.Put(ArgumentTag::kTensor).Put(DType::kUint8).Put(uint8_t{4});
  signature.Put(static_cast<uint8_t>(wire::kTensorFormat)).Put(uint16_t{0}).Put(int64_t{64});
  for (const int64_t size : {2, 3, 16, 32}) signature.Put(size);
  for (const int64_t stride : {1536, 512, 32, 1}) signature.Put(stride);
  signature.Put(meaning::kFormatOfFourBitBlocks).Put(uint8_t{2});
  for (const int64_t number : {72, 33, 1, 72}) signature.Put(number);
  const auto arguments = Decoded(signature.Int(3).bytes);
  ASSERT_EQ(arguments.size(), 2u);
  const storage::Layout& layout = arguments[0].layouts.at(0);
  EXPECT_EQ(layout.shape, std::vector<int64_t>({2, 3, 16, 32}));
  EXPECT_EQ(layout.format, "INT4 in FRACTAL_NZ of [72, 33] by [1, 72]");
  EXPECT_EQ(layout.flags, 0u);
  EXPECT_EQ(arguments[1].value.integer, 3);
}

TEST(AclSchema, DirectionsAreSaidInSoManyWords) {
  const collector::OpSchema schema = collector::ParseOpSchema(
      "aclnnX", "aclnnX(Tensor self, Tensor(inout!) state, Tensor(out!) out, int64 dim)");
  ASSERT_EQ(schema.values.size(), 4u);
  EXPECT_EQ(schema.values[0].direction, storage::Direction::kIn);
  EXPECT_EQ(schema.values[1].direction, storage::Direction::kInOut);
  EXPECT_EQ(schema.values[2].direction, storage::Direction::kOut);
  EXPECT_EQ(schema.values[2].name, "out");
  EXPECT_EQ(schema.values[3].direction, storage::Direction::kIn);
  const collector::OpSchema copy = collector::ParseOpSchema(
      "aclrtMemcpy", "aclrtMemcpy(void*(out!) dst, size_t destMax, void* src)");
  ASSERT_EQ(copy.values.size(), 3u);
  EXPECT_EQ(copy.values[0].name, "dst");
  EXPECT_EQ(copy.values[0].direction, storage::Direction::kOut);
  EXPECT_EQ(copy.values[2].name, "src");
}

class HandleLivesTest : public RecordTest {};

// Creation and end of a handle come from two threads, whose rings are read in either order.
TEST_F(HandleLivesTest, CreationAndEndMeetInEitherOrder) {
  const auto record = [](uint64_t id, wire::HandleKind kind, wire::HandleMoment moment,
                         uint64_t call) {
    wire::HandleRecord row{};
    row.handle_id = id;
    row.address = 0x1000 + id;
    row.call_id = call;
    row.flags = kind == wire::HandleKind::kModel ? 2 : 1;
    row.kind = kind;
    row.moment = moment;
    return row;
  };
  using wire::HandleKind;
  using wire::HandleMoment;
  {
    storage::Writer writer(Path(), storage::Writer::Options{});
    collector::HandleLives lives(writer);
    lives.Take(record(1, HandleKind::kStream, HandleMoment::kDestroyed, 9), 2);
    lives.Take(record(1, HandleKind::kStream, HandleMoment::kCreated, 3), 1);
    lives.Take(record(2, HandleKind::kEvent, HandleMoment::kCreated, 4), 1);
    lives.Take(record(3, HandleKind::kModel, HandleMoment::kCreated, 5), 1);
    lives.Take(record(3, HandleKind::kModel, HandleMoment::kCaptureEnded, 6), 1);
    lives.WriteLiving();
    lives.Take(record(3, HandleKind::kModel, HandleMoment::kDestroyed, 7), 1);
    writer.Finish("complete");
  }
  const storage::Reader reader(Path());
  const auto streams = reader.Streams();
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].create_call, 3);
  EXPECT_EQ(streams[0].destroy_call, 9);
  EXPECT_EQ(streams[0].process_id, 1);
  const auto events = reader.Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].handle, 0x1002);
  EXPECT_EQ(events[0].destroy_call, 0);
  const auto models = reader.Models();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].mode, "relaxed");
  EXPECT_EQ(models[0].end_call, 6);
  EXPECT_EQ(models[0].destroy_call, 7);
}

}  // namespace
}  // namespace acltape::test
