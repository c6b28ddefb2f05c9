// FRACTAL_NZ as a layout of memory: what casts and weights show to a program that reads the bytes,
// and products of weights that lie so. The expected places are computed here, one by one.
#include <dlfcn.h>

#include <cstdlib>

#include "acl/acl_op_compiler.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

int64_t Blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

// The dims of the storage of matrices in blocks of 16 x `columns`.
Dims StorageDims(at::IntArrayRef sizes, int64_t columns) {
  Dims dims = sizes.vec();
  const size_t rank = dims.size();
  dims[rank - 2] = Blocks(sizes[rank - 1], columns);
  dims[rank - 1] = Blocks(sizes[rank - 2], 16);
  dims.insert(dims.end(), {16, columns});
  return dims;
}

// A matrix, or a batch of them, element by element in blocks; zeros beside it.
Tensor InBlocks(const Tensor& dense, int64_t columns) {
  const Dims dims = StorageDims(dense.sizes(), columns);
  const Tensor blocks = at::zeros(dims, dense.options());
  const int64_t batch = dense.numel() / (dense.size(-1) * dense.size(-2));
  const Tensor from = dense.reshape({batch, dense.size(-2), dense.size(-1)});
  const Tensor to = blocks.view({batch, dims[dims.size() - 4], dims[dims.size() - 3], 16, columns});
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t row = 0; row < from.size(1); ++row) {
      for (int64_t column = 0; column < from.size(2); ++column) {
        to[b][column / columns][row / 16][row % 16][column % columns].copy_(from[b][row][column]);
      }
    }
  }
  return blocks;
}

int64_t ColumnsOf(at::ScalarType dtype) {
  return 32 / static_cast<int64_t>(c10::elementSize(dtype));
}

aclDataType TypeOf(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return ACL_FLOAT16;
    case at::kBFloat16:
      return ACL_BF16;
    case at::kChar:
      return ACL_INT8;
    case at::kInt:
      return ACL_INT32;
    default:
      return ACL_FLOAT;
  }
}

// A handle of memory that holds a matrix in blocks.
aclTensor* Describe(const Tensor& blocks, const Dims& sizes, const Dims& strides,
                    const Dims& storage, aclFormat format = ACL_FORMAT_FRACTAL_NZ) {
  return aclCreateTensor(sizes.data(), sizes.size(), TypeOf(blocks.scalar_type()), strides.data(),
                         0, format, storage.data(), storage.size(), blocks.data_ptr());
}

Dims RowMajor(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

// Runs an operator whose argument `position` is `handle` instead of a plain tensor.
int RunWith(const char* name, const Args& args, int position, aclTensor* handle) {
  TestStream();
  PackedCall call(name, args);
  std::vector<acl::ArgValue> values(call.values(), call.values() + call.op().arg_count);
  values[position] = acl::Pack(handle);
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  int status = call.op().prepare(dlsym(RTLD_DEFAULT, std::string(call.op().workspace_name).c_str()),
                                 values.data(), &bytes, &executor);
  if (status != 0) return status;
  std::vector<char> workspace(bytes);
  status = call.op().launch(dlsym(RTLD_DEFAULT, name), values.data(),
                            bytes == 0 ? nullptr : workspace.data(), bytes, executor, TestStream());
  return status != 0 ? status : aclrtSynchronizeStream(TestStream());
}

Tensor Integers(at::IntArrayRef sizes, at::ScalarType dtype) {
  return Random(sizes, at::kFloat, -9, 9).round().to(dtype);
}

TEST(BlockedFormat, FMT_01_ACastThereShowsTheBlocksAndBackTheMatrix) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kFloat, at::kChar}) {
    for (const Dims& sizes :
         {Dims{16, 16}, Dims{33, 50}, Dims{2, 5, 37}, Dims{1, 70}, Dims{2, 3, 17, 8}}) {
      const Tensor dense = Integers(sizes, dtype);
      int64_t* shape = nullptr;
      uint64_t rank = 0;
      int format = 0;
      aclTensor* source = ViewOf(dense);
      ASSERT_EQ(aclnnNpuFormatCastCalculateSizeAndFormat(source, ACL_FORMAT_FRACTAL_NZ, -1, &shape,
                                                         &rank, &format),
                0);
      const Dims storage(shape, shape + rank);
      delete[] shape;
      EXPECT_EQ(format, ACL_FORMAT_FRACTAL_NZ);
      EXPECT_EQ(storage, StorageDims(sizes, ColumnsOf(dtype)));
      const Tensor blocks = Unwritten(at::empty(storage, dense.options()));
      aclTensor* cast = Describe(blocks, sizes, RowMajor(sizes), storage);
      // (to, from) of a copy, (from, to) of a cast.
      for (const auto& [name, to] : {std::pair{"aclnnInplaceCopy", 0}, {"aclnnNpuFormatCast", 1}}) {
        blocks.copy_(Unwritten(blocks));
        ASSERT_EQ(RunWith(name, {dense, dense}, to, cast), 0) << TakeMessage();
        EXPECT_TRUE(SameBits(blocks, InBlocks(dense, ColumnsOf(dtype))))
            << name << dtype << at::IntArrayRef(sizes);
        const Tensor back = Unwritten(dense);
        const Args there = to == 0 ? Args{back, dense} : Args{dense, back};
        ASSERT_EQ(RunWith(name, there, 1 - to, cast), 0) << TakeMessage();
        EXPECT_TRUE(SameBits(back, dense)) << name;
      }
      // Every operator reads such a tensor.
      const Tensor sum = Unwritten(dense);
      ASSERT_EQ(RunWith("aclnnAdd", {dense, dense, 1, sum}, 0, cast), 0) << TakeMessage();
      EXPECT_TRUE(SameBits(sum, at::add(dense, dense)));
      aclDestroyTensor(cast);
      aclDestroyTensor(source);
    }
  }
}

