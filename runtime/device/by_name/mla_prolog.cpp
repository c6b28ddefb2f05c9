// The steps before an attention over compressed keys (MlaProlog) by the operator's name, as
// aclnnMlaProlog.
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_mla_prolog.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

constexpr int kLatentGiven = 12;   // inputs that every call has
constexpr int kLatentInputs = 19;  // seven scales of quantised forms follow them
constexpr int kLatentCaches =
    10;  // input of the cache of keys and values; that of the positions follows
constexpr int kLatentResults = 2;

// (token_x, ..., kv_cache, kr_cache, scales) to (query, query_rope, kv_cache, kr_cache). The
// adapter's documentation says that the caches are changed in place, and its results have caches of
// their own; here both hold the new rows.
aclError PrepareLatentAttention(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, kLatentGiven, 4));
  OperatorArguments own;
  std::vector<aclTensor*> given(kLatentInputs, nullptr);
  for (int i = 0; i < kLatentInputs; ++i) {
    if (i >= kLatentGiven && !call.inputs.Has(i)) continue;
    if (i >= kLatentGiven) {
      ACLTAPE_RETURN_IF_FAILED(CheckInput(call, i, ("input " + std::to_string(i)).c_str()));
    }
    given[i] = own.Whole(call.inputs, i);
  }
  std::vector<aclTensor*> results;
  for (int i = 0; i < 4; ++i) {
    results.push_back(own.Whole(call.outputs, i));
  }
  for (int i = 0; i < 2; ++i) {
    ACLTAPE_RETURN_IF_FAILED(
        CheckShape(call, kLatentResults + i, call.inputs.Shape(kLatentCaches + i)));
    ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, call.inputs.descs[kLatentCaches + i]->type,
                                           call.outputs.descs[kLatentResults + i]->type));
  }
  std::string mode = call.Text("cache_mode");
  if (mode.empty()) mode = "PA_BSND";
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnMlaPrologGetWorkspaceSize)>(
      call, "aclnnMlaProlog", given[0], given[1], given[2], given[3], given[4], given[5], given[6],
      given[7], given[8], given[9], given[kLatentCaches], given[kLatentCaches + 1], given[12],
      given[13], given[14], given[15], given[16], given[17], given[18],
      RealOf(call, "rmsnorm_epsilon_cq", 1e-5), RealOf(call, "rmsnorm_epsilon_ckv", 1e-5),
      mode.data(), results[0], results[1]));
  for (int i = 0; i < 2; ++i) {
    const bool same = call.inputs.buffers[kLatentCaches + i]->data ==
                      call.outputs.buffers[kLatentResults + i]->data;
    if (same || ElementsOf(call.inputs.Shape(kLatentCaches + i)) == 0) continue;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
        call, "aclnnInplaceCopy", results[kLatentResults + i], given[kLatentCaches + i]));
  }
  return ClearPadding(call);
}

constexpr NamedOperator kLatentAttention[] = {
    {"MlaProlog", PrepareLatentAttention},
};

}  // namespace

NamedTable LatentAttentionByName() { return kLatentAttention; }

}  // namespace acltape::device
