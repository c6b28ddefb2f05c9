// libatb.so. Its operations are issued as calls of operators of libopapi.so, so that streams,
// captures and recordings see calls that they know. Operations that are not here are generated for
// the installed adapter, and name themselves when they are made (cli/environment/adapter_names.h).
#include "runtime/compat/atb.h"

#include <cstdio>
#include <initializer_list>
#include <memory>
#include <utility>

#include "aclnnop/aclnn_addmm.h"
#include "aclnnop/aclnn_rotary_position_embedding.h"
#include "aclnnop/aclnn_scatter_pa_kv_cache.h"

namespace atb {
namespace {

class SoftContext final : public Context {
 public:
  Status SetExecuteStream(aclrtStream stream) override {
    streams_.assign(1, stream);
    return kNoError;
  }
  aclrtStream GetExecuteStream() const override {
    return streams_.empty() ? nullptr : streams_.front();
  }
  Status SetAsyncTilingCopyStatus(bool enable) override {
    copies_tiling_ = enable;
    return kNoError;
  }
  bool GetAsyncTilingCopyStatus() const override { return copies_tiling_; }
  Status SetExecuteStreams(const std::vector<aclrtStream>& streams) override {
    streams_ = streams;
    return kNoError;
  }
  std::vector<aclrtStream> GetExecuteStreams() override { return streams_; }
  Status SetExecuteType(int type) override {
    type_ = type;
    return kNoError;
  }
  int GetExecuteType() override { return type_; }
  Status SetLaunchMode(int mode) override {
    mode_ = mode;
    return kNoError;
  }
  int GetLaunchMode() override { return mode_; }

 private:
  std::vector<aclrtStream> streams_;
  bool copies_tiling_ = false;
  int type_ = 0, mode_ = 0;
};

// A tensor of the operators' interface over the memory of one of this interface, which is dense.
class View {
 public:
  View(const Tensor& tensor, std::vector<int64_t> sizes, bool transposed = false) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
    if (transposed) {
      std::swap(sizes[0], sizes[1]);
      std::swap(strides[0], strides[1]);
    }
    handle_ = aclCreateTensor(sizes.data(), sizes.size(), tensor.desc.dtype, strides.data(), 0,
                              tensor.desc.format, sizes.data(), sizes.size(), tensor.deviceData);
  }
  explicit View(const Tensor& tensor, bool transposed = false)
      : View(tensor, SizesOf(tensor), transposed) {}
  ~View() { aclDestroyTensor(handle_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  aclTensor* get() const { return handle_; }

 private:
  static std::vector<int64_t> SizesOf(const Tensor& tensor) {
    return {tensor.desc.shape.dims, tensor.desc.shape.dims + tensor.desc.shape.dimNum};
  }
  aclTensor* handle_ = nullptr;
};

// Callers do not look at what Execute gives back, so a failure is said here too.
Status Said(const char* operation, aclnnStatus status) {
  if (status == 0) return kNoError;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "acltape: %s failed (%d): %s\n", operation, status,
               text != nullptr ? text : "");
  return status;
}

// The part that all operations share. The operators take no workspace.
class SoftOperation : public Operation {
 public:
  SoftOperation(const char* name, uint32_t inputs, uint32_t outputs)
      : name_(name), inputs_(inputs), outputs_(outputs) {}
  std::string GetName() const override { return name_; }
  // The caller brings the outputs.
  Status InferShape(const SVector<TensorDesc>&, SVector<TensorDesc>&) const override {
    return kInvalidParam;
  }
  uint32_t GetInputNum() const override { return inputs_; }
  uint32_t GetOutputNum() const override { return outputs_; }
  Status Setup(const VariantPack& pack, uint64_t& workspace_size, Context* context) override {
    workspace_size = 0;
    const bool fits = context != nullptr && pack.inTensors.size() == inputs_ &&
                      pack.outTensors.size() == outputs_ && Fits(pack);
    return fits ? kNoError : kInvalidParam;
  }
  Status Execute(const VariantPack& pack, uint8_t* workspace, uint64_t workspace_size,
                 Context* context) override {
    if (Setup(pack, workspace_size, context) != kNoError) return kInvalidParam;
    return Said(name_, Issue(pack, context->GetExecuteStream()));
  }

 protected:
  virtual bool Fits(const VariantPack& pack) const = 0;
  virtual aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const = 0;

 private:
  const char* name_;
  uint32_t inputs_, outputs_;
};

// c = c + a b, in float32
class LinearAccumulated final : public SoftOperation {
 public:
  explicit LinearAccumulated(const infer::LinearParam& param)
      : SoftOperation("LinearOperation", 3, 1), transposed_{param.transposeA, param.transposeB} {}

 private:
  bool Fits(const VariantPack& pack) const override {
    for (size_t i : {0, 1, 2}) {
      if (pack.inTensors[i].desc.shape.dimNum != 2) return false;
    }
    return pack.outTensors[0].deviceData == pack.inTensors[2].deviceData;
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const View a(pack.inTensors[0], transposed_[0]), b(pack.inTensors[1], transposed_[1]);
    const View c(pack.outTensors[0]);
    float one = 1;
    aclScalar* scalar = aclCreateScalar(&one, ACL_FLOAT);
    uint64_t workspace = 0;
    aclOpExecutor* executor = nullptr;
    aclnnStatus status = aclnnInplaceAddmmGetWorkspaceSize(
        c.get(), a.get(), b.get(), scalar, scalar, /*cubeMathType=*/0, &workspace, &executor);
    if (status == 0) status = aclnnInplaceAddmm(nullptr, workspace, executor, stream);
    aclDestroyScalar(scalar);
    return status;
  }

