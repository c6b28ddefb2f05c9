// Functions of operator headers that compute on the host at once (acl/data/host_functions.json).
// Arrays that they give belong to the caller.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "acl/invoke/blocked_layout.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "aclnnop/aclnn_set_pytorch_random.h"
#include "aclnnop/aclnn_sparse4to2quant_matmul_weight_nz.h"
#include "aclnnop/aclnn_trans_convolution_weight.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "aclnnop/aclnn_trans_quant_param.h"
#include "runtime/opapi/base/dtype.h"
#include "runtime/opapi/base/live.h"

namespace {

using namespace acltape::opapi;
using acltape::acl::BlockedLayout;
using acltape::acl::BlocksFor;
using acltape::acl::kBlockBytes;
using acltape::acl::kBlockRows;

aclnnStatus RejectArgument(const char* function, const std::string& what) {
  return Reject(kParamInvalid, std::string(function) + ": " + what + ".");
}

aclnnStatus MissingArgument(const char* function, const char* argument) {
  return Reject(kParamNull, std::string(function) + ": " + argument + " is NULL.");
}

int64_t RoundUp(int64_t size, int64_t block) { return BlocksFor(size, block) * block; }

template <typename T>
T* Given(const std::vector<T>& values) {
  T* array = new T[std::max<size_t>(values.size(), 1)];
  std::copy(values.begin(), values.end(), array);
  return array;
}

// Copies into memory of malloc, because programs free what aclnnTransSparse4to2Para gives.
template <typename T>
T* GivenToFree(const std::vector<T>& values) {
  T* array = static_cast<T*>(std::malloc(std::max<size_t>(values.size(), 1) * sizeof(T)));
  if (array != nullptr) std::copy(values.begin(), values.end(), array);
  return array;
}

// Elements of a weight in FRACTAL_NZ.
aclnnStatus WeightSize(const char* function, const aclIntArray* shape, aclDataType dtype,
                       uint64_t* elements) {
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckArgument(function, "tensorShape", shape));
  if (elements == nullptr) return MissingArgument(function, "weightTensorSize");
  const std::vector<int64_t>& sizes = shape->values;
  if (sizes.size() < 2 || sizes.size() > 6) {
    return RejectArgument(function, "tensorShape must have 2 to 6 dims");
  }
  if (dtype != ACL_FLOAT16 && dtype != ACL_BF16 && dtype != ACL_INT8) {
    return RejectArgument(function, "dataType must be float16, bfloat16 or int8");
  }
  const int64_t block_columns = kBlockBytes / static_cast<int64_t>(ItemSize(dtype));
  uint64_t product = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] <= 0)
      return RejectArgument(function, "tensorShape holds a size that is not positive");
    const size_t from_end = sizes.size() - i;
    const int64_t size = from_end == 1   ? RoundUp(sizes[i], block_columns)
                         : from_end == 2 ? RoundUp(sizes[i], kBlockRows)
                                         : sizes[i];
    if (size <= 0 || __builtin_mul_overflow(product, static_cast<uint64_t>(size), &product)) {
      return RejectArgument(function, "tensorShape is of more elements than can be counted");
    }
  }
  *elements = product;
  return OK;
}

// The two elements that are kept of four. A single number that is not 0 is the first of the two,
// unless it is the last of the four: that can only be the second.
struct SparsePair {
  int8_t values[2] = {};
  uint8_t places[2] = {0, 1};
};

// False when more than two of the four are not 0.
bool KeepTwo(const int8_t four[4], SparsePair* pair) {
  int kept[2], count = 0;
  for (int i = 0; i < 4; ++i) {
    if (four[i] == 0) continue;
    if (count == 2) return false;
    kept[count++] = i;
  }
  if (count == 0) return true;
  if (count == 1) {
    const int place = kept[0];
    pair->values[place == 3 ? 1 : 0] = four[place];
    pair->places[0] = static_cast<uint8_t>(place == 3 ? 0 : place);
    if (place == 3) pair->places[1] = 3;
    return true;
  }
  for (int i = 0; i < 2; ++i) {
    pair->values[i] = four[kept[i]];
    pair->places[i] = static_cast<uint8_t>(kept[i]);
  }
  return true;
}

int32_t g_pytorch_random = 0;

}  // namespace

extern "C" {

aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape,
                                           uint64_t* weightTensorSize) {
  return WeightSize("aclnnCalculateMatmulWeightSize", tensorShape, ACL_FLOAT16, weightTensorSize);
}

aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape, aclDataType dataType,
                                             uint64_t* weightTensorSize) {
  return WeightSize("aclnnCalculateMatmulWeightSizeV2", tensorShape, dataType, weightTensorSize);
}

