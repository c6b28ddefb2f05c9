// libvllm_ascend_kernels.so, in place of the one beside vLLM's plug-in for Ascend devices, whose
// kernels are compiled for a device. The library path comes before the plug-in's own folder. The
// products with the matrices of adapters (LoRA) are issued as calls of operators, so that streams,
// captures and recordings see calls that they know; the other kernels name themselves.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_bgmv_expand.h"
#include "aclnnop/aclnn_bgmv_shrink.h"
#include "aclnnop/aclnn_sgmv_expand.h"
#include "aclnnop/aclnn_sgmv_shrink.h"

namespace vllm_ascend {

enum class AscendType { kHalf = 0, kBfloat16 = 1, kFloat = 2 };

namespace {

aclDataType DtypeOf(AscendType type) { return type == AscendType::kHalf ? ACL_FLOAT16 : ACL_BF16; }

// A dense tensor of the operators' interface over device memory.
class View {
 public:
  View(void* data, aclDataType dtype, const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
    handle_ = aclCreateTensor(sizes.data(), sizes.size(), dtype, strides.data(), 0, ACL_FORMAT_ND,
                              sizes.data(), sizes.size(), data);
  }
  ~View() { aclDestroyTensor(handle_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  aclTensor* get() const { return handle_; }

 private:
  aclTensor* handle_ = nullptr;
};

// The functions give nothing back, so a failure is said here.
void Say(const char* kernel, aclnnStatus status) {
  if (status == 0) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "acltape: %s failed (%d): %s\n", kernel, status,
               text != nullptr ? text : "");
}

// Both phases of an operator; the operators take no workspace.
template <typename First, typename Second, typename... Args>
void Issue(const char* kernel, void* stream, First first, Second second, Args... args) {
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  aclnnStatus status = first(args..., &workspace, &executor);
  if (status == 0) status = second(nullptr, workspace, executor, stream);
  Say(kernel, status);
}

void SayThatItCannotRun(const char* kernel) {
  std::fprintf(stderr,
               "acltape: %s is a kernel that was compiled for a device, and was not run; what it "
               "would have written is unchanged.\n",
               kernel);
}

}  // namespace

#define ACLTAPE_KERNEL __attribute__((visibility("default")))

// The matrix of the first adapter stands for all of them: callers do not say how many there are.

ACLTAPE_KERNEL void bgmv_shrink_impl(AscendType type, void* stream, void* x, void* weight,
                                     void* indices, uint32_t index_count, void* y, uint32_t tokens,
                                     uint32_t /*tokens_per_core*/, uint32_t columns, uint32_t rank,
                                     float scale) {
  const View from(x, DtypeOf(type), {tokens, columns}),
      matrix(weight, DtypeOf(type), {rank, columns});
  const View adapters(indices, ACL_INT64, {index_count}), to(y, ACL_FLOAT, {tokens, rank});
  Issue("bgmv_shrink", stream, aclnnBgmvShrinkGetWorkspaceSize, aclnnBgmvShrink, from.get(),
        matrix.get(), adapters.get(), to.get(), static_cast<double>(scale));
}

ACLTAPE_KERNEL void sgmv_shrink_impl(AscendType type, void* stream, void* x, void* weight,
                                     void* indices, uint32_t index_count, void* lengths,
                                     uint32_t length_count, void* y, uint32_t tokens,
                                     uint32_t /*tokens_per_core*/, uint32_t columns, uint32_t rank,
                                     float scale) {
  const View from(x, DtypeOf(type), {tokens, columns}),
      matrix(weight, DtypeOf(type), {rank, columns});
  const View adapters(indices, ACL_INT64, {index_count}), runs(lengths, ACL_INT64, {length_count});
  const View to(y, ACL_FLOAT, {tokens, rank});
  Issue("sgmv_shrink", stream, aclnnSgmvShrinkGetWorkspaceSize, aclnnSgmvShrink, from.get(),
        matrix.get(), adapters.get(), runs.get(), to.get(), static_cast<double>(scale));
}

ACLTAPE_KERNEL void bgmv_expand_impl(AscendType type, void* stream, void* x, void* weight,
                                     void* indices, uint32_t index_count, void* y, void* /*y_out*/,
                                     uint32_t tokens, uint32_t /*tokens_per_core*/, uint32_t rank,
                                     uint32_t size, uint32_t offset, uint32_t columns) {
  const View from(x, ACL_FLOAT, {tokens, rank}), matrix(weight, DtypeOf(type), {size, rank});
  const View adapters(indices, ACL_INT64, {index_count}), to(y, DtypeOf(type), {tokens, columns});
  Issue("bgmv_expand", stream, aclnnBgmvExpandGetWorkspaceSize, aclnnBgmvExpand, from.get(),
        matrix.get(), adapters.get(), to.get(), int64_t{offset}, int64_t{size});
}

ACLTAPE_KERNEL void sgmv_expand_impl(AscendType type, void* stream, void* x, void* weight,
                                     void* indices, uint32_t index_count, void* lengths,
                                     uint32_t length_count, void* y, void* /*y_out*/,
                                     uint32_t tokens, uint32_t /*tokens_per_core*/, uint32_t rank,
                                     uint32_t size, uint32_t offset, uint32_t columns) {
  const View from(x, ACL_FLOAT, {tokens, rank}), matrix(weight, DtypeOf(type), {size, rank});
  const View adapters(indices, ACL_INT64, {index_count}), runs(lengths, ACL_INT64, {length_count});
  const View to(y, DtypeOf(type), {tokens, columns});
  Issue("sgmv_expand", stream, aclnnSgmvExpandGetWorkspaceSize, aclnnSgmvExpand, from.get(),
        matrix.get(), adapters.get(), runs.get(), to.get(), int64_t{offset}, int64_t{size});
}

// The signatures of the others, as the plug-in names them; the arguments are not looked at.
ACLTAPE_KERNEL void batch_matmul_transpose_impl(void*, void*, void*, void*, void*, uint32_t) {
  SayThatItCannotRun("batch_matmul_transpose");
}

ACLTAPE_KERNEL void get_masked_input_and_mask_impl(void*, void*, void*, void*, int64_t, int64_t,
                                                   int64_t, int64_t, int64_t, int64_t, uint32_t,
                                                   uint32_t) {
  SayThatItCannotRun("get_masked_input_and_mask");
}

using Address = void*;
ACLTAPE_KERNEL void mla_preprocess_impl(Address, Address, Address, Address, Address, Address,
                                        Address, Address, Address, Address, Address, Address,
                                        Address, Address, Address, Address, Address, Address,
                                        Address, Address, Address, Address, Address, Address,
                                        Address, Address, Address, Address, Address, Address,
                                        Address, uint32_t) {
  SayThatItCannotRun("mla_preprocess");
}

}  // namespace vllm_ascend