// A program may describe a weight by the dims of its storage.
TEST(BlockedFormat, FMT_01_AHandleWithTheDimsOfTheStorageIsTheSameMemory) {
  const Tensor dense = Random({33, 50}, at::kHalf), blocks = InBlocks(dense, 16);
  const Dims storage = blocks.sizes().vec();
  aclTensor* cast = Describe(blocks, storage, RowMajor(storage), storage);
  const Tensor x = Random({4, 33}, at::kHalf), product = at::empty({4, 50}, at::kHalf);
  ASSERT_EQ(RunWith("aclnnMatmulWeightNz", {x, dense, product, 0}, 1, cast), 0) << TakeMessage();
  EXPECT_TRUE(SameBits(product, at::mm(x.to(at::kFloat), dense.to(at::kFloat)).to(at::kHalf)));
  const Tensor back = Unwritten(dense);
  ASSERT_EQ(RunWith("aclnnNpuFormatCast", {dense, back}, 0, cast), 0) << TakeMessage();
  EXPECT_TRUE(SameBits(back, dense));
  aclDestroyTensor(cast);
}

TEST(BlockedFormat, FMT_01_ACastKeepsDtypeAndShape) {
  const Tensor dense = Random({33, 50}, at::kHalf), plain = at::empty({33, 50}, at::kHalf);
  ASSERT_EQ(RunOperator("aclnnNpuFormatCast", {dense, plain}), 0) << LastMessage();
  EXPECT_TRUE(SameBits(plain, dense));
  EXPECT_EQ(RunOperator("aclnnNpuFormatCast", {dense, at::empty({33, 50}, at::kFloat)}), kReject);
  EXPECT_EQ(RunOperator("aclnnNpuFormatCast", {dense, at::empty({33, 51}, at::kHalf)}), kReject);
  EXPECT_EQ(RunOperator("aclnnNpuFormatCast", {dense.t(), at::empty({50, 33}, at::kHalf)}),
            kReject);
  EXPECT_NE(LastMessage().find("srcTensor is not contiguous"), std::string::npos) << LastMessage();
}