// Elements of a weight of a convolution in FRACTAL_Z: [channel blocks * height * width, blocks of
// outputs, 16, 16].
aclnnStatus aclnnCalculateConvolutionWeightSize(const aclIntArray* tensorShape, bool transposed,
                                                int64_t groups, aclDataType dataType,
                                                uint64_t* weightTensorSize) {
  constexpr char kCall[] = "aclnnCalculateConvolutionWeightSize";
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckArgument(kCall, "tensorShape", tensorShape));
  if (weightTensorSize == nullptr) return MissingArgument(kCall, "weightTensorSize");
  const std::vector<int64_t>& sizes = tensorShape->values;
  if (sizes.size() != 4) return RejectArgument(kCall, "tensorShape must have 4 dims");
  for (const int64_t size : sizes) {
    if (size < 0) return RejectArgument(kCall, "tensorShape holds a negative size");
  }
  if (transposed) return RejectArgument(kCall, "transposed must be false");
  if (groups < 1 || groups > 65535) return RejectArgument(kCall, "groups must be 1 to 65535");
  if (dataType != ACL_FLOAT16) return RejectArgument(kCall, "dataType must be float16");
  uint64_t product = 1;
  for (const int64_t size : {BlocksFor(sizes[1], kBlockRows), sizes[2], sizes[3],
                             BlocksFor(sizes[0], kBlockRows), kBlockRows, kBlockRows}) {
    if (__builtin_mul_overflow(product, static_cast<uint64_t>(size), &product)) {
      return RejectArgument(kCall, "tensorShape is of more elements than can be counted");
    }
  }
  *weightTensorSize = product * (sizes[1] == 0 ? 0u : static_cast<uint64_t>(groups));
  return OK;
}

aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor* srcTensor, int dstFormat,
                                                     int additionalDtype, int64_t** dstShape,
                                                     uint64_t* dstShapeSize, int* actualFormat) {
  constexpr char kCall[] = "aclnnNpuFormatCastCalculateSizeAndFormat";
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckArgument(kCall, "srcTensor", srcTensor));
  if (dstShape == nullptr || dstShapeSize == nullptr || actualFormat == nullptr) {
    return Reject(kParamNull, std::string(kCall) + ": an output is NULL.");
  }
  const std::vector<int64_t>& sizes = srcTensor->sizes;
  if (sizes.size() < 2 || sizes.size() > 6) {
    return RejectArgument(kCall, "srcTensor must have 2 to 6 dims");
  }
  if (std::count(sizes.begin(), sizes.end(), 0) > 0) {
    return RejectArgument(kCall, "srcTensor is empty");
  }
  std::vector<int64_t> shape = sizes;
  if (dstFormat == ACL_FORMAT_FRACTAL_NZ) {
    const auto dtype =
        additionalDtype == -1 ? srcTensor->dtype : static_cast<aclDataType>(additionalDtype);
    const auto bytes = static_cast<int64_t>(ItemSize(dtype));
    if (bytes == 0 || bytes > 4) {
      return RejectArgument(kCall, "additionalDtype must be a type of 1, 2 or 4 bytes, or -1");
    }
    const int64_t columns = kBlockBytes / bytes;
    const size_t rank = sizes.size();
    shape[rank - 2] = BlocksFor(sizes[rank - 1], columns);
    shape[rank - 1] = BlocksFor(sizes[rank - 2], kBlockRows);
    shape.insert(shape.end(), {kBlockRows, columns});
  } else if (dstFormat != ACL_FORMAT_ND && dstFormat != ACL_FORMAT_NCHW &&
             dstFormat != ACL_FORMAT_NCL && dstFormat != ACL_FORMAT_NCDHW) {
    return Reject(kRuntimeError, std::string(kCall) +
                                     ": the soft device casts between plain "
                                     "formats and FRACTAL_NZ alone; dstFormat is " +
                                     std::to_string(dstFormat) + ".");
  }
  *dstShape = Given(shape);
  *dstShapeSize = shape.size();
  *actualFormat = dstFormat;
  return OK;
}

// Chooses the generator of the random operators: 1 asks for another one. Here both draw the same
// numbers.
aclnnStatus aclnnSetPytorchRandom(int32_t pytorchRandom) {
  if (pytorchRandom != 0 && pytorchRandom != 1) {
    return RejectArgument("aclnnSetPytorchRandom", "pytorchRandom must be 0 or 1");
  }
  __atomic_store_n(&g_pytorch_random, pytorchRandom, __ATOMIC_RELAXED);
  return OK;
}

