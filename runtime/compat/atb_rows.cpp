// Operations of libatb.so on elements and rows.
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_atb_group_topk.h"
#include "aclnnop/aclnn_atb_quant_per_channel.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_cos.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_eq_tensor.h"
#include "aclnnop/aclnn_gt_tensor.h"
#include "aclnnop/aclnn_logical_and.h"
#include "aclnnop/aclnn_logical_not.h"
#include "aclnnop/aclnn_logical_or.h"
#include "aclnnop/aclnn_lt_tensor.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_neg.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rms_norm_quant_v3.h"
#include "aclnnop/aclnn_sin.h"
#include "aclnnop/aclnn_sub.h"
#include "aclnnop/aclnn_tanh.h"
#include "runtime/compat/atb_operation.h"

namespace atb {
namespace {

using infer::ElewiseParam;
using infer::RmsNormParam;

// --- Elements.

// The tensors of an operation on elements; absent ones are null.
struct Elements {
  const aclTensor *x, *y, *z;
  aclTensor* out;
};

struct ElementKind {
  ElewiseParam::ElewiseType type;
  uint32_t inputs;
  aclnnStatus (*issue)(const ElewiseParam& param, const Elements& e, aclrtStream stream);
};

// An operator with one input, or with two, and no more.
template <auto kFirst, auto kSecond>
aclnnStatus OfOne(const ElewiseParam&, const Elements& e, aclrtStream stream) {
  return IssueCall(kFirst, kSecond, stream, e.x, e.out);
}
template <auto kFirst, auto kSecond>
aclnnStatus OfTwo(const ElewiseParam&, const Elements& e, aclrtStream stream) {
  return IssueCall(kFirst, kSecond, stream, e.x, e.y, e.out);
}
template <auto kFirst, auto kSecond>
aclnnStatus OfTwoAndOne(const ElewiseParam&, const Elements& e, aclrtStream stream) {
  const Number one(1);
  return IssueCall(kFirst, kSecond, stream, e.x, e.y, one.get(), e.out);
}

aclnnStatus Cast(const ElewiseParam& param, const Elements& e, aclrtStream stream) {
  return IssueCall(aclnnCastGetWorkspaceSize, aclnnCast, stream, e.x, param.outTensorType, e.out);
}

aclnnStatus TimesNumber(const ElewiseParam& param, const Elements& e, aclrtStream stream) {
  const Number factor(param.mulsParam.varAttr);
  return IssueCall(aclnnMulsGetWorkspaceSize, aclnnMuls, stream, e.x, factor.get(), e.out);
}

aclnnStatus QuantPerChannel(const ElewiseParam&, const Elements& e, aclrtStream stream) {
  return IssueCall(aclnnAtbQuantPerChannelGetWorkspaceSize, aclnnAtbQuantPerChannel, stream, e.x,
                   e.y, e.z, e.out);
}

constexpr ElementKind kElementKinds[] = {
    {ElewiseParam::ELEWISE_CAST, 1, Cast},
    {ElewiseParam::ELEWISE_MULS, 1, TimesNumber},
    {ElewiseParam::ELEWISE_COS, 1, OfOne<aclnnCosGetWorkspaceSize, aclnnCos>},
    {ElewiseParam::ELEWISE_SIN, 1, OfOne<aclnnSinGetWorkspaceSize, aclnnSin>},
    {ElewiseParam::ELEWISE_NEG, 1, OfOne<aclnnNegGetWorkspaceSize, aclnnNeg>},
    {ElewiseParam::ELEWISE_TANH, 1, OfOne<aclnnTanhGetWorkspaceSize, aclnnTanh>},
    {ElewiseParam::ELEWISE_LOGICAL_NOT, 1, OfOne<aclnnLogicalNotGetWorkspaceSize, aclnnLogicalNot>},
    {ElewiseParam::ELEWISE_ADD, 2, OfTwoAndOne<aclnnAddGetWorkspaceSize, aclnnAdd>},
    {ElewiseParam::ELEWISE_SUB, 2, OfTwoAndOne<aclnnSubGetWorkspaceSize, aclnnSub>},
    {ElewiseParam::ELEWISE_MUL, 2, OfTwo<aclnnMulGetWorkspaceSize, aclnnMul>},
    {ElewiseParam::ELEWISE_REALDIV, 2, OfTwo<aclnnDivGetWorkspaceSize, aclnnDiv>},
    {ElewiseParam::ELEWISE_LOGICAL_AND, 2, OfTwo<aclnnLogicalAndGetWorkspaceSize, aclnnLogicalAnd>},
    {ElewiseParam::ELEWISE_LOGICAL_OR, 2, OfTwo<aclnnLogicalOrGetWorkspaceSize, aclnnLogicalOr>},
    {ElewiseParam::ELEWISE_LESS, 2, OfTwo<aclnnLtTensorGetWorkspaceSize, aclnnLtTensor>},
    {ElewiseParam::ELEWISE_GREATER, 2, OfTwo<aclnnGtTensorGetWorkspaceSize, aclnnGtTensor>},
    {ElewiseParam::ELEWISE_EQUAL, 2, OfTwo<aclnnEqTensorGetWorkspaceSize, aclnnEqTensor>},
    {ElewiseParam::ELEWISE_QUANT_PER_CHANNEL, 3, QuantPerChannel},
};

const ElementKind* FindElementKind(ElewiseParam::ElewiseType type) {
  for (const ElementKind& kind : kElementKinds) {
    if (kind.type == type) return &kind;
  }
  return nullptr;
}

class Elewise final : public SoftOperation {
 public:
  Elewise(const ElementKind& kind, const ElewiseParam& param)
      : SoftOperation("ElewiseOperation", kind.inputs, 1), kind_(kind), param_(param) {}

