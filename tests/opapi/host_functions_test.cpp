// Functions of operator headers that compute on the host at once.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "aclnn/opdev/fp16_t.h"
#include "aclnnop/aclnn_set_pytorch_random.h"
#include "aclnnop/aclnn_sparse4to2quant_matmul_weight_nz.h"
#include "aclnnop/aclnn_trans_convolution_weight.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "aclnnop/aclnn_trans_quant_param.h"
#include "aclnnop/aclnn_util.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using Dims = std::vector<int64_t>;

constexpr aclnnStatus kNull = 161001;

class Shape {
 public:
  explicit Shape(const Dims& sizes) : array_(aclCreateIntArray(sizes.data(), sizes.size())) {}
  Shape(const Shape&) = delete;
  Shape& operator=(const Shape&) = delete;
  ~Shape() { aclDestroyIntArray(array_); }
  aclIntArray* get() const { return array_; }

 private:
  aclIntArray* array_;
};

// The examples of the vendor's pages: 510 x 510 halves, 510 x 270 bytes, a convolution of [2, 4, 8,
// 8].
TEST(HostFunctions, OPI_09_WeightSizesAreThoseOfTheDocumentedExamples) {
  uint64_t elements = 0;
  EXPECT_EQ(aclnnCalculateMatmulWeightSize(Shape({510, 510}).get(), &elements), 0);
  EXPECT_EQ(elements, 262144u);
  EXPECT_EQ(aclnnCalculateMatmulWeightSizeV2(Shape({510, 270}).get(), ACL_INT8, &elements), 0);
  EXPECT_EQ(elements, 147456u);
  EXPECT_EQ(aclnnCalculateMatmulWeightSizeV2(Shape({3, 5, 17}).get(), ACL_BF16, &elements), 0);
  EXPECT_EQ(elements, 3u * 16u * 32u);
  EXPECT_EQ(aclnnCalculateConvolutionWeightSize(Shape({2, 4, 8, 8}).get(), false, 1, ACL_FLOAT16,
                                                &elements),
            0);
  EXPECT_EQ(elements, 16384u);
  EXPECT_EQ(aclnnCalculateConvolutionWeightSize(Shape({0, 4, 8, 8}).get(), false, 1, ACL_FLOAT16,
                                                &elements),
            0);
  EXPECT_EQ(elements, 0u);
  EXPECT_EQ(aclnnCalculateMatmulWeightSize(nullptr, &elements), kNull);
  EXPECT_EQ(aclnnCalculateMatmulWeightSize(Shape({4, 4}).get(), nullptr), kNull);
  EXPECT_EQ(aclnnCalculateMatmulWeightSize(Shape({4}).get(), &elements), kReject);
  EXPECT_EQ(aclnnCalculateMatmulWeightSize(Shape({4, 0}).get(), &elements), kReject);
  EXPECT_EQ(aclnnCalculateMatmulWeightSizeV2(Shape({4, 4}).get(), ACL_DOUBLE, &elements), kReject);
  EXPECT_EQ(aclnnCalculateConvolutionWeightSize(Shape({2, 4, 8, 8}).get(), true, 1, ACL_FLOAT16,
                                                &elements),
            kReject);
  TakeMessage();
}

// 1.5 is 0x3FC00000; of 1.0002441 (0x3F800800) the last bits are cut off.
TEST(HostFunctions, OPI_09_ParametersOfQuantisationHoldScaleAndOffset) {
  const float scales[] = {1.5f, 1.0f + 1.0f / 4096}, offsets[] = {2.6f, -300.0f};
  uint64_t* parameters = nullptr;
  uint64_t count = 0;
  ASSERT_EQ(aclnnTransQuantParam(scales, 2, nullptr, 0, &parameters, &count), 0);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(parameters[0], 0x40003FC00000u);
  EXPECT_EQ(parameters[1], 0x40003F800000u);
  delete[] parameters;
  ASSERT_EQ(aclnnTransQuantParam(scales, 2, offsets, 2, &parameters, &count), 0);
  EXPECT_EQ(parameters[0], 0x40003FC00000u | uint64_t{0x003} << 37);
  EXPECT_EQ(parameters[1], 0x40003F800000u | uint64_t{0x100} << 37);
  delete[] parameters;
  EXPECT_EQ(aclnnTransQuantParam(nullptr, 2, nullptr, 0, &parameters, &count), kNull);
  EXPECT_EQ(aclnnTransQuantParam(scales, 0, nullptr, 0, &parameters, &count), kReject);
  TakeMessage();
}

