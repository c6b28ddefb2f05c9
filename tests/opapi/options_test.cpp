// Every option of every operator with a kernel is tried: an argument that may be left out is given
// in a call that succeeds, or the operator refuses it with a sentence; a truth value is true once
// and false once; a mode has each of its documented values. What was left at its default in all
// tests may be wrong without a word.
//
// The calls of the whole test program count, so this asks where all of its tests ran.
#include <cstdio>
#include <cstdlib>

#include "tests/opapi/options_census.h"

extern "C" int SoftOperatorHasKernel(const char* name);

namespace acltape::opapi {
namespace {

// Options that no test of this program gives.
struct Exception {
  const char* op;
  const char* argument;
  const char* reason;
};
constexpr const char* kReserved = "the page reserves it: nothing reads or writes it";
constexpr const char* kOther = "other modes read it, which the operator refuses";
constexpr const char* kPlan = "the plan of the device's cores, which the soft device has none of";
constexpr const char* kTables = "lengths that a table of blocks makes needless";
constexpr const char* kSameKernel = "the version before has the same kernel";
constexpr Exception kExceptions[] = {
    {"aclnnFusedInferAttentionScoreV4", "sparseMode", kSameKernel},
    {"aclnnPromptFlashAttentionV3", "sparseMode", "aclnnFusedInferAttentionScore has its kernel"},
    {"aclnnAtbSelfAttention", "blockTablesOptional", "aclnnAtbPagedAttention has the same kernel"},
    {"aclnnGroupedMatmulV4", "activationFeatureOutOptional", kReserved},
    {"aclnnGroupedMatmulV4", "dynQuantScaleOutOptional", kReserved},
    {"aclnnGroupedMatmulV5", "activationFeatureOutOptional", kReserved},
    {"aclnnGroupedMatmulV5", "dynQuantScaleOutOptional", kReserved},
    {"aclnnGroupedMatmulV5", "tuningConfigOptional", kReserved},
    {"aclnnGroupedMatmulWeightNz", "activationFeatureOutOptional", kReserved},
    {"aclnnGroupedMatmulWeightNz", "dynQuantScaleOutOptional", kReserved},
    {"aclnnGroupedMatmulWeightNz", "tuningConfigOptional", kReserved},
    {"aclnnMlaPrologV3WeightNz", "dequantScaleQNopeOutOptional", kOther},
    {"aclnnMlaPrologV3WeightNz", "dequantScaleQNormOutOptional", kOther},
    {"aclnnScatterPaKvCache", "stridesOptional", kOther},
    {"aclnnScatterPaKvCache", "offsetsOptional", kOther},
    {"aclnnSparseAttnSharedkv", "cuSeqlensOriKvOptional", kTables},
    {"aclnnSparseAttnSharedkv", "cuSeqlensCmpKvOptional", kTables},
    {"aclnnSparseAttnSharedkvMetadata", "cuSeqLensOriKvOptional", kPlan},
    {"aclnnSparseAttnSharedkvMetadata", "cuSeqLensCmpKvOptional", kPlan},
    {"aclnnSparseAttnSharedkvMetadata", "sequsedQOptional", kPlan},
};

// The documented values of modes, for each operator that has an argument of this name, or for one
// operator. Modes that choose how exactly a device computes (cubeMathType, innerPrecise) change
// nothing here, and how results are split (splitItem) follows from the lengths of the lists.
struct Mode {
  const char* op;  // "": all
  const char* argument;
  std::vector<const char*> values;
  const char* page;
};
const std::vector<const char*> kInferLayouts = {"BSH",       "BNSD",      "BSND",     "TND",
                                                "NTD",       "BNSD_BSND", "BSH_NBSD", "BSND_NBSD",
                                                "BNSD_NBSD", "TND_NTD",   "NTD_TND"};
const Mode kModes[] = {
    {"", "reduction", {"0", "1", "2"}, "aclnnMseLoss and all losses: none, mean, sum"},
    {"", "reductionOptional", {"none", "mean", "sum"}, "aclnnCrossEntropyLoss"},
    {"", "interpolationMode", {"0", "1", "2"}, "aclnnGridSampler2D: bilinear, nearest, bicubic"},
    {"", "paddingMode", {"0", "1", "2"}, "aclnnGridSampler2D: zeros, border, reflection"},
    {"aclnnAscendQuant", "roundMode", {"round", "floor", "ceil", "trunc"}, "aclnnAscendQuant"},
    {"aclnnAscendQuantV3", "roundMode", {"round", "floor", "ceil", "trunc"}, "aclnnAscendQuantV3"},
    {"aclnnTransQuantParamV3", "roundMode", {"0", "1"}, "aclnnTransQuantParamV3"},
    {"", "sparseMode", {"0", "1", "2", "3", "4"}, "aclnnFlashAttentionScore"},
    {"", "pseType", {"0", "1", "2", "3"}, "aclnnFlashAttentionScoreV2"},
    {"", "groupListType", {"0", "1"}, "aclnnGroupedMatmulV4: ends, counts"},
    {"aclnnGroupedMatmulV4", "groupType", {"-1", "0", "2"}, "none, rows, the inner dim"},
    {"aclnnGroupedMatmulV5", "groupType", {"-1", "0", "2"}, "none, rows, the inner dim"},
    {"", "actType", {"0", "1", "2", "4", "5"}, "aclnnGroupedMatmulV4"},
    {"aclnnScatter", "reduce", {"0", "1", "2"}, "aclnnScatter: none, add, multiply"},
    {"aclnnInplaceScatter", "reduce", {"0", "1", "2"}, "aclnnScatter"},
    {"aclnnEmbeddingBag", "mode", {"0", "1", "2"}, "aclnnEmbeddingBag: sum, mean, max"},
    {"", "compute_mode", {"0", "1", "2"}, "aclnnCdist"},
    {"", "approximate", {"0", "1"}, "aclnnGeGlu: none, tanh"},
    {"", "quantModeOptional", {"static", "dynamic"}, "aclnnSwiGluQuant"},
    {"", "expertTokensNumType", {"0", "1", "2"}, "aclnnMoeInitRoutingV3: ends, counts, pairs"},
    {"", "rowIdxType", {"0", "1"}, "aclnnMoeInitRoutingV3: gather, scatter"},
    {"aclnnMoeGatingTopK", "normType", {"0", "1"}, "aclnnMoeGatingTopK: softmax, sigmoid"},
    {"", "groupSelectMode", {"0", "1"}, "aclnnMoeGatingTopK: the best, the best two"},
    {"", "renorm", {"0", "1"}, "aclnnMoeGatingTopK"},
    {"", "dropPadMode", {"0", "1"}, "aclnnMoeFinalizeRoutingV2"},
    {"", "rotaryMode", {"half", "interleave", "quarter"}, "aclnnApplyRotaryPosEmbV2"},
    {"", "antiquantMode", {"0", "1"}, "aclnnFusedInferAttentionScore: of a column, of a row"},
    {"", "keyAntiquantMode", {"0", "1", "2", "3", "4", "5"}, "aclnnFusedInferAttentionScoreV2"},
    {"", "valueAntiquantMode", {"0", "1", "2", "3", "4", "5"}, "aclnnFusedInferAttentionScoreV2"},
    {"aclnnFlashAttentionScore", "inputLayout", {"BSH", "SBH", "BNSD", "BSND"}, "its page"},
    {"aclnnFlashAttentionScoreV2", "inputLayout", {"BSH", "SBH", "BNSD", "BSND"}, "its page"},
    {"aclnnFlashAttentionScoreV3", "inputLayout", {"BSH", "SBH", "BNSD", "BSND"}, "its page"},
    {"aclnnFlashAttentionScoreV4", "inputLayout", {"BSH", "SBH", "BNSD", "BSND"}, "its page"},
    {"aclnnFlashAttentionScoreGrad", "inputLayout", {"BSH", "SBH", "BNSD", "BSND"}, "its page"},
    {"aclnnFlashAttentionScoreGradV2", "inputLayout", {"BSH", "SBH", "BNSD", "BSND"}, "its page"},
    {"aclnnFlashAttentionScoreGradV3", "inputLayout", {"BSH", "SBH", "BNSD", "BSND"}, "its page"},
    {"aclnnFlashAttentionVarLenScore", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionVarLenScoreV2", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionUnpaddingScoreGrad", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionUnpaddingScoreGradV2", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionVarLenScoreV3", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionVarLenScoreV4", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionVarLenScoreV5", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionUnpaddingScoreGradV3", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionUnpaddingScoreGradV4", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionUnpaddingScoreGradV5", "inputLayout", {"TND"}, "its page"},
    {"aclnnFlashAttentionVarLenScoreV4", "softmaxOutLayout", {"same_as_input"}, "its page"},
    {"aclnnFlashAttentionVarLenScoreV5", "softmaxOutLayout", {"same_as_input"}, "its page"},
    {"aclnnFlashAttentionUnpaddingScoreGradV4", "softmaxInLayout", {"same_as_input"}, "its page"},
    {"aclnnFlashAttentionUnpaddingScoreGradV5", "softmaxInLayout", {"same_as_input"}, "its page"},
    {"aclnnRingAttentionUpdate", "inputLayoutOptional", {"TND", "SBH"}, "its page"},
    {"aclnnRingAttentionUpdateV2", "inputLayoutOptional", {"TND", "SBH"}, "its page"},
    {"aclnnRingAttentionUpdateV2", "inputSoftmaxLayoutOptional", {"SBH", "TND"}, "its page"},
    {"aclnnRopeWithSinCosCacheV2", "cacheMode", {"0", "1"}, "its page: parts, turns"},
    {"aclnnNsaSelectedAttentionInfer", "layoutOptional", {"BSH", "BSND", "TND"}, "its page"},
    {"aclnnNsaCompressAttentionInfer", "layoutOptional", {"TND", "BSND"}, "its page"},
    {"aclnnFusedInferAttentionScore",
     "inputLayout",
     {"BSH", "BNSD", "BSND", "BNSD_BSND"},
     "its page"},
    {"aclnnFusedInferAttentionScoreV2", "inputLayout", kInferLayouts, "its page"},
    {"aclnnFusedInferAttentionScoreV3", "inputLayout", kInferLayouts, "its page"},
    {"aclnnFusedInferAttentionScoreV4", "inputLayout", kInferLayouts, "its page"},
    {"aclnnIncreFlashAttention", "inputLayout", {"BSH", "BNSD", "BSND"}, "its page"},
    {"aclnnIncreFlashAttentionV2", "inputLayout", {"BSH", "BNSD", "BSND"}, "its page"},
    {"aclnnIncreFlashAttentionV3", "inputLayout", {"BSH", "BNSD", "BSND"}, "its page"},
    {"aclnnIncreFlashAttentionV4", "inputLayout", {"BSH", "BNSD", "BSND"}, "its page"},
    {"aclnnPromptFlashAttentionV3",
     "inputLayout",
     {"BSH", "BNSD", "BSND", "BNSD_BSND"},
     "its page"},
    {"aclnnDivMod", "mode", {"0", "1", "2"}, "aclnnDivMod: true, trunc, floor"},
    {"aclnnDivMods", "mode", {"0", "1", "2"}, "aclnnDivMods"},
    {"aclnnInplaceDivMod", "mode", {"0", "1", "2"}, "aclnnDivMod"},
    {"aclnnInplaceDivMods", "mode", {"0", "1", "2"}, "aclnnDivMods"},
    {"aclnnApplyFusedEmaAdam", "mode", {"0", "1"}, "its page: L2, decoupled decay"},
    {"aclnnGatherV3", "mode", {"0", "1"}, "its page"},
    {"aclnnLinalgQr", "mode", {"0", "1", "2"}, "its page: reduced, complete, r"},
    {"aclnnRoiAlign", "mode", {"avg", "max"}, "its page"},
    {"aclnnRotaryPositionEmbedding",
     "mode",
     {"0", "1", "2", "3"},
     "half, interleave, quarter, both"},
    {"aclnnRotaryPositionEmbeddingV2", "mode", {"0", "1", "2", "3"}, "the same"},
    {"aclnnRotaryPositionEmbeddingGrad", "mode", {"0", "1", "2", "3"}, "the same"},
    {"aclnnScatterReduce", "reduce", {"0", "1", "2", "3", "4"}, "sum, product, mean, max, min"},
    {"aclnnInplaceScatterReduce", "reduce", {"0", "1", "2", "3", "4"}, "aclnnScatterReduce"},
    {"aclnnScatterValue", "reduce", {"0", "1", "2"}, "aclnnScatterValue: none, add, multiply"},
    {"aclnnInplaceScatterValue", "reduce", {"0", "1", "2"}, "aclnnScatterValue"},
    {"", "reduceOp", {"sum"}, "aclnnMatmulAllReduce: sum alone"},
    {"aclnnLayerNormQuant", "quantMode", {"0", "1"}, "its page: static, dynamic"},
    {"aclnnMoeInitRoutingQuantV2", "quantMode", {"0", "1"}, "its page: static, dynamic"},
    {"aclnnMoeInitRoutingV3", "quantMode", {"-1", "0", "1"}, "its page: none, static, dynamic"},
    {"aclnnMoeDistributeDispatch", "quantMode", {"0", "2"}, "its page: none, dynamic"},
    {"aclnnMoeDistributeDispatchV2", "quantMode", {"0", "2"}, "its page: none, dynamic"},
    {"", "expertTokenNumsType", {"0", "1"}, "aclnnMoeDistributeDispatch: ends, counts"},
    {"", "updateType", {"0", "1"}, "aclnnAttentionUpdate"},
    {"", "dropPadModeOptional", {"0", "1"}, "aclnnMoeInitRoutingV2"},
    {"aclnnGroupedMatmulV2", "groupType", {"-1", "0", "2"}, "none, rows, the inner dim"},
    {"aclnnGroupedMatmulV3", "groupType", {"-1", "0", "2"}, "none, rows, the inner dim"},
    {"aclnnGroupedMatmulAdd", "groupType", {"2"}, "its page: the inner dim"},
    {"", "roundModeOptional", {"rint"}, "aclnnDynamicBlockQuant"},
    {"aclnnKvRmsNormRopeCache",
     "cacheModeOptional",
     {"Norm", "PA", "PA_BNSD", "PA_NZ"},
     "its page"},
    {"aclnnKvRmsNormRopeCacheV2",
     "cacheModeOptional",
     {"Norm", "PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"},
     "its page"},
    {"aclnnDequantRopeQuantKvcache", "cacheModeOptional", {"contiguous", "page"}, "its page"},
    {"aclnnMoeGatingTopKV2", "normType", {"0", "1", "2"}, "its page: softmax, sigmoid, softplus"},
    {"aclnnRotateQuant", "roundMode", {"rint", "round", "floor"}, "its page"},
    {"aclnnEinsum", "equation", {"abcd,abced->abce", "a,b->ab"}, "its page"},
    {"", "dequantMode", {"0", "1"}, "aclnnGroupedMatmulSwigluQuantV2: of columns, of groups"},
    {"aclnnFFN",
     "activation",
     {"relu", "gelu", "fastgelu", "silu", "geglu", "swiglu", "reglu"},
     "its page"},
    {"aclnnFFNV2",
     "activation",
     {"relu", "gelu", "fastgelu", "silu", "geglu", "swiglu", "reglu"},
     "its page"},
    {"aclnnFFNV3",
     "activation",
     {"relu", "gelu", "fastgelu", "silu", "geglu", "swiglu", "reglu"},
     "its page"},
    {"aclnnScatterPaKvCache", "cacheModeOptional", {"Norm", "PA_NZ"}, "its page"},
    {"aclnnGatherPaKvCache", "cacheMode", {"Norm", "PA_NZ"}, "its page"},
    {"aclnnScatterPaKvCache", "scatterModeOptional", {"None", "Alibi", "Rope", "Omni"}, "its page"},
    {"", "qInputLayout", {"TND", "BNSD"}, "aclnnBlockSparseAttention"},
    {"", "kvInputLayout", {"TND", "BNSD"}, "aclnnBlockSparseAttention"},
    {"", "swigluMode", {"0", "1"}, "aclnnDequantSwigluQuantV2"},
    {"", "approximateOptional", {"none", "tanh"}, "aclnnGeluMul"},
    {"aclnnMoeReRouting", "expertTokenNumType", {"0", "1"}, "its page: ends, counts"},
    {"aclnnMoeReRouting", "idxType", {"0", "1"}, "its page: gather, scatter"},
    {"aclnnMoeGatingTopKHash",
     "normType",
     {"0", "1", "2"},
     "softmax, sigmoid, square root of softplus"},
};

const Exception* FindException(const std::string& op, const std::string& argument) {
  for (const Exception& row : kExceptions) {
    if (row.op == op && row.argument == argument) return &row;
  }
  return nullptr;
}

// A value of the argument's kind, whatever it means.
Arg SomeValue(acl::ArgKind kind) {
  switch (kind) {
    case acl::ArgKind::kTensorList:
      return std::vector<at::Tensor>{at::ones({1})};
    case acl::ArgKind::kScalarList:
      return std::vector<at::Scalar>{at::Scalar(1)};
    case acl::ArgKind::kScalar:
      return at::Scalar(1);
    case acl::ArgKind::kIntArray:
    case acl::ArgKind::kFloatArray:
    case acl::ArgKind::kBoolArray:
      return std::vector<int64_t>{1};
    case acl::ArgKind::kString:
      return "text";
    default:
      return at::ones({1});
  }
}

// True where the operator refuses this value of the argument: another truth value, or an argument
// that it says the soft device lacks.
bool IsRefused(const std::string& op, const OperatorUse& use, uint32_t i, const Arg& value,
               std::string* said) {
  Args args = use.last_call;
  args[i] = value;
  PackedCall call(op.c_str(), args);
  const aclnnStatus status = call.Prepare();
  *said = TakeMessage();
  if (status == OK) aclDestroyAclOpExecutor(call.executor());
  return status == kReject &&
         (std::holds_alternative<bool>(value) || said->find("soft device") != std::string::npos);
}

struct Counts {
  int options = 0, given = 0, refused = 0;
  int values = 0, tried = 0, refused_values = 0;
};

Arg ValueOf(acl::ArgKind kind, const char* text) {
  if (kind == acl::ArgKind::kString) return text;
  return int64_t{std::atoi(text)};
}

// The documented values of a mode that no test has tried and the operator does not refuse.
void CheckModes(const acl::OperatorInfo& op, const OperatorUse& use, Counts& counts,
                std::vector<std::string>& missing) {
  const std::string name(op.name);
  for (uint32_t i = 0; i < op.arg_count && i < use.arguments.size(); ++i) {
    for (const Mode& mode : kModes) {
      if (op.args[i].name != mode.argument || (*mode.op != 0 && name != mode.op)) continue;
      for (const char* value : mode.values) {
        ++counts.values;
        std::string said;
        if (use.arguments[i].values.count(value) > 0) {
          ++counts.tried;
        } else if (IsRefused(name, use, i, ValueOf(op.args[i].kind, value), &said) ||
                   said.find(": " + std::string(mode.argument) + " must be") != std::string::npos) {
          ++counts.refused_values;
        } else if (FindException(name, mode.argument) == nullptr) {
          missing.push_back(name + " " + mode.argument + " was never " + value + " (" + mode.page +
                            ") " + said);
        }
      }
    }
  }
}

// The arguments of one operator that no test has tried, with what is missing.
void CheckOperator(const acl::OperatorInfo& op, const OperatorUse& use, Counts& counts,
                   std::vector<std::string>& missing) {
  const std::string name(op.name);
  for (uint32_t i = 0; i < op.arg_count && i < use.arguments.size(); ++i) {
    const acl::ArgInfo& argument = op.args[i];
    const OptionUse& tried = use.arguments[i];
    const std::string where = name + " " + std::string(argument.name);
    std::string why;
    if (argument.optional) {
      ++counts.options;
      std::string said;
      if (tried.given) {
        ++counts.given;
      } else if (IsRefused(name, use, i, SomeValue(argument.kind), &said)) {
        ++counts.refused;
      } else {
        why = " was never given, and is not refused: " + said;
      }
    } else if (argument.kind == acl::ArgKind::kBool) {
      ++counts.options;
      const bool yes = tried.values.count("true") + tried.values.count("1") > 0;
      const bool no = tried.values.count("false") + tried.values.count("0") > 0;
      std::string said;
      if (yes && no) {
        ++counts.given;
      } else if (IsRefused(name, use, i, !yes, &said)) {
        ++counts.refused;
      } else {
        why = yes ? " was never false" : " was never true";
      }
    }
    const bool excepted = FindException(name, std::string(argument.name)) != nullptr;
    if (!why.empty() && !excepted) missing.push_back(where + why);
    const bool option = argument.optional || argument.kind == acl::ArgKind::kBool;
    if (option && why.empty() && excepted) missing.push_back(where + " is no exception any more");
  }
}

class AllOptions : public testing::Environment {
 public:
  void SetUp() override { AfterEachSuccess() = CountOptions; }
  void TearDown() override {
    if (testing::UnitTest::GetInstance()->total_test_count() !=
        testing::UnitTest::GetInstance()->test_to_run_count()) {
      return;
    }
    Counts counts;
    std::vector<std::string> missing;
    for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
      const acl::OperatorInfo& op = acl::OperatorAt(i);
      const auto found = Census().find(std::string(op.name));
      if (found == Census().end()) continue;
      CheckOperator(op, found->second, counts, missing);
      CheckModes(op, found->second, counts, missing);
    }
    std::printf("options: %d of %zu operators; tried in calls that succeed: %d, refused: %d\n",
                counts.options, Census().size(), counts.given, counts.refused);
    std::printf("values of modes: %d; tried: %d, refused: %d\n", counts.values, counts.tried,
                counts.refused_values);
    for (const std::string& row : missing) ADD_FAILURE() << row;
  }
};

const auto* const kRegistered = testing::AddGlobalTestEnvironment(new AllOptions);

}  // namespace
}  // namespace acltape::opapi