// The parameters that a device multiplies by: the upper 19 bits of each float, with bit 46 set, and
// the offset in nine bits from bit 37 on.
aclnnStatus aclnnTransQuantParam(const float* scaleArray, uint64_t scaleSize,
                                 const float* offsetArray, uint64_t offsetSize,
                                 uint64_t** quantParam, uint64_t* quantParamSize) {
  constexpr char kCall[] = "aclnnTransQuantParam";
  if (scaleArray == nullptr) return MissingArgument(kCall, "scaleArray");
  if (quantParam == nullptr) return MissingArgument(kCall, "quantParam");
  if (quantParamSize == nullptr) return MissingArgument(kCall, "quantParamSize");
  if (scaleSize == 0) return RejectArgument(kCall, "scaleSize is 0");
  const bool offsets = offsetArray != nullptr && offsetSize != 0;
  if (offsets && scaleSize != offsetSize && scaleSize != 1 && offsetSize != 1) {
    return RejectArgument(kCall, "scaleSize and offsetSize differ and neither is 1");
  }
  std::vector<uint64_t> parameters(offsets ? std::max(scaleSize, offsetSize) : scaleSize);
  for (size_t i = 0; i < parameters.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &scaleArray[scaleSize == 1 ? 0 : i], sizeof(bits));
    parameters[i] = (bits & 0xFFFFE000u) | uint64_t{1} << 46;
    if (!offsets) continue;
    const float rounded = std::nearbyint(offsetArray[offsetSize == 1 ? 0 : i]);
    const auto offset = static_cast<int64_t>(std::fmin(std::fmax(rounded, -256.0f), 255.0f));
    parameters[i] |= (static_cast<uint64_t>(offset) & 0x1FF) << 37;
  }
  *quantParam = Given(parameters);
  *quantParamSize = parameters.size();
  return OK;
}

// Keeps two of each four elements of a row, and says where they were. Both results lie in blocks:
// weights in blocks of 16 x 32, indices in blocks of 16 x 8 bytes. Each byte of indices holds the
// places of eight elements of the row, the first pair in its lowest bits.
aclnnStatus aclnnTransSparse4to2Para(const int8_t* weight, aclIntArray* shape,
                                     int8_t** sparseWeight, int64_t** sparseWeightDims,
                                     uint64_t* sparseWeightDimsNum, uint8_t** index,
                                     int64_t** indexDims, uint64_t* indexDimsNum) {
  constexpr char kCall[] = "aclnnTransSparse4to2Para";
  if (weight == nullptr) return MissingArgument(kCall, "weight");
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckArgument(kCall, "shape", shape));
  if (sparseWeight == nullptr || sparseWeightDims == nullptr || sparseWeightDimsNum == nullptr ||
      index == nullptr || indexDims == nullptr || indexDimsNum == nullptr) {
    return Reject(kParamNull, std::string(kCall) + ": an output is NULL.");
  }
  if (shape->values.size() != 2 || shape->values[0] <= 0 || shape->values[1] <= 0) {
    return RejectArgument(kCall, "shape must be [n, k], both positive");
  }
  const int64_t rows = shape->values[0], columns = shape->values[1];
  const int64_t kept = RoundUp(columns, 8) / 2;
  const int64_t column_blocks = BlocksFor(kept, 32), row_blocks = BlocksFor(rows, kBlockRows);
  const int64_t padded_rows = row_blocks * kBlockRows;
  std::vector<int8_t> values(static_cast<size_t>(column_blocks * padded_rows * 32));
  std::vector<uint8_t> places(static_cast<size_t>(column_blocks * padded_rows * 8));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t first = 0; first < kept; first += 2) {
      int8_t four[4] = {};
      for (int64_t i = 0; i < 4 && 2 * first + i < columns; ++i) {
        four[i] = weight[row * columns + 2 * first + i];
      }
      SparsePair pair;
      if (!KeepTwo(four, &pair)) {
        return RejectArgument(kCall,
                              "weight has more than two numbers that are not 0 among the four "
                              "from element " +
                                  std::to_string(2 * first) + " of row " + std::to_string(row) +
                                  " on");
      }
      const int64_t block = (first / 32 * padded_rows + row);
      for (int64_t i = 0; i < 2; ++i) {
        values[static_cast<size_t>(block * 32 + first % 32 + i)] = pair.values[i];
        // The place of the second of a pair counts from the element after the first of the four.
        const int place = pair.places[i] - (i == 1 ? 1 : 0);
        places[static_cast<size_t>(block * 8 + first % 32 / 4)] |=
            static_cast<uint8_t>(place << (first % 4 * 2 + i * 2));
      }
    }
  }
  *sparseWeight = GivenToFree(values);
  *sparseWeightDims = GivenToFree(std::vector<int64_t>{column_blocks, row_blocks, kBlockRows, 32});
  *index = GivenToFree(places);
  *indexDims = GivenToFree(std::vector<int64_t>{column_blocks, row_blocks, kBlockRows, 8});
  *sparseWeightDimsNum = *indexDimsNum = 4;
  return OK;
}

}  // extern "C"
