// Arguments that phase one refuses, tried on every operator of the table: codes and messages are
// those of a device.
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <set>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/grid/check.h"

extern "C" int SoftOperatorHasKernel(const char* name);

namespace acltape::opapi {
namespace {

using acl::ArgKind;
using acl::Direction;
using acl::OperatorInfo;
using at::Tensor;

constexpr aclnnStatus kParamNull = 161001, kParamInvalid = 161002, kFindKernelError = 561003;

bool IsPointer(ArgKind kind) { return kind <= ArgKind::kString; }

bool HasKernel(const OperatorInfo& op) {
  return SoftOperatorHasKernel(std::string(op.name).c_str()) != 0;
}

bool IsExported(const OperatorInfo& op) {
  return dlsym(RTLD_DEFAULT, std::string(op.name).c_str()) != nullptr;
}

// Callers that test only whether the symbol exists take another way then.
TEST(Refusals, WhatIsNotExportedHasNoKernelAndNoFirstPhaseEither) {
  int missing = 0;
  for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
    const OperatorInfo& op = acl::OperatorAt(i);
    if (IsExported(op)) continue;
    ++missing;
    EXPECT_FALSE(HasKernel(op)) << op.name << " works; take it off acl/data/not_exported.json";
    EXPECT_EQ(dlsym(RTLD_DEFAULT, std::string(op.workspace_name).c_str()), nullptr) << op.name;
  }
  EXPECT_GT(missing, 0);
}

// Some object for every argument; it need not make sense to the operator.
Arg SomeObject(ArgKind kind) {
  switch (kind) {
    case ArgKind::kTensor:
      return at::zeros({2, 2});
    case ArgKind::kTensorList:
      return std::vector<Tensor>{at::zeros({2, 2})};
    case ArgKind::kScalar:
      return at::Scalar(1);
    case ArgKind::kScalarList:
      return std::vector<at::Scalar>{1};
    case ArgKind::kIntArray:
    case ArgKind::kFloatArray:
    case ArgKind::kBoolArray:
      return std::vector<int64_t>{1};
    case ArgKind::kString:
      return "none";
    case ArgKind::kDtype:
      return at::kFloat;
    case ArgKind::kFloat:
    case ArgKind::kDouble:
      return 0.5;
    default:
      return int64_t{1};
  }
}

Args SomeObjects(const OperatorInfo& op) {
  Args args;
  for (uint32_t i = 0; i < op.arg_count; ++i) args.push_back(SomeObject(op.args[i].kind));
  return args;
}

struct Refusal {
  aclnnStatus status;
  std::string message;
};

Refusal Prepare(const OperatorInfo& op, const Args& args) {
  TestStream();
  PackedCall call(std::string(op.name).c_str(), args);
  const aclnnStatus status = call.Prepare();
  if (status == OK) {
    aclDestroyAclOpExecutor(call.executor());
    return {status, ""};
  }
  EXPECT_EQ(call.executor(), nullptr) << op.name;
  EXPECT_EQ(call.workspace_size(), 0u) << op.name;
  const char* text = aclGetRecentErrMsg();
  return {status, text == nullptr ? "" : text};
}

TEST(Refusals, AnOperatorWithoutAKernelFailsInPhaseOneAndNamesItself) {
  int without = 0;
  for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
    const OperatorInfo& op = acl::OperatorAt(i);
    if (HasKernel(op) || !IsExported(op)) continue;
    ++without;
    const Refusal refusal = Prepare(op, SomeObjects(op));
    EXPECT_EQ(refusal.status, kFindKernelError) << op.name;
    EXPECT_EQ(refusal.message.find(std::string(op.name) + " has no kernel on the soft device"), 0u)
        << refusal.message;
  }
  std::printf("operators without a kernel: %d of %u\n", without, acl::OperatorCount());
  EXPECT_GT(without, 0);
}

