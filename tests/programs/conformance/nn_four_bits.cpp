// Weights of 4 bits in blocks of 32 that share a scale, as llama.cpp keeps them (q4_0): the rows of
// a weight lie dense, so that the product reads it transposed. Two layers run one by one, and then
// as a graph that is executed with new inputs. Another weight is packed into blocks (FRACTAL_NZ).
#include "acl/acl.h"
#include "aclnnop/aclnn_convert_weight_to_int4_pack.h"
#include "aclnnop/aclnn_weight_quant_batch_matmul_v2.h"
#include "tensors.h"

namespace {

constexpr int kBlock = 32;

// A weight of [rows, inner] in host memory.
struct FourBits {
  int rows, inner;
  std::vector<uint8_t> bytes;
  std::vector<aclFloat16> scales;  // one for each row and block

  FourBits(int rows_, int inner_, int seed) : rows(rows_), inner(inner_) {
    for (int i = 0; i < rows * inner / 2; ++i) {
      bytes.push_back(static_cast<uint8_t>(i * 73 + seed * 31 + i * i % 57));
    }
    for (float scale : Numbers(rows * inner / kBlock, seed)) {
      scales.push_back(aclFloatToFloat16(0.05f + std::fabs(scale) / 20));
    }
  }
  double At(int row, int k) const {
    const int place = row * inner + k, bits = bytes[place / 2] >> (4 * (place % 2)) & 15;
    const double scale = aclFloat16ToFloat(scales[place / kBlock]);
    return (bits < 8 ? bits : bits - 16) * scale;
  }
};

// The same on the device, as the product wants it: [inner, rows].
class DeviceWeight {
 public:
  explicit DeviceWeight(const FourBits& weight)
      : bytes_(Upload(weight.bytes.data(), weight.bytes.size())),
        scales_(Upload(weight.scales.data(), weight.scales.size() * sizeof(aclFloat16))) {
    const int64_t blocks = weight.inner / kBlock;
    tensor = Transposed(ACL_INT4, weight.inner, weight.rows, bytes_);
    scale = Transposed(ACL_FLOAT16, blocks, weight.rows, scales_);
  }
  ~DeviceWeight() {
    CHECK_ACL(aclDestroyTensor(tensor));
    CHECK_ACL(aclDestroyTensor(scale));
    CHECK_ACL(aclrtFree(bytes_));
    CHECK_ACL(aclrtFree(scales_));
  }
  DeviceWeight(const DeviceWeight&) = delete;
  DeviceWeight& operator=(const DeviceWeight&) = delete;

  aclTensor *tensor, *scale;

 private:
  static aclTensor* Transposed(aclDataType type, int64_t inner, int64_t rows, void* block) {
    const int64_t sizes[] = {inner, rows}, strides[] = {1, inner}, all = inner * rows;
    return aclCreateTensor(sizes, 2, type, strides, 0, ACL_FORMAT_ND, &all, 1, block);
  }

