// Attention of libatb.so. Both operations are one operator (runtime/opapi/kernels/
// transformer_boost.cpp) under two names; they differ in how its arguments are given.
#include "aclnnop/aclnn_atb_paged_attention.h"
#include "aclnnop/aclnn_atb_self_attention.h"
#include "runtime/compat/atb_operation.h"

namespace atb {
namespace {

using infer::PagedAttentionParam;
using infer::SelfAttentionParam;

constexpr const char* kLengths = "takes lengths as int32 of one dim in host memory";

struct Heads {
  int64_t query, key;
};

Heads HeadsOf(int32_t query, int32_t key) { return {query, key == 0 ? query : key}; }

// Rows of [tokens, heads * width] or [tokens, heads, width], and blocks of those.
const char* LacksRows(const Tensor& tensor, size_t leading, int64_t heads) {
  const uint64_t rank = tensor.desc.shape.dimNum;
  if (rank != leading + 1 && rank != leading + 2) {
    return leading == 1 ? "takes rows of [tokens, heads, width]"
                        : "takes caches of [blocks, rows, heads, width]";
  }
  if (tensor.desc.format == ACL_FORMAT_FRACTAL_NZ) return "takes no caches in fractals (NZ)";
  return CountFrom(tensor, leading) % heads == 0 ? nullptr
                                                 : "has rows that its heads do not divide";
}

// Those with heads and width apart.
Sizes HeadsApart(const Tensor& tensor, size_t leading, int64_t heads) {
  Sizes sizes = SizesOf(tensor);
  const int64_t width = CountFrom(tensor, leading) / heads;
  sizes.resize(leading);
  sizes.insert(sizes.end(), {heads, width});
  return sizes;
}

// A mask as [sequences, heads, rows, keys]; `per_head`: without the dim of heads it lacks that of
// sequences, and has one of heads.
Sizes MaskSizes(const Tensor& mask, bool per_head) {
  Sizes sizes = SizesOf(mask);
  if (sizes.size() == 2) sizes.insert(sizes.begin(), 2, 1);
  if (sizes.size() == 3) sizes.insert(sizes.begin() + (per_head ? 0 : 1), 1);
  return sizes;
}

// Where the tensors of an attention lie among the inputs; -1: it has none.
struct Places {
  int value = 2, table = -1, mask = -1, lengths = -1, key_lengths = -1, count = 0;
};

// --- SelfAttentionOperation

class SelfAttention final : public SoftOperation {
 public:
  explicit SelfAttention(const SelfAttentionParam& param)
      : SoftOperation("SelfAttentionOperation", static_cast<uint32_t>(PlacesOf(param).count), 1),
        param_(param),
        at_(PlacesOf(param)),
        heads_(HeadsOf(param.headNum, param.kvHeadNum)) {}

 private:
  static Places PlacesOf(const SelfAttentionParam& param) {
    const bool masked = param.maskType != SelfAttentionParam::MASK_TYPE_UNDEFINED &&
                        param.maskType != SelfAttentionParam::MASK_TYPE_CAUSAL_MASK;
    const bool paged = param.calcType == SelfAttentionParam::PREFIX_ENCODER;
    Places at;
    at.count = 3;
    if (paged) at.table = at.count++;
    if (masked) at.mask = at.count++;
    at.lengths = at.key_lengths = at.count++;
    if (paged) at.key_lengths = at.count++;
    return at;
  }

  size_t leading() const { return at_.table < 0 ? 1 : 2; }

  const char* Lacks(const VariantPack& pack) const override {
    const char* lacks = LacksRows(pack.inTensors[0], 1, heads_.query);
    for (size_t i : {1, 2}) {
      if (lacks == nullptr) lacks = LacksRows(pack.inTensors[i], leading(), heads_.key);
    }
    if (lacks == nullptr) lacks = LacksRows(pack.outTensors[0], 1, heads_.query);
    if (lacks != nullptr) return lacks;
    for (int i : {at_.lengths, at_.key_lengths}) {
      if (!LieInHostMemory(pack.inTensors[static_cast<size_t>(i)])) return kLengths;
    }
    return nullptr;
  }

