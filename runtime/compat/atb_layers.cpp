// Operations of libatb.so around attention: rotary embeddings, caches of keys and values, and a
// product that is added up.
#include "aclnnop/aclnn_addmm.h"
#include "aclnnop/aclnn_rotary_position_embedding.h"
#include "aclnnop/aclnn_scatter_pa_cache.h"
#include "aclnnop/aclnn_scatter_pa_kv_cache.h"
#include "runtime/compat/atb_operation.h"

namespace atb {
namespace {

// c = c + a b, in float32
class LinearAccumulated final : public SoftOperation {
 public:
  explicit LinearAccumulated(const infer::LinearParam& param)
      : SoftOperation("LinearOperation", 3, 1),
        order_{OrderOf(param.transposeA), OrderOf(param.transposeB)} {}

 private:
  const char* Lacks(const VariantPack& pack) const override {
    for (size_t i : {0, 1, 2}) {
      if (pack.inTensors[i].desc.shape.dimNum != 2) return "takes matrices";
    }
    return pack.outTensors[0].deviceData == pack.inTensors[2].deviceData
               ? nullptr
               : "writes its sum over the matrix that it adds to";
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const View a(pack.inTensors[0], order_[0]), b(pack.inTensors[1], order_[1]);
    const View c(pack.outTensors[0]);
    const Number one(1);
    return IssueCall(aclnnInplaceAddmmGetWorkspaceSize, aclnnInplaceAddmm, stream, c.get(), a.get(),
                     b.get(), one.get(), one.get(), /*cubeMathType=*/int8_t{0});
  }

  static View::Matrix OrderOf(bool transposed) {
    return transposed ? View::Matrix::kTransposed : View::Matrix::kAsItIs;
  }

  View::Matrix order_[2];
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

  const char* Lacks(const VariantPack& pack) const override {
    const Dims& angles = pack.inTensors[2].desc.shape;
    const int64_t width = angles.dims[1];
    if (angles.dimNum != 2 || width < 1 || pack.inTensors[3].desc.shape.dimNum != 2) {
      return "takes cosines and sines of [tokens, width]";
    }
    for (size_t i : {0, 1}) {
      const Dims& rotated = pack.inTensors[i].desc.shape;
      if (rotated.dimNum != 2 || rotated.dims[0] != angles.dims[0] || rotated.dims[1] % width != 0)
        return "takes queries and keys of [tokens, heads * width]";
    }
    return nullptr;
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
      const aclnnStatus status =
          IssueCall(aclnnRotaryPositionEmbeddingGetWorkspaceSize, aclnnRotaryPositionEmbedding,
                    stream, x.get(), cosine.get(), sine.get(), mode_, out.get());
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
  const char* Lacks(const VariantPack& pack) const override {
    for (size_t i : {0, 1}) {
      if (pack.inTensors[i].desc.shape.dimNum != 3 || pack.inTensors[i + 2].desc.shape.dimNum != 4)
        return "takes rows of 3 dims and caches of 4";
      if (pack.outTensors[i].deviceData != pack.inTensors[i + 2].deviceData)
        return "writes over its caches";
    }
    return pack.inTensors[4].desc.shape.dimNum == 1 ? nullptr : "takes slots of one dim";
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const View key(pack.inTensors[0]), value(pack.inTensors[1]), slots(pack.inTensors[4]);
    const View key_cache(pack.outTensors[0]), value_cache(pack.outTensors[1]);
    char cache_mode[] = "Norm", scatter_mode[] = "None";
    return IssueCall(aclnnScatterPaKvCacheGetWorkspaceSize, aclnnScatterPaKvCache, stream,
                     key.get(), key_cache.get(), slots.get(), value.get(), value_cache.get(),
                     nullptr, nullptr, nullptr, cache_mode, scatter_mode, nullptr, nullptr);
  }
};

// Keys alone.
class ReshapeAndCacheKeys final : public SoftOperation {
 public:
  ReshapeAndCacheKeys() : SoftOperation("ReshapeAndCacheOperation", 3, 1) {}

 private:
  const char* Lacks(const VariantPack& pack) const override {
    if (pack.inTensors[0].desc.shape.dimNum != 3 || pack.inTensors[1].desc.shape.dimNum != 4)
      return "takes rows of 3 dims and a cache of 4";
    if (pack.outTensors[0].deviceData != pack.inTensors[1].deviceData)
      return "writes over its cache";
    return pack.inTensors[2].desc.shape.dimNum == 1 ? nullptr : "takes slots of one dim";
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const View key(pack.inTensors[0]), cache(pack.outTensors[0]), slots(pack.inTensors[2]);
    char mode[] = "Norm";
    return IssueCall(aclnnScatterPaCacheGetWorkspaceSize, aclnnScatterPaCache, stream, key.get(),
                     cache.get(), slots.get(), nullptr, nullptr, nullptr, mode);
  }
};

}  // namespace

template <>
ACLTAPE_ATB Status CreateOperation(const infer::LinearParam& param, Operation** operation) {
  if (operation == nullptr) return kInvalidParam;
  const Status status =
      Offered("LinearOperation",
              {{param.enAccum, "enAccum", 0},
               {!param.hasBias, "hasBias", 1},
               {param.matmulType == 0, "matmulType", double(param.matmulType)},
               {param.outDataType == ACL_DT_UNDEFINED, "outDataType", double(param.outDataType)}});
  if (status == kNoError) *operation = new LinearAccumulated(param);
  return status;
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
  if (operation == nullptr) return kInvalidParam;
  const bool keys_alone = param.kvCacheCfg == infer::ReshapeAndCacheParam::K_CACHE_V_BYPASS;
  const Status status =
      Offered("ReshapeAndCacheOperation",
              {{param.compressType == 0, "compressType", double(param.compressType)},
               {keys_alone || param.kvCacheCfg == infer::ReshapeAndCacheParam::K_CACHE_V_CACHE,
                "kvCacheCfg", double(param.kvCacheCfg)}});
  if (status != kNoError) return status;
  if (keys_alone) {
    *operation = new ReshapeAndCacheKeys;
  } else {
    *operation = new ReshapeAndCache;
  }
  return kNoError;
}

}  // namespace atb