// Each byte of the index says, for eight elements, which four were kept: the places of the first of
// a pair, and of the second less one.
TEST(HostFunctions, OPI_09_FourElementsOfWhichTwoAreZeroBecomeTwo) {
  const int8_t weight[2][16] = {{0, 7, 0, 5, 1, 2, 0, 0, 0, 0, 0, 9, 0, 0, 8, 0},
                                {3, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 6, 0, 0, 2}};
  int8_t* kept = nullptr;
  uint8_t* index = nullptr;
  int64_t *kept_dims = nullptr, *index_dims = nullptr;
  uint64_t kept_rank = 0, index_rank = 0;
  ASSERT_EQ(aclnnTransSparse4to2Para(&weight[0][0], Shape({2, 16}).get(), &kept, &kept_dims,
                                     &kept_rank, &index, &index_dims, &index_rank),
            0);
  EXPECT_EQ(Dims(kept_dims, kept_dims + kept_rank), Dims({1, 1, 16, 32}));
  EXPECT_EQ(Dims(index_dims, index_dims + index_rank), Dims({1, 1, 16, 8}));
  const int8_t first[] = {7, 5, 1, 2, 0, 9, 8, 0}, second[] = {3, 0, 4, 0, 0, 0, 6, 2};
  EXPECT_EQ(std::memcmp(kept, first, 8), 0);
  EXPECT_EQ(std::memcmp(kept + 32, second, 8), 0);
  for (int i = 8; i < 32; ++i) EXPECT_EQ(kept[i], 0) << i;
  EXPECT_EQ(index[0], 0b0000'1001);  // 1 and 3, then 0 and 1
  EXPECT_EQ(index[1], 0b0010'1000);  // 0 and 3 for a lone last one, then 2 alone
  EXPECT_EQ(index[8], 0b0001'0000);  // 0 alone, then 1 alone
  EXPECT_EQ(index[9], 0b1000'0000);  // none, then 0 and 3
  std::free(kept);
  std::free(index);
  std::free(kept_dims);
  std::free(index_dims);
  const int8_t dense[4] = {1, 2, 3, 0};
  EXPECT_EQ(aclnnTransSparse4to2Para(dense, Shape({1, 4}).get(), &kept, &kept_dims, &kept_rank,
                                     &index, &index_dims, &index_rank),
            kReject);
  EXPECT_EQ(TakeMessage(),
            "aclnnTransSparse4to2Para: weight has more than two numbers that are not 0 among the "
            "four from element 0 of row 0 on.");
  EXPECT_EQ(aclnnTransSparse4to2Para(nullptr, Shape({1, 4}).get(), &kept, &kept_dims, &kept_rank,
                                     &index, &index_dims, &index_rank),
            kNull);
  TakeMessage();
}

TEST(HostFunctions, OPI_09_TheGeneratorOfRandomNumbersIsZeroOrOne) {
  EXPECT_EQ(aclnnSetPytorchRandom(1), 0);
  EXPECT_EQ(aclnnSetPytorchRandom(0), 0);
  EXPECT_EQ(aclnnSetPytorchRandom(2), kReject);
  TakeMessage();
}

TEST(HostFunctions, OPI_09_HalvesOfTheHeaderAreThoseOfTheLibrary) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const op::fp16_t half = op::fp16_t::FromBits(static_cast<uint16_t>(bits));
    const float expected =
        static_cast<float>(c10::Half(static_cast<uint16_t>(bits), c10::Half::from_bits()));
    const float actual = half;
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual)) << bits;
      continue;
    }
    ASSERT_EQ(actual, expected) << bits;
    ASSERT_EQ(op::fp16_t(actual).val, bits);
  }
  const at::Tensor floats = Random({20000}, at::kFloat, -70000, 70000);
  const at::Tensor small = Random({20000}, at::kFloat, -1e-4, 1e-4);
  for (const at::Tensor& tensor : {floats, small}) {
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const float value = tensor.data_ptr<float>()[i];
      ASSERT_EQ(op::fp16_t(value).val, c10::Half(value).x) << value;
    }
  }
}

}  // namespace
}  // namespace acltape::opapi