  // Kernels that add up in float32 take 1 in a mask for what is left out; others take -inf.
  double MaskFactor(const Tensor& query) const {
    constexpr double kLeftOut = -3e38;
    const bool ones = query.desc.dtype == ACL_BF16 ||
                      param_.kernelType == SelfAttentionParam::KERNELTYPE_HIGH_PRECISION;
    return param_.maskType == SelfAttentionParam::MASK_TYPE_NORM && ones ? kLeftOut : 1;
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const auto in = [&](int i) -> const Tensor& {
      return pack.inTensors[static_cast<size_t>(i < 0 ? 0 : i)];
    };
    // A compressed mask says no more than its type.
    const bool causal = param_.maskType == SelfAttentionParam::MASK_TYPE_NORM_COMPRESS ||
                        param_.maskType == SelfAttentionParam::MASK_TYPE_CAUSAL_MASK;
    const bool masked = at_.mask >= 0 && !causal;
    const bool per_head = param_.maskType == SelfAttentionParam::MASK_TYPE_ALIBI;
    const View query(in(0), HeadsApart(in(0), 1, heads_.query));
    const View key(in(1), HeadsApart(in(1), leading(), heads_.key));
    const View value(in(2), HeadsApart(in(2), leading(), heads_.key));
    const View table(in(at_.table));
    const View mask(in(at_.mask), MaskSizes(in(at_.mask), per_head));
    const View out(pack.outTensors[0], HeadsApart(pack.outTensors[0], 1, heads_.query));
    const HostNumbers lengths(in(at_.lengths)), key_lengths(in(at_.key_lengths));
    return IssueCall(aclnnAtbSelfAttentionGetWorkspaceSize, aclnnAtbSelfAttention, stream,
                     query.get(), key.get(), value.get(), at_.table < 0 ? nullptr : table.get(),
                     masked ? mask.get() : nullptr, lengths.get(), key_lengths.get(),
                     double(param_.qScale) * param_.qkScale, MaskFactor(in(0)), causal, out.get());
  }

  SelfAttentionParam param_;
  Places at_;
  Heads heads_;
};

bool OffersMask(const SelfAttentionParam& param) {
  switch (param.maskType) {
    case SelfAttentionParam::MASK_TYPE_UNDEFINED:
    case SelfAttentionParam::MASK_TYPE_NORM:
    case SelfAttentionParam::MASK_TYPE_ALIBI:
      return param.calcType == SelfAttentionParam::PA_ENCODER;
    case SelfAttentionParam::MASK_TYPE_NORM_COMPRESS:
      return true;
    case SelfAttentionParam::MASK_TYPE_CAUSAL_MASK:
      return param.calcType == SelfAttentionParam::PREFIX_ENCODER;
    default:
      return false;
  }
}

bool OffersTriangle(const SelfAttentionParam& param) {
  const bool needed = param.calcType == SelfAttentionParam::PREFIX_ENCODER ||
                      param.maskType == SelfAttentionParam::MASK_TYPE_NORM_COMPRESS;
  const bool excluded = param.maskType == SelfAttentionParam::MASK_TYPE_UNDEFINED;
  return param.isTriuMask == 1 ? !excluded : param.isTriuMask == 0 && !needed;
}

// Prefixes are added up in float32 alone.
bool OffersKernel(const SelfAttentionParam& param) {
  return param.kernelType == SelfAttentionParam::KERNELTYPE_HIGH_PRECISION ||
         (param.kernelType == SelfAttentionParam::KERNELTYPE_DEFAULT &&
          param.calcType != SelfAttentionParam::PREFIX_ENCODER);
}

// --- PagedAttentionOperation

class PagedAttention final : public SoftOperation {
 public:
  explicit PagedAttention(const PagedAttentionParam& param)
      : SoftOperation("PagedAttentionOperation", static_cast<uint32_t>(PlacesOf(param).count), 1),
        param_(param),
        at_(PlacesOf(param)),
        heads_(HeadsOf(param.headNum, param.kvHeadNum)) {}