TEST(BlockedFormat, FMT_02_ProductsReadWeightsInBlocks) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kFloat}) {
    for (const bool transposed : {false, true}) {
      const Tensor matrix = Random({37, 50}, dtype);  // as it lies in memory
      const Tensor weight = transposed ? matrix.t() : matrix;
      const Tensor x = Random({5, weight.size(0)}, dtype), bias = Random({weight.size(1)}, dtype);
      const Tensor blocks = InBlocks(matrix, ColumnsOf(dtype));
      for (const bool told : {true, false}) {  // else the handle names a number of elements
        const Dims storage = told ? blocks.sizes().vec() : Dims{blocks.numel()};
        aclTensor* nz = Describe(blocks, weight.sizes().vec(), weight.strides().vec(), storage);
        const Tensor expected = at::empty({5, weight.size(1)}, dtype), out = Unwritten(expected);
        ASSERT_EQ(RunOperator("aclnnMm", {x, weight, expected, 0}), 0);
        for (const char* name : {"aclnnMm", "aclnnMatmul", "aclnnMatmulWeightNz"}) {
          ASSERT_EQ(RunWith(name, {x, weight, out, 0}, 1, nz), 0) << TakeMessage();
          EXPECT_TRUE(SameBits(out, expected)) << name << dtype << transposed << told;
        }
        const Tensor sum = at::empty_like(expected), plain = at::empty_like(expected);
        ASSERT_EQ(RunOperator("aclnnAddmm", {bias, x, weight, 0.5, 2.0, plain, 0}), 0);
        ASSERT_EQ(RunWith("aclnnAddmmWeightNz", {bias, x, weight, 0.5, 2.0, sum, 0}, 2, nz), 0)
            << TakeMessage();
        EXPECT_TRUE(SameBits(sum, plain));
        aclDestroyTensor(nz);
      }
    }
  }
  const Tensor weights = Random({3, 20, 40}, at::kHalf), x = Random({3, 6, 20}, at::kHalf);
  const Tensor blocks = InBlocks(weights, 16);
  aclTensor* nz =
      Describe(blocks, weights.sizes().vec(), weights.strides().vec(), blocks.sizes().vec());
  const Tensor expected = at::empty({3, 6, 40}, at::kHalf), out = Unwritten(expected);
  ASSERT_EQ(RunOperator("aclnnBatchMatMul", {x, weights, expected, 0}), 0);
  for (const char* name : {"aclnnBatchMatMul", "aclnnBatchMatMulWeightNz"}) {
    ASSERT_EQ(RunWith(name, {x, weights, out, 0}, 1, nz), 0) << TakeMessage();
    EXPECT_TRUE(SameBits(out, expected)) << name;
  }
  aclDestroyTensor(nz);
}

// (x1, x2, x1Scale, x2Scale, yScale, x1Offset, x2Offset, yOffset, bias, transposeX1, transposeX2,
// groupSize, out)
TEST(BlockedFormat, FMT_02_QuantisedProductsReadWeightsInBlocksOf32Columns) {
  for (const bool transposed : {false, true}) {
    const Tensor matrix = Integers(transposed ? Dims{45, 70} : Dims{70, 45}, at::kChar);
    const Tensor x = Integers({4, 70}, at::kChar), scale = Random({45}, at::kFloat, 0.5, 1);
    const Tensor blocks = InBlocks(matrix, 32);
    const auto call = [&](const Tensor& out) {
      return Args{x,      matrix, Null{}, scale,      Null{},     Null{}, Null{},
                  Null{}, Null{}, false,  transposed, int64_t{0}, out};
    };
    const Tensor expected = at::empty({4, 45}, at::kBFloat16), out = Unwritten(expected);
    ASSERT_EQ(RunOperator("aclnnQuantMatmulV5", call(expected)), 0) << LastMessage();
    for (const bool as_storage : {false, true}) {
      const Dims storage = blocks.sizes().vec();
      const Dims sizes = as_storage ? storage : matrix.sizes().vec();
      aclTensor* nz = Describe(blocks, sizes, RowMajor(sizes), storage);
      ASSERT_EQ(RunWith("aclnnQuantMatmulWeightNz", call(out), 1, nz), 0) << TakeMessage();
      EXPECT_TRUE(SameBits(out, expected)) << transposed << as_storage;
      aclDestroyTensor(nz);
    }
  }
}

// Eight integers of 4 bits in one of 32, the first one lowest.
Tensor PackedInt4(const Tensor& whole) {
  Dims sizes = whole.sizes().vec();
  sizes.back() /= 8;
  const Tensor flat = whole.contiguous(), packed = at::empty(sizes, at::kInt);
  const auto* from = flat.data_ptr<int32_t>();
  auto* to = packed.data_ptr<int32_t>();
  for (int64_t word = 0; word < packed.numel(); ++word) {
    uint32_t bits = 0;
    for (int i = 0; i < 8; ++i) {
      bits |= (static_cast<uint32_t>(from[word * 8 + i]) & 15u) << (4 * i);
    }
    to[word] = static_cast<int32_t>(bits);
  }
  return packed;
}

