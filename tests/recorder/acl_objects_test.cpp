// The operators' argument objects as the ACL agent knows them, by the bytes that it encodes for
// them. Addresses stand for objects: the agent never looks into one. Meant to run under
// ThreadSanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "acl/invoke/arg_value.h"
#include "recorder/acl/objects.h"
#include "recorder/acl/thread.h"
#include "recorder/wire/records.h"

namespace acltape::acl_agent {
namespace {

using acl::ArgKind;
using wire::ArgumentTag;
using wire::DType;

// Bytes in the order in which they are put.
class Wanted {
 public:
  template <typename T>
  Wanted& Put(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
    return *this;
  }
  template <typename T>
  Wanted& PutAll(const std::vector<T>& values) {
    for (const T& value : values) Put(value);
    return *this;
  }
  // A tensor outside of any block: its address is the offset in a buffer that nobody knows.
  Wanted& PutTensor(DType dtype, const std::vector<int64_t>& sizes,
                    const std::vector<int64_t>& strides, uint64_t address) {
    Put(ArgumentTag::kTensor).Put(dtype).Put(static_cast<uint8_t>(sizes.size()));
    return Put(uint8_t{0}).Put(uint16_t{0}).Put(address).PutAll(sizes).PutAll(strides);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class AclObjects : public testing::Test {
 protected:
  void SetUp() override { thread_.slots = slots_.data(); }
  void TearDown() override {
    free(thread_.signature.data);
    free(places_.data);
  }

  std::vector<std::byte> Encoded(ArgKind kind, const void* object) {
    acl::ArgValue value{};
    value.pointer = const_cast<void*>(object);
    thread_.BeginEncoding();
    places_.count = 0;
    EncodeArgument(thread_, kind, value, 0, true, false, places_);
    return {thread_.signature.data, thread_.signature.data + thread_.signature.size};
  }

  Thread thread_;
  std::vector<uint64_t> slots_ = std::vector<uint64_t>(Thread::kMaxSlots);
  TensorPlaces places_;
};

const void* Object(uint64_t number) { return reinterpret_cast<const void*>(number * 32); }
const aclTensor* TensorObject(uint64_t number) {
  return static_cast<const aclTensor*>(Object(number));
}
void Keep(uint64_t number, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
          uint64_t address) {
  KeepTensor(TensorObject(number), sizes.data(), sizes.size(), ACL_FLOAT, strides.data(), 0,
             ACL_FORMAT_ND, nullptr, 0, reinterpret_cast<void*>(address));
}

// Small ranks lie in the agent's map, larger ones beside it.
TEST_F(AclObjects, ATensorOfAnyRankIsEncodedAsItWasMade) {
  for (const size_t rank : {0, 1, 4, 5, 6, 7, 64}) {
    std::vector<int64_t> sizes(rank, 1);
    std::vector<int64_t> strides(rank);
    std::iota(strides.begin(), strides.end(), 1);
    if (rank > 0) sizes.back() = 3;
    Keep(1, sizes, strides, 0x5000);
    EXPECT_EQ(Encoded(ArgKind::kTensor, Object(1)),
              Wanted().PutTensor(DType::kFloat32, sizes, strides, 0x5000).bytes())
        << "rank " << rank;
    ASSERT_EQ(places_.count, 1u);
    const uint64_t last = rank == 0 ? 0 : 2 * static_cast<uint64_t>(strides.back());
    EXPECT_EQ(places_.data[0].first_byte, 0x5000u);
    EXPECT_EQ(places_.data[0].end_byte, 0x5000u + 4 * (last + 1));
  }
}

// The address of an object that was destroyed is given out again, mostly at once.
TEST_F(AclObjects, TheNextObjectAtAnAddressReplacesTheOneBefore) {
  const std::vector<int64_t> few = {2, 3};
  const std::vector<int64_t> many = {1, 2, 1, 2, 1, 2, 1};
  for (int round = 0; round < 3; ++round) {
    for (const auto& sizes : {few, many, few}) {
      Keep(2, sizes, sizes, 0x7000);
      EXPECT_EQ(Encoded(ArgKind::kTensor, Object(2)),
                Wanted().PutTensor(DType::kFloat32, sizes, sizes, 0x7000).bytes());
      DropTensor(Object(2));
    }
  }
  // Another kind of object at the same address is no tensor.
  const int64_t numbers[] = {4, 5};
  KeepArray(Object(2), numbers, 2);
  EXPECT_EQ(Encoded(ArgKind::kIntArray, Object(2)),
            Wanted().Put(ArgumentTag::kIntList).Put(uint32_t{2}).PutAll<int64_t>({4, 5}).bytes());
}

TEST_F(AclObjects, ArraysAndListsOfAnyLengthAreEncodedAsTheyWereMade) {
  for (const size_t length : {0, 1, 6, 7, 300}) {
    std::vector<int64_t> numbers(length);
    std::iota(numbers.begin(), numbers.end(), -2);
    const auto count = static_cast<uint32_t>(length);
    KeepArray(Object(3), numbers.data(), length);
    EXPECT_EQ(Encoded(ArgKind::kIntArray, Object(3)),
              Wanted().Put(ArgumentTag::kIntList).Put(count).PutAll(numbers).bytes());
    const std::vector<float> reals(numbers.begin(), numbers.end());
    KeepArray(Object(3), reals.data(), length);
    EXPECT_EQ(Encoded(ArgKind::kFloatArray, Object(3)),
              Wanted()
                  .Put(ArgumentTag::kRealList)
                  .Put(count)
                  .PutAll(std::vector<double>(reals.begin(), reals.end()))
                  .bytes());
    Keep(4, {2}, {1}, 0x9000);
    const std::vector<const void*> elements(length, Object(4));
    KeepList(Object(5), elements.data(), length);
    Wanted list;
    list.Put(ArgumentTag::kTensorList).Put(count);
    for (size_t i = 0; i < length; ++i) list.PutTensor(DType::kFloat32, {2}, {1}, 0x9000);
    EXPECT_EQ(Encoded(ArgKind::kTensorList, Object(5)), list.bytes()) << length;
  }
  const bool flags[] = {true, false, true};
  KeepArray(Object(3), flags, 3);
  EXPECT_EQ(
      Encoded(ArgKind::kBoolArray, Object(3)),
      Wanted().Put(ArgumentTag::kBoolList).Put(uint32_t{3}).PutAll<uint8_t>({1, 0, 1}).bytes());
}

TEST_F(AclObjects, AScalarHasItsTypeAndValue) {
  const float value = 1.5f;
  KeepScalar(static_cast<const aclScalar*>(Object(6)), &value, ACL_FLOAT);
  EXPECT_EQ(Encoded(ArgKind::kScalar, Object(6)), Wanted()
                                                      .Put(ArgumentTag::kScalar)
                                                      .Put(DType::kFloat32)
                                                      .Put(value)
                                                      .PutAll<uint32_t>({0, 0, 0})
                                                      .bytes());
  EXPECT_EQ(Encoded(ArgKind::kScalar, Object(7)), Wanted().Put(ArgumentTag::kNone).bytes());
}

TEST_F(AclObjects, ATensorKeepsItsShapeWhenItsAddressIsSetOrItTurnsIntoBlocks) {
  Keep(8, {2, 3}, {3, 1}, 0x1000);
  MoveRaw(TensorObject(8), reinterpret_cast<void*>(0x2000));
  EXPECT_EQ(Encoded(ArgKind::kTensor, Object(8)),
            Wanted().PutTensor(DType::kFloat32, {2, 3}, {3, 1}, 0x2000).bytes());
  TurnIntoBlocks(TensorObject(8));
  const std::vector<std::byte> blocks = Encoded(ArgKind::kTensor, Object(8));
  ASSERT_GT(blocks.size(), 14u);
  EXPECT_EQ(static_cast<uint8_t>(blocks[2]), 4) << "the rank of the storage";
  // After the format: the view of the matrix.
  const std::vector<int64_t> view = {2, 3, 3, 1};
  EXPECT_EQ(0, std::memcmp(blocks.data() + blocks.size() - 32, view.data(), 32));
}

// A few destroyed objects may rest. A program that makes millions must not fill the memory.
TEST_F(AclObjects, DestroyedObjectsAreForgottenWhenThereAreMany) {
  constexpr uint64_t kObjects = 20000;
  for (uint64_t i = 0; i < kObjects; ++i) Keep(1000 + i, {1}, {1}, 0x100);
  for (uint64_t i = 0; i < kObjects; ++i) DropTensor(Object(1000 + i));
  uint64_t known = 0;
  for (uint64_t i = 0; i < kObjects; ++i) {
    known += Encoded(ArgKind::kTensor, Object(1000 + i)).size() > 1 ? 1 : 0;
  }
  EXPECT_LE(known, kObjects / 4);
}

// As with a framework's queue: one thread makes and encodes, another one destroys.
TEST_F(AclObjects, AnotherThreadMayDestroyWhatThisOneMade) {
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> done{0};
  std::thread destroys([&] {
    for (uint64_t i = 0; i < 20000; ++i) {
      while (i == made.load(std::memory_order_acquire)) std::this_thread::yield();
      DropTensor(Object(40000 + i % 64));
      DropArray(Object(40000 + i % 64));
      done.store(i + 1, std::memory_order_release);
    }
  });
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    const std::vector<int64_t> sizes(1 + i % 8, static_cast<int64_t>(1 + i));
    // No address is given out again before its object was destroyed.
    while (i >= 64 + done.load(std::memory_order_acquire)) std::this_thread::yield();
    Keep(40000 + i % 64, sizes, sizes, i);
    KeepArray(Object(40000 + i % 64), sizes.data(), sizes.size());
    wrong += Encoded(ArgKind::kTensor, Object(40000 + i % 64)) ==
                     Wanted().PutTensor(DType::kFloat32, sizes, sizes, i).bytes()
                 ? 0
                 : 1;
    made.store(i + 1, std::memory_order_release);
  }
  destroys.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace acltape::acl_agent