 private:
  static Places PlacesOf(const PagedAttentionParam& param) {
    Places at;
    at.count = 2;
    at.value = param.mlaVHeadSize > 0 ? -1 : at.count++;
    at.table = at.count++;
    at.key_lengths = at.count++;
    if (param.maskType != PagedAttentionParam::UNDEFINED) at.mask = at.count++;
    if (param.calcType == PagedAttentionParam::CALC_TYPE_SPEC) at.lengths = at.count++;
    return at;
  }

  const char* Lacks(const VariantPack& pack) const override {
    const char* lacks = LacksRows(pack.inTensors[0], 1, heads_.query);
    for (int i : {1, at_.value}) {
      if (lacks == nullptr && i >= 0) {
        lacks = LacksRows(pack.inTensors[static_cast<size_t>(i)], 2, heads_.key);
      }
    }
    if (lacks == nullptr) lacks = LacksRows(pack.outTensors[0], 1, heads_.query);
    if (lacks != nullptr) return lacks;
    for (int i : {at_.key_lengths, at_.lengths}) {
      if (i >= 0 && !LieInHostMemory(pack.inTensors[static_cast<size_t>(i)])) return kLengths;
    }
    return nullptr;
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const auto in = [&](int i) -> const Tensor& {
      return pack.inTensors[static_cast<size_t>(i < 0 ? 0 : i)];
    };
    const bool causal = param_.maskType == PagedAttentionParam::MASK_TYPE_NORM_COMPRESS;
    const bool masked = at_.mask >= 0 && !causal;
    const bool per_token = param_.maskType == PagedAttentionParam::MASK_TYPE_SPEC;
    const Sizes key_sizes = HeadsApart(in(1), 2, heads_.key);
    const View query(in(0), HeadsApart(in(0), 1, heads_.query)), key(in(1), key_sizes);
    Sizes value_sizes = key_sizes;  // the first columns of keys, or a cache
    value_sizes.back() = param_.mlaVHeadSize;
    if (at_.value >= 0) value_sizes = HeadsApart(in(at_.value), 2, heads_.key);
    const View value(in(at_.value < 0 ? 1 : at_.value), value_sizes,
                     at_.value < 0 ? key_sizes : value_sizes);
    const View table(in(at_.table));
    const View mask(in(at_.mask),
                    per_token ? SizesOf(in(at_.mask)) : MaskSizes(in(at_.mask), true));
    const View out(pack.outTensors[0], HeadsApart(pack.outTensors[0], 1, heads_.query));
    const HostNumbers key_lengths(in(at_.key_lengths));
    const HostNumbers lengths(
        at_.lengths >= 0 ? NumbersIn(in(at_.lengths))
                         : Sizes(static_cast<size_t>(CountFrom(in(at_.key_lengths), 0)), 1));
    const double query_scale = param_.qScale == 0 ? 1 : param_.qScale;
    return IssueCall(aclnnAtbPagedAttentionGetWorkspaceSize, aclnnAtbPagedAttention, stream,
                     query.get(), key.get(), value.get(), table.get(),
                     masked ? mask.get() : nullptr, lengths.get(), key_lengths.get(),
                     query_scale * param_.qkScale, /*maskFactor=*/1.0, causal, out.get());
  }

