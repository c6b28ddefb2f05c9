// The operators of the ACL interface, and its functions that move memory, of which names and
// arguments do not tell what they mean to a recording and to a plan. torch_operators.h has the
// operators of PyTorch. tests/acl/operators_test.py holds this table against
// acl/data/aclnn_ops.json: an operator that takes a seed has a row here. Standard library alone,
// because the recorder's wrappers are compiled without a C++ runtime.
#pragma once

#include <cstdint>
#include <string_view>

#include "meaning/operator_facts.h"

namespace acltape::meaning {

// The place from which an operator that draws random numbers has its seed.
enum class Randomness : uint8_t {
  kNone,
  kHostSeed,   // a number of the host: a captured graph repeats the numbers of its capture
  kDeviceSeed  // a tensor: who writes it before an execution gets other numbers
};

struct AclOperator {
  std::string_view name;  // "aclnnMm", or a pattern (operator_facts.h)
  Randomness randomness = Randomness::kNone;
  Condition random_if = {};  // it draws only where this holds
  Resource resource = Resource::kVector;
  // It gives a new value to every element of the memory that it works on in place, its first
  // argument, and does not read what was there.
  bool overwrites = false;
  bool passes_on = false;  // as in TorchOperator
  // It exchanges data with the other ranks of a group that it takes by name. What it writes comes
  // from all ranks, so it runs only where all of them do.
  bool communicates = false;
};

// The first row that fits counts.
inline constexpr AclOperator kAclOperators[] = {
    {.name = "aclnnBernoulli", .randomness = Randomness::kHostSeed},
    {.name = "aclnnBernoulliTensor", .randomness = Randomness::kHostSeed},
    {.name = "aclnnDropout", .randomness = Randomness::kHostSeed, .random_if = {"train"}},
    {.name = "aclnnDropoutGenMask", .randomness = Randomness::kHostSeed},
    {.name = "aclnnDropoutGenMaskV2", .randomness = Randomness::kHostSeed},
    {.name = "aclnnDropoutGenMaskV2Tensor", .randomness = Randomness::kDeviceSeed},
    {.name = "aclnnDropoutV3", .randomness = Randomness::kHostSeed},
    {.name = "aclnnFlashAttentionScoreV4",
     .randomness = Randomness::kHostSeed,
     .random_if = {"keepProb", Condition::Test::kNotOne},
     .resource = Resource::kCube},
    {.name = "aclnnInplaceBernoulli", .randomness = Randomness::kHostSeed, .overwrites = true},
    {.name = "aclnnInplaceBernoulliTensor",
     .randomness = Randomness::kHostSeed,
     .overwrites = true},
    {.name = "aclnnInplaceNormal", .randomness = Randomness::kHostSeed, .overwrites = true},
    {.name = "aclnnInplaceNormalTensor", .randomness = Randomness::kDeviceSeed, .overwrites = true},
    {.name = "aclnnInplaceRReluWithNoise",
     .randomness = Randomness::kHostSeed,
     .random_if = {"training"}},
    {.name = "aclnnInplaceRandom", .randomness = Randomness::kHostSeed, .overwrites = true},
    {.name = "aclnnInplaceRandomTensor", .randomness = Randomness::kDeviceSeed, .overwrites = true},
    {.name = "aclnnInplaceRandomWithoutFromTo",
     .randomness = Randomness::kHostSeed,
     .overwrites = true},
    {.name = "aclnnInplaceRandomWithoutFromToTensor",
     .randomness = Randomness::kDeviceSeed,
     .overwrites = true},
    {.name = "aclnnInplaceUniform", .randomness = Randomness::kHostSeed, .overwrites = true},
    {.name = "aclnnInplaceUniformTensor",
     .randomness = Randomness::kDeviceSeed,
     .overwrites = true},
    {.name = "aclnnMultinomial", .randomness = Randomness::kHostSeed},
    {.name = "aclnnMultinomialTensor", .randomness = Randomness::kDeviceSeed},
    {.name = "aclnnNormalFloatFloat", .randomness = Randomness::kHostSeed},
    {.name = "aclnnNormalFloatTensor", .randomness = Randomness::kHostSeed},
    {.name = "aclnnNormalTensorFloat", .randomness = Randomness::kHostSeed},
    {.name = "aclnnNormalTensorTensor", .randomness = Randomness::kHostSeed},
    {.name = "aclnnRReluWithNoise", .randomness = Randomness::kHostSeed, .random_if = {"training"}},
    {.name = "aclnnRandperm", .randomness = Randomness::kHostSeed},
    {.name = "aclnnSimThreadExponential", .randomness = Randomness::kHostSeed, .overwrites = true},
    {.name = "aclnnStatelessBernoulli", .randomness = Randomness::kHostSeed},

    {.name = "aclnnForeachZeroInplace", .overwrites = true},
    {.name = "aclnnInplaceFillScalar", .overwrites = true},
    {.name = "aclnnInplaceFillTensor", .overwrites = true},
    {.name = "aclnnInplaceOne", .overwrites = true},
    {.name = "aclnnInplaceZero", .overwrites = true},

    {.name = "aclnnCast", .passes_on = true},
    {.name = "aclnnInplaceCopy", .overwrites = true, .passes_on = true},
    {.name = "aclnnViewCopy", .passes_on = true},
    {.name = "aclrtMemcpy", .resource = Resource::kCopy, .passes_on = true},
    {.name = "aclrtMemcpyAsync", .resource = Resource::kCopy, .passes_on = true},
    {.name = "aclrtMemcpy*", .resource = Resource::kCopy},
    {.name = "aclrtMemset*", .resource = Resource::kCopy},

    {.name = "aclnnAllGatherMatmul*", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnAlltoAll*", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnAttentionToFFN", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnBandwidthTest", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnBatchMatMulReduceScatterAlltoAll",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnDistributeBarrier*", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnElasticReceivable*", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnFFNToAttention", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnGroupedMatMulAllReduce",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnGroupedMatMulAlltoAllv*",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnInnerDistributeBarrier",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnInplaceMatmulAllReduceAddRmsNorm",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnInplaceQuantMatmulAllReduceAddRmsNorm",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnInplaceWeightQuantMatmulAllReduceAddRmsNorm",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnMatmulAllReduce*", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnMatmulAllreduceAddRmsnorm",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnMatmulAlltoAll*", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnMatmulReduceScatter*",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnMoeDistribute*", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnQuantAllReduce", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnQuantGroupedMatMulAlltoAllv*",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnQuantMatmulAllReduce*",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnQuantMatmulAlltoAll*",
     .resource = Resource::kCommunication,
     .communicates = true},
    {.name = "aclnnQuantReduceScatter", .resource = Resource::kCommunication, .communicates = true},
    {.name = "aclnnWeightQuantMatmulAllReduce*",
     .resource = Resource::kCommunication,
     .communicates = true},

    {.name = "aclnnMm", .resource = Resource::kCube},
    {.name = "aclnnMatmul*", .resource = Resource::kCube},
    {.name = "aclnnBatchMatMul*", .resource = Resource::kCube},
    {.name = "aclnnBaddbmm*", .resource = Resource::kCube},
    {.name = "aclnnInplaceBaddbmm", .resource = Resource::kCube},
    {.name = "aclnnAddbmm*", .resource = Resource::kCube},
    {.name = "aclnnInplaceAddbmm", .resource = Resource::kCube},
    {.name = "aclnnAddmm*", .resource = Resource::kCube},
    {.name = "aclnnInplaceAddmm", .resource = Resource::kCube},
    {.name = "aclnnAddmv*", .resource = Resource::kCube},
    {.name = "aclnnMv", .resource = Resource::kCube},
    {.name = "aclnnGemm*", .resource = Resource::kCube},
    {.name = "aclnnConvolution*", .resource = Resource::kCube},
    {.name = "aclnnConvDepthwise2d", .resource = Resource::kCube},
    {.name = "aclnnConvTbc*", .resource = Resource::kCube},
    {.name = "aclnnGroupedMatmul*", .resource = Resource::kCube},
    {.name = "aclnnQuantMatmul*", .resource = Resource::kCube},
    {.name = "aclnnWeightQuantBatchMatmul*", .resource = Resource::kCube},
    {.name = "aclnnFlashAttention*", .resource = Resource::kCube},
    {.name = "aclnnFusedInferAttention*", .resource = Resource::kCube},
    {.name = "aclnnIncreFlashAttention*", .resource = Resource::kCube},
    {.name = "aclnnPromptFlashAttention*", .resource = Resource::kCube},
    {.name = "aclnnAtbPagedAttention", .resource = Resource::kCube},
    {.name = "aclnnAtbSelfAttention", .resource = Resource::kCube},

    {.name = "Hccl*", .resource = Resource::kCommunication},
};

// Null when the operator has no row: it draws no numbers and is vector work.
constexpr const AclOperator* FindAclOperator(std::string_view name) {
  for (const AclOperator& row : kAclOperators) {
    if (FitsPattern(row.name, name)) return &row;
  }
  return nullptr;
}

// The facts of an operator, those of an operator without a row included.
constexpr AclOperator AclOperatorOf(std::string_view name) {
  const AclOperator* row = FindAclOperator(name);
  return row == nullptr ? AclOperator{.name = name} : *row;
}

constexpr bool Communicates(std::string_view name) { return AclOperatorOf(name).communicates; }

// True for the argument of such an operator that holds the name of a group.
constexpr bool IsGroupName(std::string_view argument) { return argument.starts_with("group"); }

// Tensors that an operator writes only where a number among its arguments is not 0. Else their
// memory holds what it held before. A gradient that a mask of booleans leaves out has no row,
// because callers hand none over. tests/opapi/grid/conditional_outputs_test.cpp holds this table
// against the soft device's kernels.
struct ConditionalOutput {
  std::string_view name;  // "aclnnSvd", or a pattern (operator_facts.h)
  std::string_view argument;
  std::string_view flag;
};

inline constexpr ConditionalOutput kConditionalOutputs[] = {
    {"aclnnAddLayerNorm", "xOut", "additionalOutput"},
    {"aclnnAttentionUpdate", "lseOut", "updateType"},
    {"aclnnBatchNorm", "runningMean", "training"},
    {"aclnnBatchNorm", "runningVar", "training"},
    {"aclnnBatchNormReduceBackward", "sumDy", "inputG"},
    {"aclnnBatchNormReduceBackward", "sumDyXmu", "inputG"},
    {"aclnnBatchNormReduceBackward", "gradWeight", "weightG"},
    {"aclnnBatchNormReduceBackward", "gradBias", "biasG"},
    {"aclnnBlockSparseAttention", "softmaxLseOptional", "softmaxLseFlag"},
    {"aclnnBlockSparseAttentionV2", "softmaxLseOptional", "softmaxLseFlag"},
    {"aclnnChunkGatedDeltaRuleFwdH", "finalStateOut", "outputFinalState"},
    {"aclnnChunkGatedDeltaRuleFwdH", "vNewOut", "saveNewValue"},
    {"aclnnDequantRopeQuantKvcache", "kOut", "kvOutput"},
    {"aclnnDequantRopeQuantKvcache", "vOut", "kvOutput"},
    {"aclnnFusedInferAttentionScore*", "softmaxLse", "softmaxLseFlag"},
    {"aclnnGRU", "rOut", "train"},
    {"aclnnGRU", "zOut", "train"},
    {"aclnnGRU", "nOut", "train"},
    {"aclnnGRU", "hnOut", "train"},
    {"aclnnGRU", "hOut", "train"},
    {"aclnnGroupNormSwishGrad", "dgammaOut", "dgammaIsRequire"},
    {"aclnnGroupNormSwishGrad", "dbetaOut", "dbetaIsRequire"},
    {"aclnnInplaceRReluWithNoise", "noise", "training"},
    {"aclnnKvRmsNormRopeCache*", "kRopeOut", "isOutputKv"},
    {"aclnnKvRmsNormRopeCache*", "cKvOut", "isOutputKv"},
    {"aclnnLSTM", "iOut", "train"},
    {"aclnnLSTM", "jOut", "train"},
    {"aclnnLSTM", "fOut", "train"},
    {"aclnnLSTM", "oOut", "train"},
    {"aclnnLSTM", "hOut", "train"},
    {"aclnnLSTM", "cOut", "train"},
    {"aclnnLSTM", "tanhCOut", "train"},
    {"aclnnMlaPrologV3", "queryNormOut", "queryNormFlag"},
    {"aclnnMlaPrologV3WeightNz", "queryNormOutOptional", "queryNormFlag"},
    {"aclnnMoeGatingTopK", "outOut", "outFlag"},
    {"aclnnMoeGatingTopKHash", "outOut", "outFlag"},
    {"aclnnMoeGatingTopKV2", "outOut", "outFlag"},
    {"aclnnMoeGatingTopKSoftmaxV2", "softmaxResultOutOptional", "outputSoftmaxResultFlag"},
    {"aclnnMoeInitRoutingCustom", "expertTokensCountOrCumsumOut", "expertTokensNumFlag"},
    {"aclnnMoeInitRoutingQuantV2", "expertTokensCountOrCumsumOutOptional",
     "expertTokensCountOrCumsumFlag"},
    {"aclnnMoeInitRoutingQuantV2", "expertTokensBeforeCapacityOutOptional",
     "expertTokensBeforeCapacityFlag"},
    {"aclnnMoeInitRoutingV2", "expertTokensCountOrCumsumOutOptional",
     "expertTokensCountOrCumsumFlagOptional"},
    {"aclnnMoeInitRoutingV2", "expertTokensBeforeCapacityOutOptional",
     "expertTokensBeforeCapacityFlagOptional"},
    {"aclnnMoeInitRoutingV3", "expertTokensCountOrCumsumOut", "expertTokensNumFlag"},
    {"aclnnRReluWithNoise", "noise", "training"},
    {"aclnnRmsNormQuantV3", "rstd", "outputRstd"},
    {"aclnnSvd", "u", "computeUV"},
    {"aclnnSvd", "v", "computeUV"},
    {"aclnnThnnFusedLstmCellBackward", "gradBiasOut", "hasBias"},
    {"aclnnTopKTopPSample", "logitsTopKPSelect", "isNeedLogits"},
    {"aclnnTopKTopPSampleV2", "logitsTopKPSelect", "isNeedLogits"},
    {"aclnnTopKTopPSampleV2", "logitsIdx", "isNeedSampleResult"},
    {"aclnnTopKTopPSampleV2", "logitsSortMasked", "isNeedSampleResult"},
    {"aclnnUnique", "inverseOut", "returnInverse"},
    {"aclnnUnique2", "inverseOut", "returnInverse"},
    {"aclnnUnique2", "countsOut", "returnCounts"},
    {"aclnnUniqueConsecutive", "inverseOut", "returnInverse"},
    {"aclnnUniqueConsecutive", "countsOut", "returnCounts"},
};

// Null when the operator has no such tensor.
constexpr const ConditionalOutput* FindConditionalOutput(std::string_view name) {
  for (const ConditionalOutput& row : kConditionalOutputs) {
    if (FitsPattern(row.name, name)) return &row;
  }
  return nullptr;
}
constexpr const ConditionalOutput* FindConditionalOutput(std::string_view name,
                                                         std::string_view argument) {
  for (const ConditionalOutput& row : kConditionalOutputs) {
    if (row.argument == argument && FitsPattern(row.name, name)) return &row;
  }
  return nullptr;
}

}  // namespace acltape::meaning
