// Weights of 4 bits in FRACTAL_NZ: blocks of 16 rows and 64 columns, two integers in each byte, by
// the page of aclnnConvertWeightToINT4Pack. What the products give is compared with what they give
// for the same integers in plain order, which other tests hold.
#include <vector>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;
using NibbleBytes = std::vector<uint8_t>;

Tensor SmallIntegers(const Dims& sizes) {
  return Random(sizes, at::kFloat, -8.49, 7.49).round().to(at::kInt);
}

void PutNibble(NibbleBytes& bytes, int64_t place, int value) {
  bytes[place / 2] = static_cast<uint8_t>(bytes[place / 2] | (value & 15) << (4 * (place % 2)));
}

NibbleBytes NibblesInOrder(const Tensor& integers) {
  const Tensor dense = integers.contiguous();
  NibbleBytes bytes((dense.numel() + 1) / 2, 0);
  for (int64_t i = 0; i < dense.numel(); ++i) PutNibble(bytes, i, dense.data_ptr<int32_t>()[i]);
  return bytes;
}

// Dims of the blocks of matrices.
Dims BlockDims(const Dims& sizes) {
  Dims storage(sizes.begin(), sizes.end() - 2);
  const int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  storage.insert(storage.end(), {(columns + 63) / 64, (rows + 15) / 16, 16, 64});
  return storage;
}

NibbleBytes NibblesInBlocks(const Tensor& integers) {
  const Dims sizes = integers.sizes().vec(), storage = BlockDims(sizes);
  const int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  const int64_t down = (rows + 15) / 16, right = (columns + 63) / 64;
  const Tensor dense = integers.contiguous();
  const int64_t batch = dense.numel() / (rows * columns);
  NibbleBytes bytes(batch * down * right * 16 * 64 / 2, 0);
  for (int64_t i = 0; i < dense.numel(); ++i) {
    const int64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
    const int64_t block = (matrix * right + column / 64) * down + row / 16;
    PutNibble(bytes, (block * 16 + row % 16) * 64 + column % 64, dense.data_ptr<int32_t>()[i]);
  }
  return bytes;
}

Dims RowMajorStrides(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

// How a call's argument stands for the bytes.
struct NibbleHandle {
  Dims sizes, strides, storage;
  aclFormat format = ACL_FORMAT_FRACTAL_NZ;
  int64_t offset = 0;
};

void ReferToNibbles(const PackedCall& call, int i, const NibbleHandle& handle, NibbleBytes& bytes) {
  ASSERT_EQ(aclInitTensor(call.tensor(i), handle.sizes.data(), handle.sizes.size(), ACL_INT4,
                          handle.strides.data(), handle.offset, handle.format,
                          handle.storage.data(), handle.storage.size(), bytes.data()),
            OK);
}

NibbleHandle PlainHandle(const Dims& sizes) {
  return {sizes, RowMajorStrides(sizes), sizes, ACL_FORMAT_ND};
}
NibbleHandle BlocksHandle(const Dims& sizes) {
  return {sizes, RowMajorStrides(sizes), BlockDims(sizes)};
}
// The transposed view of a matrix that lies in blocks or in plain order.
NibbleHandle TurnedHandle(NibbleHandle handle) {
  std::swap(handle.sizes[0], handle.sizes[1]);
  std::swap(handle.strides[0], handle.strides[1]);
  return handle;
}

void ExecuteBlocks(PackedCall& call) {
  const aclrtStream stream = TestStream();
  ASSERT_EQ(call.Prepare(), OK) << TakeMessage();
  ASSERT_EQ(call.Launch(stream), OK) << TakeMessage();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << TakeMessage();
}

TEST(FourBitBlocks, WeightsArePackedIntoThem) {
  for (const Dims& sizes : {Dims{37, 72}, Dims{16, 64}, Dims{5, 6}, Dims{3, 17, 130}}) {
    const Tensor whole = SmallIntegers(sizes);
    const NibbleBytes expected = NibblesInBlocks(whole);
    NibbleBytes bytes(expected.size(), 0xA5);  // the padding becomes zero
    PackedCall call("aclnnConvertWeightToINT4Pack", {whole, at::empty(sizes, at::kChar)});
    ReferToNibbles(call, 1, BlocksHandle(sizes), bytes);
    ExecuteBlocks(call);
    EXPECT_EQ(bytes, expected) << at::IntArrayRef(sizes);
  }
}

TEST(FourBitBlocks, ProductsWithFloatsReadThem) {
  constexpr int64_t kInner = 72, kColumns = 18;
  for (const bool turned : {false, true}) {
    for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
      const Tensor x = Random({5, kInner}, dtype), scale = Random({kColumns}, dtype, 0.1, 1);
      const Dims sizes = turned ? Dims{kColumns, kInner} : Dims{kInner, kColumns};
      const Tensor whole = SmallIntegers(sizes);
      NibbleBytes plain = NibblesInOrder(whole), blocks = NibblesInBlocks(whole);
      for (const char* name : {"aclnnWeightQuantBatchMatmulV2", "aclnnWeightQuantBatchMatmulV3"}) {
        const Tensor expected = at::empty({5, kColumns}, dtype), y = Unwritten(expected);
        const auto multiply = [&](const NibbleHandle& handle, NibbleBytes& bytes,
                                  const Tensor& out) {
          Args args = {x,      at::empty({kInner, kColumns}, at::kChar),
                       scale,  Null{},
                       Null{}, Null{},
                       Null{}, int64_t{0}};
          if (std::string(name).back() == '3') args.push_back(int64_t{0});
          args.push_back(out);
          PackedCall call(name, args);
          ReferToNibbles(call, 1, turned ? TurnedHandle(handle) : handle, bytes);
          ExecuteBlocks(call);
        };
        multiply(PlainHandle(sizes), plain, expected);
        multiply(BlocksHandle(sizes), blocks, y);
        EXPECT_TRUE(SameBits(y, expected)) << name << turned;
      }
    }
  }
}

