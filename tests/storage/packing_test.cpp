#include "storage/packing.h"

#include <gtest/gtest.h>

#include <vector>

namespace acltape::storage {
namespace {

TEST(Packing, StridedElementsPackInRowMajorOrderAndBack) {
  Layout layout;  // the transpose of the first two columns of a 2 x 3 matrix
  layout.dtype = DType::kFloat32;
  layout.shape = {2, 2};
  layout.strides = {1, 3};
  const float matrix[] = {0, 1, 2, 3, 4, 5};
  float packed[4];
  PackRowMajor(layout, reinterpret_cast<const uint8_t*>(matrix),
               reinterpret_cast<uint8_t*>(packed));
  EXPECT_EQ(std::vector<float>(packed, packed + 4), (std::vector<float>{0, 3, 1, 4}));
  float back[6] = {9, 9, 9, 9, 9, 9};
  UnpackRowMajor(layout, reinterpret_cast<const uint8_t*>(packed),
                 reinterpret_cast<uint8_t*>(back));
  EXPECT_EQ(std::vector<float>(back, back + 6), (std::vector<float>{0, 1, 9, 3, 4, 9}));
}

}  // namespace
}  // namespace acltape::storage