// Arguments that operators accept as NULL though the headers do not say so: public callers pass
// them so, or the operator's document calls them optional.
const std::map<std::string, std::set<uint32_t>> kAcceptNull = {
    {"aclnnAddRmsNormDynamicQuant", {7, 10}},
    {"aclnnAddRmsNormDynamicQuantV2", {8, 9, 11, 12}},
    {"aclnnAddRmsNormQuant", {11}},
    {"aclnnAddRmsNormQuantV2", {12}},
    {"aclnnAllGatherMatmul", {8}},
    {"aclnnAllGatherMatmulV2", {12, 14}},
    {"aclnnAlltoAllMatmulV2", {5}},
    {"aclnnAlltoAllQuantMatmulV2", {9}},
    {"aclnnAlltoAllvGroupedMatMulV2", {7}},
    {"aclnnApplyTopKTopP", {1, 2}},
    {"aclnnAscendAntiQuant", {2}},
    {"aclnnBatchNorm", {9, 10}},
    {"aclnnBatchNormBackward", {2, 3, 4, 5, 6}},
    {"aclnnBatchNormReduceBackward", {4}},
    {"aclnnChunkGatedDeltaRuleFwdH", {14, 15}},
    {"aclnnClamp", {1, 2}},
    {"aclnnConvDepthwise2d", {3}},
    {"aclnnCrossEntropyLoss", {3, 10, 11}},
    {"aclnnCrossEntropyLossGrad", {6}},
    {"aclnnDequantRopeQuantKvcache", {14, 15, 17, 19, 20}},
    {"aclnnDynamicQuantV2", {6}},
    {"aclnnDynamicBlockQuant", {2}},
    {"aclnnDynamicBlockQuantV2", {2}},
    {"aclnnEmbeddingBag", {6}},
    {"aclnnFlashAttentionScore", {18}},
    {"aclnnFlashAttentionScoreGrad", {24}},
    {"aclnnFlashAttentionScoreGradV2", {27}},
    {"aclnnFlashAttentionScoreGradV3", {28, 29}},
    {"aclnnFlashAttentionScoreV2", {21}},
    {"aclnnFlashAttentionScoreV3", {22}},
    {"aclnnFlashAttentionScoreV4", {33}},
    {"aclnnFlashAttentionUnpaddingScoreGrad", {26}},
    {"aclnnFlashAttentionUnpaddingScoreGradV2", {29}},
    {"aclnnFlashAttentionUnpaddingScoreGradV3", {33}},
    {"aclnnFlashAttentionUnpaddingScoreGradV4", {26, 27}},
    {"aclnnFlashAttentionUnpaddingScoreGradV5", {29, 31, 33, 35, 36}},
    {"aclnnFlashAttentionVarLenScore", {20}},
    {"aclnnFlashAttentionVarLenScoreV2", {23}},
    {"aclnnFlashAttentionVarLenScoreV3", {25}},
    {"aclnnFlashAttentionVarLenScoreV4", {18, 21}},
    {"aclnnFlashAttentionVarLenScoreV5", {24, 27}},
    {"aclnnFusedInferAttentionScore", {29}},
    {"aclnnFusedInferAttentionScoreV3", {41}},
    {"aclnnGRUBackward", {10}},
    {"aclnnGeluMul", {1}},
    {"aclnnGroupNormBackward", {4, 10, 11, 12}},
    {"aclnnGroupNormSwishGrad", {12, 13}},
    {"aclnnGroupedMatMulAlltoAllvV2", {7}},
    {"aclnnGroupedMatmulFinalizeRoutingWeightNz", {6, 7}},
    {"aclnnGroupedMatmulFinalizeRoutingWeightNzV2", {9, 10}},
    {"aclnnGroupedMatmulSwigluQuantWeightNzTensorList", {2, 3, 10}},
    {"aclnnGroupedMatmulV4", {17, 18}},
    {"aclnnGroupedMatmulV5", {18, 19}},
    {"aclnnIncreFlashAttention", {3, 4, 5}},
    {"aclnnIncreFlashAttentionV2", {3, 4, 5, 6, 7, 8, 9, 10}},
    {"aclnnIncreFlashAttentionV3", {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}},
    {"aclnnIncreFlashAttentionV4", {4, 5}},
    {"aclnnInplaceQuantScatterV2", {4}},
    {"aclnnKvRmsNormRopeCache", {14, 15}},
    {"aclnnKvRmsNormRopeCacheV2", {15, 16}},
    {"aclnnLSTM", {13, 14, 15, 16, 17, 18, 19}},
    {"aclnnLstmBackward", {3, 4, 5}},
    {"aclnnMatmulAllReduce", {2}},
    {"aclnnMatmulAllReduceAddRmsNorm", {2}},
    {"aclnnMatmulAllReduceV2", {2, 3}},
    {"aclnnMatmulAllReduceV3", {2, 3, 6}},
    {"aclnnMatmulAlltoAllV2", {5}},
    {"aclnnMatmulReduceScatterV2", {12}},
    {"aclnnModulateBackward", {5, 6}},
    {"aclnnMoeDistributeCombineAddRmsNorm", {28}},
    {"aclnnMoeDistributeCombineAddRmsNormV2", {33}},
    {"aclnnMoeDistributeCombineV2", {26}},
    {"aclnnMoeDistributeCombineV3", {31}},
    {"aclnnMoeDistributeCombineV4", {32}},
    {"aclnnMoeDistributeDispatch", {2, 4, 19, 24}},
    {"aclnnMoeDistributeDispatchV2", {18, 20, 25}},
    {"aclnnMoeDistributeDispatchV3", {19, 24, 29}},
    {"aclnnMoeDistributeDispatchV4", {20, 25, 30}},
    {"aclnnMoeFinalizeRoutingV3", {12, 13, 14}},
    {"aclnnMoeFinalizeRoutingV4", {12, 13, 14}},
    {"aclnnMoeGatingTopK", {13}},
    {"aclnnMoeGatingTopKV2", {15}},
    {"aclnnMoeInitRoutingCustom", {15, 16}},
    {"aclnnMoeInitRoutingV3", {15, 16}},
    {"aclnnMoeTokenPermuteWithEp", {8}},
    {"aclnnMoeTokenPermuteWithEpGrad", {7}},
    {"aclnnMoeTokenUnpermuteGrad", {7}},
    {"aclnnMoeTokenUnpermuteWithEpGrad", {9}},
    {"aclnnMoeTokenUnpermuteWithRoutingMap", {9}},
    {"aclnnNLLLoss", {2}},
    {"aclnnNLLLoss2d", {2}},
    {"aclnnNLLLoss2dBackward", {3}},
    {"aclnnNLLLossBackward", {3}},
    {"aclnnNsaCompressWithCache", {5}},
    {"aclnnNsaSelectedAttentionInfer", {8}},
    {"aclnnQuantMatmulAllReduce", {2, 3}},
    {"aclnnQuantMatmulAllReduceV5", {10}},
    {"aclnnQuantMatmulAlltoAllV2", {10}},
    {"aclnnRecurrentGatedDeltaRule", {9}},
    {"aclnnRingAttentionUpdateV2", {8}},
    {"aclnnRmsNorm", {4}},
    {"aclnnRmsNormQuantV3", {9}},
    {"aclnnRotaryPositionEmbeddingV2", {4}},
    {"aclnnRotateQuant", {4}},
    {"aclnnSearchSorted", {4}},
    {"aclnnSearchSorteds", {4}},
    {"aclnnSparseAttnSharedkv", {26}},
    {"aclnnThnnFusedLstmCellBackward", {8}},
    {"aclnnTopKTopPSample", {3, 8}},
    {"aclnnTopKTopPSampleV2", {3, 4, 12, 13, 14}},
    {"aclnnUnique", {4}},
    {"aclnnUnique2", {5, 6}},
    {"aclnnUniqueConsecutive", {6}},
    {"aclnnVllmQuantLightningIndexer", {22}},
    {"aclnnWeightQuantMatmulAllReduceV2", {8}},
};

