// Operations of libatb.so that adapters call as two functions of C, with tensors of the operators'
// interface: the first phase makes an operation, the second one issues it.
#include "aclnnop/aclnn_gather_pa_kv_cache.h"
#include "runtime/compat/atb_operation.h"

namespace atb {
namespace {

constexpr int8_t kRowsOfCaches = 1;  // else: caches in fractal layout

// An operator whose first phase has been called.
class PreparedCall final : public SoftOperation {
 public:
  explicit PreparedCall(const char* name) : SoftOperation(name, 0, 0) {}
  aclOpExecutor* executor = nullptr;

 private:
  const char* Lacks(const VariantPack&) const override { return "is issued by its own function"; }
  aclnnStatus Issue(const VariantPack&, aclrtStream) const override { return kInvalidParam; }
};

}  // namespace
}  // namespace atb

extern "C" {

// Reads the rows of sequences out of a cache in blocks, see aclnnGatherPaKvCache.
ACLTAPE_ATB atb::Status AtbPagedCacheLoadGetWorkspaceSize(
    const aclTensor* key_cache, const aclTensor* value_cache, const aclTensor* block_tables,
    const aclTensor* lengths, aclTensor* key, aclTensor* value, const aclTensor* starts,
    int8_t layout, bool lengths_are_sums, bool has_starts, uint64_t* workspace_size,
    atb::Operation** operation, atb::Context* context) {
  constexpr const char* kName = "PagedCacheLoadOperation";
  if (operation == nullptr || context == nullptr || workspace_size == nullptr) {
    return atb::kInvalidParam;
  }
  const atb::Status offered = atb::Offered(
      kName, {{layout == atb::kRowsOfCaches, "kvCacheCfg", static_cast<double>(layout)}});
  if (offered != atb::kNoError) return offered;
  auto* call = dynamic_cast<atb::PreparedCall*>(*operation);
  if (call == nullptr) *operation = call = new atb::PreparedCall(kName);
  char mode[] = "Norm";
  return aclnnGatherPaKvCacheGetWorkspaceSize(key_cache, value_cache, block_tables, lengths, key,
                                              value, has_starts ? starts : nullptr, mode,
                                              lengths_are_sums, workspace_size, &call->executor);
}

ACLTAPE_ATB atb::Status AtbPagedCacheLoad(void* workspace, uint64_t workspace_size,
                                          atb::Operation* operation, atb::Context* context) {
  auto* call = dynamic_cast<atb::PreparedCall*>(operation);
  if (call == nullptr || context == nullptr) return atb::kInvalidParam;
  return aclnnGatherPaKvCache(workspace, workspace_size, call->executor,
                              context->GetExecuteStream());
}

}  // extern "C"
