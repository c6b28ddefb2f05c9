// The part of the interface of libatb.so (the vendor's operations for transformers) that adapters
// call: tensors, contexts, and operations that are made of parameters. Layouts and the order of
// virtual functions are those of the vendor's public headers; names too, because they become
// symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl.h"

#define ACLTAPE_ATB __attribute__((visibility("default")))

namespace atb {

using Status = int32_t;
constexpr Status kNoError = 0;
constexpr Status kInvalidParam = 1;

// The caller fills it; up to 64 elements lie in it. Read here, never grown.
template <typename T>
class SVector {
 public:
  size_t size() const { return size_; }
  const T& operator[](size_t i) const { return heap_ != nullptr ? heap_[i] : storage_[i]; }

 private:
  size_t capacity_ = 0, size_ = 0;
  T storage_[64 + 1];
  T* heap_ = nullptr;
};

struct Dims {
  int64_t dims[8];
  uint64_t dimNum = 0;
};

struct TensorDesc {
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  Dims shape;
};

struct Tensor {
  TensorDesc desc;
  void* deviceData = nullptr;
  void* hostData = nullptr;
  uint64_t dataSize = 0;  // bytes
};

struct VariantPack {
  SVector<Tensor> inTensors, outTensors;
};

class Context {
 public:
  virtual ~Context() = default;
  virtual Status SetExecuteStream(aclrtStream stream) = 0;
  virtual aclrtStream GetExecuteStream() const = 0;
  virtual Status SetAsyncTilingCopyStatus(bool enable) = 0;
  virtual bool GetAsyncTilingCopyStatus() const = 0;
  virtual Status SetExecuteStreams(const std::vector<aclrtStream>& streams) = 0;
  virtual std::vector<aclrtStream> GetExecuteStreams() = 0;
  virtual Status SetExecuteType(int type) = 0;
  virtual int GetExecuteType() = 0;
  virtual Status SetLaunchMode(int mode) = 0;
  virtual int GetLaunchMode() = 0;
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual std::string GetName() const = 0;
  virtual Status InferShape(const SVector<TensorDesc>& in, SVector<TensorDesc>& out) const = 0;
  virtual uint32_t GetInputNum() const = 0;
  virtual uint32_t GetOutputNum() const = 0;
  virtual Status Setup(const VariantPack& pack, uint64_t& workspaceSize, Context* context) = 0;
  virtual Status Execute(const VariantPack& pack, uint8_t* workspace, uint64_t workspaceSize,
                         Context* context) = 0;
};

namespace infer {

// (a, b, [bias]) -> a b; with enAccum (a, b, c) -> c + a b, in place
struct LinearParam {
  bool transposeA = false, transposeB = true, hasBias = true;
  aclDataType outDataType = ACL_DT_UNDEFINED;  // else: quantised
  bool enAccum = false;
  uint8_t matmulType = 0, quantMode = 0;
  uint8_t rsv[21] = {0};
};

// (query [tokens, heads * width], key, cos [tokens, width], sin, lengths) -> (query, key)
struct RopeParam {
  int32_t rotaryCoeff = 4;  // 2: halves, 4: quarters, the width or half of it: neighbours
  int32_t cosFormat = 0;
  uint8_t rsv[8] = {0};
};

// (key [tokens, heads, width], value, key cache [blocks, rows, heads, width], value cache, slots)
// -> (key cache, value cache); with keys alone (key, key cache, slots) -> (key cache)
struct ReshapeAndCacheParam {
  enum KvCacheCfg : int { K_CACHE_V_CACHE, K_CACHE_V_BYPASS };

  int compressType = 0;  // 0: none
  int kvCacheCfg = K_CACHE_V_CACHE;
  uint8_t rsv[16] = {0};
};

// Work element by element; which one says what the inputs are.
struct ElewiseParam {
  enum ElewiseType : int {
    ELEWISE_UNDEFINED,
    ELEWISE_CAST,
    ELEWISE_MULS,
    ELEWISE_COS,
    ELEWISE_SIN,
    ELEWISE_NEG,
    ELEWISE_QUANT,
    ELEWISE_LOGICAL_NOT,
    ELEWISE_ADD,
    ELEWISE_MUL,
    ELEWISE_REALDIV,
    ELEWISE_LOGICAL_AND,
    ELEWISE_LOGICAL_OR,
    ELEWISE_LESS,
    ELEWISE_GREATER,
    ELEWISE_SUB,
    ELEWISE_EQUAL,
    ELEWISE_QUANT_PER_CHANNEL,  // (x, scale, offset) -> int8; an offset without elements is none
    ELEWISE_DEQUANT_PER_CHANNEL,
    ELEWISE_DYNAMIC_QUANT,
    ELEWISE_TANH,
  };
  struct QuantParam {
    float inputScale = 1;
    bool asymmetric = false;
    int inputOffset = 0;
    uint8_t rsv[20] = {0};
  };
  struct MulsParam {
    float varAttr = 0;  // the factor
    uint8_t rsv[12] = {0};
  };