 private:
  const char* Lacks(const VariantPack&) const override { return nullptr; }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const auto input = [&](size_t i) -> const Tensor& {
      return pack.inTensors[i < kind_.inputs ? i : 0];
    };
    const View x(input(0)), y(input(1)), z(input(2)), out(pack.outTensors[0]);
    const bool offset =
        kind_.inputs == 3 && SizesOf(input(2)).size() > 0 && CountFrom(input(2), 0) > 0;
    return kind_.issue(param_, {x.get(), y.get(), offset ? z.get() : nullptr, out.get()}, stream);
  }

  const ElementKind& kind_;
  ElewiseParam param_;
};

// --- Rows.

class RmsNorm final : public SoftOperation {
 public:
  explicit RmsNorm(float epsilon) : SoftOperation("RmsNormOperation", 2, 1), epsilon_(epsilon) {}

 private:
  const char* Lacks(const VariantPack& pack) const override {
    return pack.inTensors[0].desc.shape.dimNum < 1 ? "takes rows" : nullptr;
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const View x(pack.inTensors[0]), y(pack.outTensors[0]);
    const View gamma(pack.inTensors[1], Sizes{SizesOf(pack.inTensors[0]).back()});
    return IssueCall(aclnnRmsNormGetWorkspaceSize, aclnnRmsNorm, stream, x.get(), gamma.get(),
                     double(epsilon_), y.get(), /*rstd=*/nullptr);
  }

  float epsilon_;
};

class RmsNormQuant final : public SoftOperation {
 public:
  explicit RmsNormQuant(float epsilon)
      : SoftOperation("RmsNormOperation", 5, 1), epsilon_(epsilon) {}

 private:
  const char* Lacks(const VariantPack& pack) const override {
    for (size_t i : {1, 2}) {
      if (pack.inTensors[0].desc.shape.dimNum < 1 ||
          CountFrom(pack.inTensors[i], 0) != SizesOf(pack.inTensors[0]).back()) {
        return "takes gamma and beta as wide as its rows";
      }
    }
    return nullptr;
  }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const int64_t width = SizesOf(pack.inTensors[0]).back();
    const View x(pack.inTensors[0]), gamma(pack.inTensors[1], Sizes{width});
    const View beta(pack.inTensors[2], Sizes{width}), scale(pack.inTensors[3]);
    const View offset(pack.inTensors[4]), y(pack.outTensors[0]);
    return IssueCall(aclnnRmsNormQuantV3GetWorkspaceSize, aclnnRmsNormQuantV3, stream, x.get(),
                     gamma.get(), scale.get(), offset.get(), beta.get(), double(epsilon_),
                     /*divMode=*/true, /*outputRstd=*/false, y.get(), nullptr);
  }

  float epsilon_;
};

class GroupTopk final : public SoftOperation {
 public:
  explicit GroupTopk(const infer::GroupTopkParam& param)
      : SoftOperation("GroupTopkOperation", 2, 1), param_(param) {}

 private:
  const char* Lacks(const VariantPack&) const override { return nullptr; }

  aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const override {
    const View token(pack.inTensors[0]), out(pack.outTensors[0]);
    const int64_t best = param_.groupMultiFlag == 0 ? 1 : param_.n;
    return IssueCall(aclnnAtbGroupTopkGetWorkspaceSize, aclnnAtbGroupTopk, stream, token.get(),
                     int64_t{param_.groupNum}, int64_t{param_.k}, best, out.get());
  }

  infer::GroupTopkParam param_;
};

}  // namespace

template <>
ACLTAPE_ATB Status CreateOperation(const ElewiseParam& param, Operation** operation) {
  if (operation == nullptr) return kInvalidParam;
  const ElementKind* kind = FindElementKind(param.elewiseType);
  const Status status =
      Offered("ElewiseOperation", {{kind != nullptr, "elewiseType", double(param.elewiseType)}});
  if (status == kNoError) *operation = new Elewise(*kind, param);
  return status;
}

template <>
ACLTAPE_ATB Status CreateOperation(const RmsNormParam& param, Operation** operation) {
  if (operation == nullptr) return kInvalidParam;
  const RmsNormParam::NormParam& norm = param.normParam;
  const bool quantises = norm.quantType == RmsNormParam::QUANT_INT8;
  const Status status = Offered(
      "RmsNormOperation",
      {{param.layerType == RmsNormParam::RMS_NORM_NORM, "layerType", double(param.layerType)},
       {quantises || norm.quantType == RmsNormParam::QUANT_UNDEFINED, "normParam.quantType",
        double(norm.quantType)},
       {!norm.rstd, "normParam.rstd", 1},
       {norm.precisionMode == 0, "normParam.precisionMode", double(norm.precisionMode)},
       {norm.modelType == 0, "normParam.modelType", double(norm.modelType)},
       {norm.dynamicQuantType == 0, "normParam.dynamicQuantType", double(norm.dynamicQuantType)}});
  if (status != kNoError) return status;
  if (quantises) {
    *operation = new RmsNormQuant(norm.epsilon);
  } else {
    *operation = new RmsNorm(norm.epsilon);
  }
  return kNoError;
}

template <>
ACLTAPE_ATB Status CreateOperation(const infer::GroupTopkParam& param, Operation** operation) {
  if (operation == nullptr) return kInvalidParam;
  const Status status =
      Offered("GroupTopkOperation",
              {{param.groupNum >= 1, "groupNum", double(param.groupNum)},
               {param.k >= 1 && param.k <= param.groupNum, "k", double(param.k)},
               {param.groupMultiFlag <= 1, "groupMultiFlag", double(param.groupMultiFlag)},
               {param.n >= 1, "n", double(param.n)}});
  if (status == kNoError) *operation = new GroupTopk(param);
  return status;
}

}  // namespace atb