  bool transposed_[2];
};

class Rope final : public SoftOperation {
 public:
  explicit Rope(const infer::RopeParam& param)
      : SoftOperation("RopeOperation", 5, 2), mode_(ModeOf(param.rotaryCoeff)) {}

 private:
  // Modes of aclnnRotaryPositionEmbedding: halves, neighbours, quarters.
  static int64_t ModeOf(int32_t coefficient) {
    return coefficient == 2 ? 0 : coefficient == 4 ? 2 : 1;
  }

  bool Fits(const VariantPack& pack) const override {
    const Dims& angles = pack.inTensors[2].desc.shape;
    const int64_t width = angles.dims[1];
    if (angles.dimNum != 2 || width < 1 || pack.inTensors[3].desc.shape.dimNum != 2) return false;
    for (size_t i : {0, 1}) {
      const Dims& rotated = pack.inTensors[i].desc.shape;
      if (rotated.dimNum != 2 || rotated.dims[0] != angles.dims[0] || rotated.dims[1] % width != 0)
        return false;
    }
    return true;
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const int64_t tokens = pack.inTensors[2].desc.shape.dims[0];
    const int64_t width = pack.inTensors[2].desc.shape.dims[1];
    const View cosine(pack.inTensors[2], {tokens, 1, width});
    const View sine(pack.inTensors[3], {tokens, 1, width});
    for (size_t i : {0, 1}) {
      const int64_t heads = pack.inTensors[i].desc.shape.dims[1] / width;
      const View x(pack.inTensors[i], {tokens, heads, width});
      const View out(pack.outTensors[i], {tokens, heads, width});
      uint64_t workspace = 0;
      aclOpExecutor* executor = nullptr;
      aclnnStatus status = aclnnRotaryPositionEmbeddingGetWorkspaceSize(
          x.get(), cosine.get(), sine.get(), mode_, out.get(), &workspace, &executor);
      if (status == 0) status = aclnnRotaryPositionEmbedding(nullptr, workspace, executor, stream);
      if (status != 0) return status;
    }
    return 0;
  }

  int64_t mode_;
};

class ReshapeAndCache final : public SoftOperation {
 public:
  ReshapeAndCache() : SoftOperation("ReshapeAndCacheOperation", 5, 2) {}

 private:
  bool Fits(const VariantPack& pack) const override {
    for (size_t i : {0, 1}) {
      if (pack.inTensors[i].desc.shape.dimNum != 3 || pack.inTensors[i + 2].desc.shape.dimNum != 4)
        return false;
      if (pack.outTensors[i].deviceData != pack.inTensors[i + 2].deviceData) return false;
    }
    return pack.inTensors[4].desc.shape.dimNum == 1;
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const View key(pack.inTensors[0]), value(pack.inTensors[1]), slots(pack.inTensors[4]);
    const View key_cache(pack.outTensors[0]), value_cache(pack.outTensors[1]);
    char cache_mode[] = "Norm", scatter_mode[] = "None";
    uint64_t workspace = 0;
    aclOpExecutor* executor = nullptr;
    const aclnnStatus status = aclnnScatterPaKvCacheGetWorkspaceSize(
        key.get(), key_cache.get(), slots.get(), value.get(), value_cache.get(), nullptr, nullptr,
        nullptr, cache_mode, scatter_mode, nullptr, nullptr, &workspace, &executor);
    return status != 0 ? status : aclnnScatterPaKvCache(nullptr, workspace, executor, stream);
  }
};

// A form of an operation that is not here; `form` is a part of a sentence.
Status NotOffered(const char* form) {
  std::fprintf(stderr, "acltape: %s is not offered by the soft device.\n", form);
  return kInvalidParam;
}

}  // namespace

Status CreateContext(Context** context) {
  if (context == nullptr) return kInvalidParam;
  *context = new SoftContext;
  return kNoError;
}

Status DestroyContext(Context* context) {
  delete context;
  return kNoError;
}

template <>
ACLTAPE_ATB Status CreateOperation(const infer::LinearParam& param, Operation** operation) {
  if (operation == nullptr || !param.enAccum || param.hasBias || param.matmulType != 0 ||
      param.outDataType != ACL_DT_UNDEFINED) {
    return NotOffered("LinearOperation that does not add to a matrix");
  }
  *operation = new LinearAccumulated(param);
  return kNoError;
}

template <>
ACLTAPE_ATB Status CreateOperation(const infer::RopeParam& param, Operation** operation) {
  if (operation == nullptr) return kInvalidParam;
  *operation = new Rope(param);
  return kNoError;
}

template <>
ACLTAPE_ATB Status CreateOperation(const infer::ReshapeAndCacheParam& param,
                                   Operation** operation) {
  if (operation == nullptr || param.compressType != 0 || param.kvCacheCfg != 0) {
    return NotOffered(
        "ReshapeAndCacheOperation with compressed caches, keys alone or blocks in fractals");
  }
  *operation = new ReshapeAndCache;
  return kNoError;
}

Status DestroyOperation(Operation* operation) {
  delete operation;
  return kNoError;
}

uint64_t Utils::GetTensorSize(const Tensor& tensor) {
  uint64_t count = tensor.desc.shape.dimNum == 0 ? 0 : 1;
  for (uint64_t i = 0; i < tensor.desc.shape.dimNum; ++i) {
    count *= static_cast<uint64_t>(tensor.desc.shape.dims[i]);
  }
  return count * aclDataTypeSize(tensor.desc.dtype);
}

}  // namespace atb