TEST(BlockedFormat, FMT_05_WeightsOf4BitsArePackedAndMayLieInBlocks) {
  for (const Dims& sizes : {Dims{64, 64}, Dims{37, 72}, Dims{2, 16, 8}}) {
    const Tensor whole = Random(sizes, at::kFloat, -8, 7).round().to(at::kInt);
    const Tensor packed = PackedInt4(whole), out = Unwritten(packed);
    ASSERT_EQ(RunOperator("aclnnConvertWeightToINT4Pack", {whole, out}), 0) << LastMessage();
    EXPECT_TRUE(SameBits(out, packed)) << at::IntArrayRef(sizes);
    const Tensor expected = InBlocks(packed, 8), blocks = Unwritten(expected);
    aclTensor* nz = Describe(blocks, packed.sizes().vec(), RowMajor(packed.sizes().vec()),
                             blocks.sizes().vec());
    ASSERT_EQ(RunWith("aclnnConvertWeightToINT4Pack", {whole, out}, 1, nz), 0) << TakeMessage();
    EXPECT_TRUE(SameBits(blocks, expected)) << at::IntArrayRef(sizes);
    if (sizes.size() == 2) {
      const Tensor x = Random({5, sizes[0]}, at::kHalf);
      const Tensor scale = Random({sizes[1]}, at::kHalf, 0.1, 1);
      const Tensor plain = at::empty({5, sizes[1]}, at::kHalf), product = Unwritten(plain);
      const auto call = [&](const Tensor& y) {
        return Args{x, packed, scale, Null{}, Null{}, Null{}, Null{}, int64_t{0}, y};
      };
      ASSERT_EQ(RunOperator("aclnnWeightQuantBatchMatmulV2", call(plain)), 0) << LastMessage();
      ASSERT_EQ(RunWith("aclnnWeightQuantBatchMatmulV2", call(product), 1, nz), 0) << TakeMessage();
      EXPECT_TRUE(SameBits(product, plain)) << at::IntArrayRef(sizes);
    }
    aclDestroyTensor(nz);
  }
  const Tensor odd = at::zeros({4, 12}, at::kInt);
  EXPECT_EQ(RunOperator("aclnnConvertWeightToINT4Pack", {odd, at::zeros({4, 1}, at::kInt)}),
            kReject);
  EXPECT_NE(LastMessage().find("no multiple of 8"), std::string::npos) << LastMessage();
}

TEST(BlockedFormat, FMT_03_AWeightMovesIntoBlocksInItsOwnMemory) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kChar}) {
    const Dims sizes{37, 50};
    const aclIntArray* shape = aclCreateIntArray(sizes.data(), sizes.size());
    uint64_t elements = 0;
    ASSERT_EQ(aclnnCalculateMatmulWeightSizeV2(shape, TypeOf(dtype), &elements), 0);
    aclDestroyIntArray(shape);
    EXPECT_EQ(elements, dtype == at::kChar ? 48u * 64u : 48u * 64u);
    const Tensor memory = at::zeros({static_cast<int64_t>(elements)}, dtype);
    const Tensor weight = Integers(sizes, dtype);
    memory.narrow(0, 0, weight.numel()).copy_(weight.flatten());
    aclTensor* handle = Describe(memory, sizes, RowMajor(sizes), {weight.numel()}, ACL_FORMAT_ND);
    ASSERT_EQ(RunWith("aclnnTransMatmulWeight", {weight}, 0, handle), 0) << TakeMessage();
    const Tensor blocks = InBlocks(weight, ColumnsOf(dtype));
    EXPECT_TRUE(SameBits(memory, blocks.flatten()));
    // The handle stands for the blocks from then on.
    aclFormat format = ACL_FORMAT_UNDEFINED;
    int64_t* storage = nullptr;
    uint64_t rank = 0;
    EXPECT_EQ(aclGetFormat(handle, &format), 0);
    EXPECT_EQ(format, ACL_FORMAT_FRACTAL_NZ);
    ASSERT_EQ(aclGetStorageShape(handle, &storage, &rank), 0);
    EXPECT_EQ(Dims(storage, storage + rank), blocks.sizes().vec());
    delete[] storage;
    if (dtype != at::kChar) {
      const Tensor x = Random({3, 37}, dtype), out = at::empty({3, 50}, dtype);
      const Tensor expected = at::empty({3, 50}, dtype);
      ASSERT_EQ(RunWith("aclnnMm", {x, weight, out, 0}, 1, handle), 0) << TakeMessage();
      ASSERT_EQ(RunOperator("aclnnMm", {x, weight, expected, 0}), 0);
      EXPECT_TRUE(SameBits(out, expected));
    }
    EXPECT_EQ(RunWith("aclnnTransMatmulWeight", {weight}, 0, handle), kReject);
    EXPECT_EQ(TakeMessage(), "aclnnTransMatmulWeight: mmWeightRef is not in the format ND.");
    aclDestroyTensor(handle);
  }
  EXPECT_EQ(RunOperator("aclnnTransMatmulWeight", {Random({4, 4})}), kReject);
}