  void *bytes_, *scales_;
};

std::vector<double> Multiply(const std::vector<double>& x, const FourBits& weight) {
  std::vector<double> y;
  for (size_t row = 0; row < x.size() / weight.inner; ++row) {
    for (int column = 0; column < weight.rows; ++column) {
      double sum = 0;
      for (int k = 0; k < weight.inner; ++k) {
        sum += x[row * weight.inner + k] * weight.At(column, k);
      }
      y.push_back(sum);
    }
  }
  return y;
}

// A weight of [rows, inner] is packed into blocks of 16 rows and 64 columns, and a product reads it
// transposed.
void MultiplyByBlocks(aclrtStream stream) {
  constexpr int kBatch = 3, kRows = 17, kInner = 72;
  std::vector<int32_t> integers;
  for (int i = 0; i < kRows * kInner; ++i) integers.push_back((i * 37 + i * i % 11) % 16 - 8);
  std::vector<aclFloat16> halves, ones(kRows, aclFloatToFloat16(1));
  for (float number : Numbers(kBatch * kInner, 9)) halves.push_back(aclFloatToFloat16(number));
  Tensor x(ACL_FLOAT16, {kBatch, kInner}, halves), y(ACL_FLOAT16, {kBatch, kRows});
  Tensor whole(ACL_INT32, {kRows, kInner}, integers), scale(ACL_FLOAT16, {kRows}, ones);
  const int64_t storage[] = {2, 2, 16, 64}, sizes[] = {kRows, kInner}, strides[] = {kInner, 1};
  const int64_t turned_sizes[] = {kInner, kRows}, turned_strides[] = {1, kInner};
  void* block = MallocDevice(2 * 2 * 16 * 64 / 2);
  aclTensor* packed =
      aclCreateTensor(sizes, 2, ACL_INT4, strides, 0, ACL_FORMAT_FRACTAL_NZ, storage, 4, block);
  aclTensor* weight = aclCreateTensor(turned_sizes, 2, ACL_INT4, turned_strides, 0,
                                      ACL_FORMAT_FRACTAL_NZ, storage, 4, block);
  CHECK(packed != nullptr && weight != nullptr);
  RUN_OP(stream, aclnnConvertWeightToINT4Pack, whole, packed);
  RUN_OP(stream, aclnnWeightQuantBatchMatmulV2, x, weight, scale, nullptr, nullptr, nullptr,
         nullptr, 0, y);
  const auto found = y.Read<aclFloat16>(stream);
  for (int row = 0; row < kBatch; ++row) {
    for (int column = 0; column < kRows; ++column) {
      double sum = 0;
      for (int k = 0; k < kInner; ++k) {
        sum += aclFloat16ToFloat(halves[row * kInner + k]) * integers[column * kInner + k];
      }
      CHECK(Near(aclFloat16ToFloat(found[row * kRows + column]), sum, 0.2));
    }
  }
  CHECK_ACL(aclDestroyTensor(packed));
  CHECK_ACL(aclDestroyTensor(weight));
  CHECK_ACL(aclrtFree(block));
}

}  // namespace

int main() {
  aclrtStream stream = StartSession();
  MultiplyByBlocks(stream);
  {
    constexpr int kRows = 3, kInput = 64, kHidden = 96, kOutput = 16;
    const FourBits first(kHidden, kInput, 1), second(kOutput, kHidden, 2);
    const DeviceWeight up(first), down(second);
    Tensor x(ACL_FLOAT16, {kRows, kInput}), hidden(ACL_FLOAT16, {kRows, kHidden});
    Tensor y(ACL_FLOAT16, {kRows, kOutput});
    const auto run = [&] {
      RUN_OP(stream, aclnnWeightQuantBatchMatmulV2, x, up.tensor, up.scale, nullptr, nullptr,
             nullptr, nullptr, kBlock, hidden);
      RUN_OP(stream, aclnnWeightQuantBatchMatmulV2, hidden, down.tensor, down.scale, nullptr,
             nullptr, nullptr, nullptr, kBlock, y);
    };
    aclmdlRI model = nullptr;
    for (int round = 0; round < 3; ++round) {
      std::vector<aclFloat16> halves;
      std::vector<double> rows;
      for (float number : Numbers(kRows * kInput, 3 + round)) {
        halves.push_back(aclFloatToFloat16(number));
        rows.push_back(aclFloat16ToFloat(halves.back()));
      }
      const size_t bytes = halves.size() * sizeof(aclFloat16);
      CHECK_ACL(aclrtMemcpy(x.block(), bytes, halves.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
      if (round == 1) {
        CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
        run();
        CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
      }
      if (round == 0) {
        run();
      } else {
        CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
      }
      const std::vector<double> expected = Multiply(Multiply(rows, first), second);
      const auto found = y.Read<aclFloat16>(stream);
      double most = 0;
      for (double value : expected) most = std::fmax(most, std::fabs(value));
      for (size_t i = 0; i < found.size(); ++i) {
        CHECK(Near(aclFloat16ToFloat(found[i]), expected[i], most / 200));
      }
    }
    CHECK_ACL(aclmdlRIDestroy(model));
  }
  FreeWorkspaces();
  return EndSession(stream);
}
