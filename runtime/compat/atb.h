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
// -> (key cache, value cache)
struct ReshapeAndCacheParam {
  int compressType = 0;  // 0: none
  int kvCacheCfg = 0;    // 0: both caches, [blocks, rows, heads, width]
  uint8_t rsv[16] = {0};
};

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