TEST(Refusals, NullForEachRequiredArgumentGives161001AndNamesIt) {
  int tried = 0;
  for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
    const OperatorInfo& op = acl::OperatorAt(i);
    if (!HasKernel(op)) continue;
    const auto accepted = kAcceptNull.find(std::string(op.name));
    for (uint32_t k = 0; k < op.arg_count; ++k) {
      if (!IsPointer(op.args[k].kind) || op.args[k].optional) continue;
      Args args = SomeObjects(op);
      args[k] = Null{};
      const Refusal refusal = Prepare(op, args);
      const std::string expected = std::string(op.name) + ": " + std::string(op.args[k].name);
      if (accepted != kAcceptNull.end() && accepted->second.count(k) > 0) {
        EXPECT_NE(refusal.message, expected + " is NULL.") << "no exception any more";
        continue;
      }
      ++tried;
      EXPECT_EQ(refusal.status, kParamNull) << expected;
      EXPECT_EQ(refusal.message, expected + " is NULL.");
    }
  }
  std::printf("required arguments tried with NULL: %d\n", tried);
  EXPECT_GT(tried, 1000);
}

TEST(Refusals, ATensorWithoutMemoryGives161001) {
  TestStream();
  for (const grid::Row& row : grid::AllRows()) {
    const Args args = grid::ValidCall(row);
    const OperatorInfo& op = *acl::FindOperator(row.op);
    for (uint32_t i = 0; i < op.arg_count; ++i) {
      const auto* tensor = std::get_if<Tensor>(&args[i]);
      if (tensor == nullptr || tensor->numel() == 0) continue;
      PackedCall call(row.op.c_str(), args);
      ASSERT_EQ(aclSetRawTensorAddr(call.tensor(static_cast<int>(i)), nullptr), OK);
      EXPECT_EQ(call.Prepare(), kParamNull) << row.op << ": " << op.args[i].name;
      const char* text = aclGetRecentErrMsg();
      EXPECT_EQ(std::string(text == nullptr ? "" : text),
                row.op + ": the address of " + std::string(op.args[i].name) + " is NULL.");
    }
  }
}

