// Weights in the blocked format FRACTAL_NZ: moved into blocks in their own memory, and cast into
// other memory. The program looks at the blocks itself, and multiplies by both weights.
//
//   blocked_weights
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_mm.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "sample.h"

namespace {

constexpr int64_t kRows = 3, kInner = 37, kColumns = 50;

float InputAt(int64_t row, int64_t k) { return static_cast<float>((row * 5 + k) % 7 - 3); }
float WeightAt(int64_t k, int64_t column) {
  return static_cast<float>((k * 7 + column * 3) % 11 - 5);
}

using Halves = std::vector<aclFloat16>;

template <typename At>
Halves Matrix(int64_t rows, int64_t columns, At element) {
  Halves values;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      values.push_back(aclFloatToFloat16(element(row, column)));
    }
  }
  return values;
}

void* Upload(const Halves& values, size_t elements) {
  void* device = MallocDevice(elements * sizeof(aclFloat16));
  CHECK_ACL(aclrtMemcpy(device, elements * sizeof(aclFloat16), values.data(),
                        values.size() * sizeof(aclFloat16), ACL_MEMCPY_HOST_TO_DEVICE));
  return device;
}

Halves Download(void* device, size_t elements) {
  Halves values(elements);
  CHECK_ACL(aclrtMemcpy(values.data(), elements * sizeof(aclFloat16), device,
                        elements * sizeof(aclFloat16), ACL_MEMCPY_DEVICE_TO_HOST));
  return values;
}

// Blocks of 16 x 16 of a matrix of rows x columns: each element where it belongs, zeros elsewhere.
template <typename At>
void CheckBlocks(const Halves& blocks, int64_t rows, int64_t columns, At element) {
  const int64_t padded_rows = (rows + 15) / 16 * 16, padded_columns = (columns + 15) / 16 * 16;
  CHECK(static_cast<int64_t>(blocks.size()) == padded_rows * padded_columns);
  for (int64_t row = 0; row < padded_rows; ++row) {
    for (int64_t column = 0; column < padded_columns; ++column) {
      const int64_t place = (column / 16 * padded_rows + row) * 16 + column % 16;
      const float expected = row < rows && column < columns ? element(row, column) : 0.0f;
      CHECK(aclFloat16ToFloat(blocks[static_cast<size_t>(place)]) == expected);
    }
  }
}

void CheckProduct(void* device) {
  const Halves product = Download(device, kRows * kColumns);
  float total = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      float sum = 0;
      for (int64_t k = 0; k < kInner; ++k) sum += InputAt(row, k) * WeightAt(k, column);
      CHECK(aclFloat16ToFloat(product[static_cast<size_t>(row * kColumns + column)]) == sum);
      total += sum;
    }
  }
  std::printf("a product of %d x %d sums up to %g\n", static_cast<int>(kRows),
              static_cast<int>(kColumns), total);
}

size_t WeightElements(const std::vector<int64_t>& sizes) {
  aclIntArray* shape = aclCreateIntArray(sizes.data(), sizes.size());
  uint64_t elements = 0;
  CHECK_ACL(aclnnCalculateMatmulWeightSizeV2(shape, ACL_FLOAT16, &elements));
  CHECK_ACL(aclDestroyIntArray(shape));
  return elements;
}

// The same handle stands for the plain weight, and then for its blocks.
void InItsOwnMemory(aclrtStream stream, aclTensor* input, aclTensor* out, void* result) {
  const int64_t sizes[] = {kInner, kColumns};
  const size_t elements = WeightElements({kInner, kColumns});
  std::printf("a weight in blocks has %zu elements\n", elements);
  void* memory = Upload(Matrix(kInner, kColumns, WeightAt), elements);
  aclTensor* weight = MakeTensor(ACL_FLOAT16, 2, sizes, memory);
  RUN_OP(stream, aclnnTransMatmulWeight, weight);
  RUN_OP(stream, aclnnMm, input, weight, out, 0);
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CheckBlocks(Download(memory, elements), kInner, kColumns, WeightAt);
  CheckProduct(result);
  CHECK_ACL(aclDestroyTensor(weight));
  CHECK_ACL(aclrtFree(memory));
}

// A weight of [columns, inner], as layers keep theirs, cast and read as its transposed view. The
// handle of the product names only how many elements the matrix has.
void CastElsewhere(aclrtStream stream, aclTensor* input, aclTensor* out, void* result) {
  const int64_t sizes[] = {kColumns, kInner}, strides[] = {kInner, 1};
  const int64_t view[] = {kInner, kColumns}, turned[] = {1, kInner};
  const auto weight_at = [](int64_t column, int64_t k) { return WeightAt(k, column); };
  void* plain = Upload(Matrix(kColumns, kInner, weight_at), kColumns * kInner);
  aclTensor* source = MakeTensor(ACL_FLOAT16, 2, sizes, plain);
  int64_t* storage = nullptr;
  uint64_t rank = 0;
  int format = 0;
  CHECK_ACL(aclnnNpuFormatCastCalculateSizeAndFormat(source, ACL_FORMAT_FRACTAL_NZ, -1, &storage,
                                                     &rank, &format));
  CHECK(rank == 4 && format == ACL_FORMAT_FRACTAL_NZ);
  size_t elements = 1;
  for (uint64_t i = 0; i < rank; ++i) elements *= static_cast<size_t>(storage[i]);
  void* blocks = MallocDevice(elements * sizeof(aclFloat16));
  aclTensor* cast = aclCreateTensor(sizes, 2, ACL_FLOAT16, strides, 0, ACL_FORMAT_FRACTAL_NZ,
                                    storage, rank, blocks);
  CHECK(cast != nullptr);
  delete[] storage;
  RUN_OP(stream, aclnnNpuFormatCast, source, cast);
  const int64_t count = kColumns * kInner;
  aclTensor* weight =
      aclCreateTensor(view, 2, ACL_FLOAT16, turned, 0, ACL_FORMAT_FRACTAL_NZ, &count, 1, blocks);
  CHECK(weight != nullptr);
  RUN_OP(stream, aclnnMatmulWeightNz, input, weight, out, 0);
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CheckBlocks(Download(blocks, elements), kColumns, kInner, weight_at);
  CheckProduct(result);
  for (const aclTensor* tensor : {source, cast, weight}) CHECK_ACL(aclDestroyTensor(tensor));
  CHECK_ACL(aclrtFree(plain));
  CHECK_ACL(aclrtFree(blocks));
}

}  // namespace

int main() {
  aclrtStream stream = nullptr;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  const int64_t input_sizes[] = {kRows, kInner}, out_sizes[] = {kRows, kColumns};
  void* x = Upload(Matrix(kRows, kInner, InputAt), kRows * kInner);
  void* result = MallocDevice(kRows * kColumns * sizeof(aclFloat16));
  aclTensor* input = MakeTensor(ACL_FLOAT16, 2, input_sizes, x);
  aclTensor* out = MakeTensor(ACL_FLOAT16, 2, out_sizes, result);
  InItsOwnMemory(stream, input, out, result);
  CastElsewhere(stream, input, out, result);
  for (const aclTensor* tensor : {input, out}) CHECK_ACL(aclDestroyTensor(tensor));
  FreeWorkspaces();
  CHECK_ACL(aclrtFree(x));
  CHECK_ACL(aclrtFree(result));
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  std::printf("blocked_weights: passed\n");
  return 0;
}