// Whole blocks fill the memory of the matrix, so the tensor holds all of them.
TEST(BlockedFormat, FMT_03_AMatrixOfWholeBlocksKeepsItsSize) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kChar}) {
    const Tensor weight = Integers({32, 64}, dtype);
    const Tensor blocks = InBlocks(weight, ColumnsOf(dtype)).reshape({32, 64});
    EXPECT_TRUE(Gives("aclnnTransMatmulWeight", {weight}, {{0, blocks}}));
  }
}

TEST(BlockedFormat, FMT_02_StridesThatNoBlocksHaveAreRefused) {
  const Tensor blocks = at::zeros({1, 1, 16, 16}, at::kHalf), x = Random({2, 8}, at::kHalf);
  aclTensor* slice = Describe(blocks, {8, 4}, {16, 2}, {1, 1, 16, 16});
  EXPECT_EQ(RunWith("aclnnMm", {x, x.t(), at::empty({2, 4}, at::kHalf), 0}, 1, slice), kReject);
  EXPECT_EQ(TakeMessage(),
            "aclnnMm: mat2 is in FRACTAL_NZ, but its view is no matrix that lies in blocks.");
  aclDestroyTensor(slice);
}

TEST(BlockedFormat, FMT_04_OperatorsByNameCastToBlocksAndBack) {
  const aclrtStream stream = TestStream();
  const Tensor dense = Random({3, 5}), again = Unwritten(dense);
  const Tensor blocks = Unwritten(at::empty({1, 1, 16, 16}));
  const int64_t sizes[] = {3, 5}, storage[] = {1, 1, 16, 16};
  aclTensorDesc* plain = aclCreateTensorDesc(ACL_FLOAT, 2, sizes, ACL_FORMAT_ND);
  aclTensorDesc* fractal = aclCreateTensorDesc(ACL_FLOAT, 2, sizes, ACL_FORMAT_ND);
  aclSetTensorFormat(fractal, ACL_FORMAT_FRACTAL_NZ);
  aclSetTensorShape(fractal, 4, storage);
  const auto run = [&](const char* name, const aclTensorDesc* from, const Tensor& source,
                       const aclTensorDesc* to, const Tensor& target) {
    const aclDataBuffer* in = aclCreateDataBuffer(source.data_ptr(), source.nbytes());
    aclDataBuffer* out = aclCreateDataBuffer(target.data_ptr(), target.nbytes());
    EXPECT_EQ(aclopCompileAndExecute(name, 1, &from, &in, 1, &to, &out, nullptr, ACL_ENGINE_SYS,
                                     ACL_COMPILE_SYS, nullptr, stream),
              0);
    EXPECT_EQ(aclrtSynchronizeStream(stream), 0) << aclGetRecentErrMsg();
    aclDestroyDataBuffer(in);
    aclDestroyDataBuffer(out);
  };
  for (const char* name : {"Identity", "TransData"}) {
    run(name, plain, dense, fractal, blocks);
    EXPECT_TRUE(SameBits(blocks, InBlocks(dense, 16))) << name;
    run(name, fractal, blocks, plain, again);
    EXPECT_TRUE(SameBits(again, dense)) << name;
  }
  aclDestroyTensorDesc(plain);
  aclDestroyTensorDesc(fractal);
}

}  // namespace
}  // namespace acltape::opapi