// Tensors of dtype complex32, which no kernel takes in all places.
TEST(Refusals, ADtypeThatTheLibraryLacksGives161002ForEveryKernel) {
  int tried = 0;
  for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
    const OperatorInfo& op = acl::OperatorAt(i);
    if (!HasKernel(op)) continue;
    const int64_t two = 2;
    float memory[8] = {};
    const Args args = SomeObjects(op);
    PackedCall call(std::string(op.name).c_str(), args);
    bool any = false;
    for (uint32_t k = 0; k < op.arg_count; ++k) {
      if (op.args[k].kind != ArgKind::kTensor) continue;
      any = true;
      ASSERT_EQ(aclInitTensor(call.tensor(static_cast<int>(k)), &two, 1, ACL_COMPLEX32, nullptr, 0,
                              ACL_FORMAT_ND, &two, 1, memory),
                OK);
    }
    if (!any) continue;
    ++tried;
    EXPECT_EQ(call.Prepare(), kParamInvalid) << op.name;
    const char* text = aclGetRecentErrMsg();
    EXPECT_EQ(std::string(text == nullptr ? "" : text).find(std::string(op.name) + ": "), 0u)
        << op.name;
  }
  EXPECT_GT(tried, 300);
}

// The output with one more dim, which no operator writes for these inputs.
Tensor WrongShape(const Tensor& tensor) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  sizes.insert(sizes.begin(), {3, 2});
  return at::zeros(sizes, tensor.options());
}

TEST(Refusals, AnOutputOfAnotherShapeGives161002AndIsNamed) {
  int tried = 0;
  for (const grid::Row& row : grid::AllRows()) {
    const OperatorInfo& op = *acl::FindOperator(row.op);
    const Args valid = grid::ValidCall(row);
    ASSERT_EQ(valid.size(), op.arg_count) << row.op << " has no valid call";
    ASSERT_EQ(Prepare(op, valid).status, OK) << row.op;
    for (uint32_t k = 0; k < op.arg_count; ++k) {
      if (op.args[k].direction != Direction::kOut) continue;
      Args args = valid;
      if (const auto* tensor = std::get_if<Tensor>(&valid[k])) {
        args[k] = WrongShape(*tensor);
      } else if (const auto* list = std::get_if<std::vector<Tensor>>(&valid[k])) {
        std::vector<Tensor> wrong = *list;
        wrong[0] = WrongShape(wrong[0]);
        args[k] = wrong;
      } else {
        continue;
      }
      ++tried;
      const Refusal refusal = Prepare(op, args);
      EXPECT_EQ(refusal.status, kParamInvalid) << row.op << ": " << op.args[k].name;
      EXPECT_EQ(refusal.message.find(row.op + ": "), 0u) << refusal.message;
      EXPECT_NE(refusal.message.find(op.args[k].name), std::string::npos) << refusal.message;
    }
  }
  std::printf("outputs tried with another shape: %d\n", tried);
  EXPECT_GT(tried, 200);
}

TEST(Refusals, TheNextCallIsNotDisturbed) {
  const Tensor x = Random({3}), out = Unwritten(x);
  EXPECT_EQ(RunOperator("aclnnAdd", {x, x, 1, Unwritten(Random({4}))}), kParamInvalid);
  EXPECT_TRUE(Gives("aclnnAdd", {x, x, 1, out}, {{3, at::add(x, x)}}));
}

}  // namespace
}  // namespace acltape::opapi