  PagedAttentionParam param_;
  Places at_;
  Heads heads_;
};

// Masks go with one query a sequence, or with several.
bool OffersMask(const PagedAttentionParam& param) {
  const bool several = param.calcType == PagedAttentionParam::CALC_TYPE_SPEC;
  switch (param.maskType) {
    case PagedAttentionParam::UNDEFINED:
      return !several;
    case PagedAttentionParam::MASK_TYPE_ALIBI:
      return !several && param.mlaVHeadSize == 0;
    case PagedAttentionParam::MASK_TYPE_SPEC:
    case PagedAttentionParam::MASK_TYPE_NORM_COMPRESS:
      return several;
    default:
      return false;
  }
}

bool Divide(int32_t heads, int32_t key_heads) {
  return heads > 0 && key_heads >= 0 && (key_heads == 0 || heads % key_heads == 0);
}

}  // namespace

template <>
ACLTAPE_ATB Status CreateOperation(const SelfAttentionParam& param, Operation** operation) {
  if (operation == nullptr) return kInvalidParam;
  const bool encodes = param.calcType == SelfAttentionParam::PA_ENCODER ||
                       param.calcType == SelfAttentionParam::PREFIX_ENCODER;
  const Status status =
      Offered("SelfAttentionOperation",
              {{encodes, "calcType", double(param.calcType)},
               {param.headNum > 0, "headNum", double(param.headNum)},
               {Divide(param.headNum, param.kvHeadNum), "kvHeadNum", double(param.kvHeadNum)},
               {OffersMask(param), "maskType", double(param.maskType)},
               {OffersTriangle(param), "isTriuMask", double(param.isTriuMask)},
               {OffersKernel(param), "kernelType", double(param.kernelType)},
               {param.quantType == 0, "quantType", double(param.quantType)},
               {param.outDataType == ACL_DT_UNDEFINED, "outDataType", double(param.outDataType)},
               {!param.batchRunStatusEnable, "batchRunStatusEnable", 1},
               {param.clampType == 0, "clampType", double(param.clampType)},
               {param.kvcacheCfg == 0, "kvcacheCfg", double(param.kvcacheCfg)},
               {param.scaleType == 0, "scaleType", double(param.scaleType)},
               {param.inputLayout == 0, "inputLayout", double(param.inputLayout)},
               {param.mlaVHeadSize == 0, "mlaVHeadSize", double(param.mlaVHeadSize)},
               {param.cacheType == 0, "cacheType", double(param.cacheType)},
               {param.windowSize == 0, "windowSize", double(param.windowSize)}});
  if (status == kNoError) *operation = new SelfAttention(param);
  return status;
}

template <>
ACLTAPE_ATB Status CreateOperation(const PagedAttentionParam& param, Operation** operation) {
  if (operation == nullptr) return kInvalidParam;
  const Status status =
      Offered("PagedAttentionOperation",
              {{param.headNum > 0, "headNum", double(param.headNum)},
               {Divide(param.headNum, param.kvHeadNum), "kvHeadNum", double(param.kvHeadNum)},
               {param.calcType == PagedAttentionParam::CALC_TYPE_UNDEFINED ||
                    param.calcType == PagedAttentionParam::CALC_TYPE_SPEC,
                "calcType", double(param.calcType)},
               {OffersMask(param), "maskType", double(param.maskType)},
               {!param.batchRunStatusEnable, "batchRunStatusEnable", 1},
               {param.quantType == 0, "quantType", double(param.quantType)},
               {param.outDataType == ACL_DT_UNDEFINED, "outDataType", double(param.outDataType)},
               {!param.hasQuantOffset, "hasQuantOffset", 1},
               {param.compressType == 0, "compressType", double(param.compressType)},
               {param.scaleType == 0, "scaleType", double(param.scaleType)},
               {param.inputLayout == 0, "inputLayout", double(param.inputLayout)},
               {param.mlaVHeadSize == 0 || param.kvHeadNum == 1, "mlaVHeadSize",
                double(param.mlaVHeadSize)}});
  if (status == kNoError) *operation = new PagedAttention(param);
  return status;
}

}  // namespace atb