TEST(FourBitBlocks, ProductsOfIntegersReadThem) {
  constexpr int64_t kRows = 3, kInner = 40, kColumns = 70;
  for (const bool turned : {false, true}) {
    const Tensor x1 = SmallIntegers({kRows, kInner}),
                 scale = Random({kColumns}, at::kFloat, 0.1, 1);
    const Tensor row_scale = Random({kRows}, at::kFloat, 0.5, 2);
    const Dims sizes = turned ? Dims{kColumns, kInner} : Dims{kInner, kColumns};
    const Tensor x2 = SmallIntegers(sizes);
    NibbleBytes first = NibblesInOrder(x1), plain = NibblesInOrder(x2),
                blocks = NibblesInBlocks(x2);
    const Tensor expected = at::empty({kRows, kColumns}, at::kBFloat16), out = Unwritten(expected);
    const auto multiply = [&](const char* name, const NibbleHandle& handle, NibbleBytes& bytes,
                              const Tensor& result) {
      PackedCall call(name, {x1, x2, row_scale, scale, Null{}, Null{}, Null{}, Null{}, Null{},
                             false, turned, int64_t{0}, result});
      ReferToNibbles(call, 0, PlainHandle({kRows, kInner}), first);
      ReferToNibbles(call, 1, handle, bytes);
      ExecuteBlocks(call);
    };
    multiply("aclnnQuantMatmulV5", PlainHandle(sizes), plain, expected);
    const Dims storage = BlockDims(sizes);
    for (const NibbleHandle& handle :
         {BlocksHandle(sizes), NibbleHandle{storage, RowMajorStrides(storage), storage}}) {
      multiply("aclnnQuantMatmulWeightNz", handle, blocks, out);
      EXPECT_TRUE(SameBits(out, expected)) << turned << at::IntArrayRef(handle.sizes);
    }
  }
}

TEST(FourBitBlocks, WhatIsNoMatrixInBlocksIsRefused) {
  const Tensor x = Random({5, 32}, at::kHalf), scale = Random({1}, at::kHalf, 0.1, 1);
  const Tensor y = at::empty({5, 6}, at::kHalf);
  const auto refusal = [&](const NibbleHandle& handle) {
    NibbleBytes bytes(2 * 16 * 64, 0);
    PackedCall call(
        "aclnnWeightQuantBatchMatmulV2",
        {x, at::empty({32, 6}, at::kChar), scale, Null{}, Null{}, Null{}, Null{}, int64_t{0}, y});
    ReferToNibbles(call, 1, handle, bytes);
    EXPECT_EQ(call.Prepare(), kReject);
    return TakeMessage();
  };
  NibbleHandle handle = BlocksHandle({32, 6});
  handle.offset = 1;
  EXPECT_EQ(refusal(handle),
            "aclnnWeightQuantBatchMatmulV2: weight is in FRACTAL_NZ, but begins within a byte.");
  handle.offset = 0;
  handle.strides = {12, 2};
  EXPECT_EQ(refusal(handle),
            "aclnnWeightQuantBatchMatmulV2: weight is in FRACTAL_NZ, but its view "
            "is no matrix that lies in blocks.");
}

}  // namespace
}  // namespace acltape::opapi