  ElewiseType elewiseType = ELEWISE_UNDEFINED;
  QuantParam quantParam;
  MulsParam mulsParam;
  aclDataType outTensorType = ACL_DT_UNDEFINED;  // a cast makes it
  uint8_t rsv[8] = {0};
};

// (x, gamma) -> (x / rms(x) * gamma); quantised (x, gamma, beta, scale, offset) -> int8
struct RmsNormParam {
  enum RmsNormType : int { RMS_NORM_UNDEFINED, RMS_NORM_NORM, RMS_NORM_PRENORM, RMS_NORM_POSTNORM };
  enum QuantType : int { QUANT_UNDEFINED = 0, QUANT_INT8 = 2 };
  struct NormParam {
    int quantType = QUANT_UNDEFINED;
    float epsilon = 1e-5F;
    double layerNormEps = 1e-5;
    bool rstd = false;  // also gives the inverse roots
    int precisionMode = 0, modelType = 0, dynamicQuantType = 0;
    uint8_t rsv[32] = {0};
  };
  struct AddedNormParam {
    int quantType = QUANT_UNDEFINED;
    float epsilon = 1e-5F;
    bool hasBias = false;
    uint8_t rsv[23] = {0};
  };

  RmsNormType layerType = RMS_NORM_UNDEFINED;
  NormParam normParam;
  AddedNormParam preNormParam, postNormParam;
  uint8_t rsv[8] = {0};
};

// (scores [tokens, experts], 0 to 1023) -> the scores, 0 in all groups of experts but the best
struct GroupTopkParam {
  int32_t groupNum = 1, k = 0;  // groups, and how many of them stay
  uint16_t groupMultiFlag = 0;  // 0: a group counts by its best expert, 1: by the sum of its n best
  uint16_t n = 1;
  uint8_t rsv[12] = {0};
};

// (query [tokens, heads * width], key, value, [mask,] lengths) -> attention of sequences that
// follow each other; with caches (query, key cache [blocks, rows, heads, width], value cache, block
// table, [mask,] lengths, lengths of keys). Lengths are int32 in host memory.
struct SelfAttentionParam {
  enum CalcType : int { UNDEFINED, ENCODER, DECODER, PA_ENCODER, PREFIX_ENCODER };
  enum KernelType : int { KERNELTYPE_DEFAULT, KERNELTYPE_HIGH_PRECISION, KERNELTYPE_EXP_M8V2 };
  enum MaskType : int {
    MASK_TYPE_UNDEFINED,
    MASK_TYPE_NORM,   // [rows, keys] or [sequences, rows, keys]
    MASK_TYPE_ALIBI,  // [heads, rows, keys] or [sequences, heads, rows, keys]
    MASK_TYPE_NORM_COMPRESS,
    MASK_TYPE_ALIBI_COMPRESS,
    MASK_TYPE_ALIBI_COMPRESS_SQRT,
    MASK_TYPE_ALIBI_COMPRESS_LEFT_ALIGN,
    MASK_TYPE_SLIDING_WINDOW_NORM,
    MASK_TYPE_SLIDING_WINDOW_COMPRESS,
    MASK_TYPE_CAUSAL_MASK,  // without a tensor
  };

  int quantType = 0;
  aclDataType outDataType = ACL_DT_UNDEFINED;
  int32_t headNum = 0, kvHeadNum = 0;  // 0: as many as headNum
  float qScale = 1, qkScale = 1;
  bool batchRunStatusEnable = false;
  uint32_t isTriuMask = 0;
  CalcType calcType = UNDEFINED;
  KernelType kernelType = KERNELTYPE_DEFAULT;
  int clampType = 0;
  float clampMin = 0, clampMax = 0;
  MaskType maskType = MASK_TYPE_UNDEFINED;
  int kvcacheCfg = 0, scaleType = 0, inputLayout = 0;
  uint32_t mlaVHeadSize = 0;
  int8_t cacheType = 0;
  uint32_t windowSize = 0;
  uint8_t rsv[64] = {0};
};

// (query [tokens, heads, width], key cache [blocks, rows, heads, width], value cache, block table,
// lengths of keys, [mask,] [lengths of queries]) -> attention; without lengths of queries a
// sequence has one. With mlaVHeadSize there is no value cache: values are the first columns of
// keys.
struct PagedAttentionParam {
  enum MaskType : int {
    UNDEFINED,
    MASK_TYPE_NORM,
    MASK_TYPE_ALIBI,  // [heads, 1, keys] or [sequences, heads, 1, keys]
    MASK_TYPE_SPEC,   // [tokens, keys]
    MASK_TYPE_MASK_FREE,
    MASK_TYPE_NORM_COMPRESS,
  };
  enum CalcType : int { CALC_TYPE_UNDEFINED, CALC_TYPE_SPEC };

  int32_t headNum = 0;
  float qkScale = 1;
  int32_t kvHeadNum = 0;  // 0: as many as headNum
  MaskType maskType = UNDEFINED;
  bool batchRunStatusEnable = false;
  int quantType = 0;
  aclDataType outDataType = ACL_DT_UNDEFINED;
  bool hasQuantOffset = false;
  int compressType = 0;
  CalcType calcType = CALC_TYPE_UNDEFINED;
  int scaleType = 0, inputLayout = 0;
  uint32_t mlaVHeadSize = 0;
  float qScale = 0;  // 0 and 1: none
  uint8_t rsv[64] = {0};
};

static_assert(sizeof(ElewiseParam) == 64 && sizeof(RmsNormParam) == 144);
static_assert(sizeof(GroupTopkParam) == 24);
static_assert(sizeof(SelfAttentionParam) == 144 && sizeof(PagedAttentionParam) == 120);

}  // namespace infer

ACLTAPE_ATB Status CreateContext(Context** context);
ACLTAPE_ATB Status DestroyContext(Context* context);
template <typename Param>
ACLTAPE_ATB Status CreateOperation(const Param& param, Operation** operation);
ACLTAPE_ATB Status DestroyOperation(Operation* operation);

class ACLTAPE_ATB Utils {
 public:
  static uint64_t GetTensorSize(const Tensor& tensor);
};

}  // namespace atb
