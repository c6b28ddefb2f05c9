// An operator of PyTorch that calls the ACL interface, as a device's plug-in does: sample::acl_add
// computes a + b on the device. Prints the sums.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstdio>
#include <cstdlib>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"

namespace {

aclrtStream g_stream = nullptr;

void Check(int code, const char* call) {
  if (code == 0) return;
  std::fprintf(stderr, "nested_program: %s returned %d\n", call, code);
  std::exit(1);
}

aclTensor* OnDevice(const at::Tensor& tensor, void** block) {
  const auto bytes = static_cast<size_t>(tensor.numel()) * 4;
  Check(aclrtMalloc(block, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  Check(aclrtMemcpy(*block, bytes, tensor.data_ptr(), bytes, ACL_MEMCPY_HOST_TO_DEVICE),
        "aclrtMemcpy");
  const int64_t shape[] = {tensor.numel()};
  const int64_t strides[] = {1};
  return aclCreateTensor(shape, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 1, *block);
}

at::Tensor AclAdd(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::zeros_like(a);
  void* blocks[3] = {};
  aclTensor* x = OnDevice(a, &blocks[0]);
  aclTensor* y = OnDevice(b, &blocks[1]);
  aclTensor* z = OnDevice(out, &blocks[2]);
  float one = 1;
  aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  Check(aclnnAddGetWorkspaceSize(x, y, alpha, z, &workspace, &executor), "aclnnAdd, phase one");
  Check(aclnnAdd(nullptr, 0, executor, g_stream), "aclnnAdd");
  Check(aclrtSynchronizeStream(g_stream), "aclrtSynchronizeStream");
  const auto bytes = static_cast<size_t>(out.numel()) * 4;
  Check(aclrtMemcpy(out.data_ptr(), bytes, blocks[2], bytes, ACL_MEMCPY_DEVICE_TO_HOST),
        "aclrtMemcpy");
  for (const aclTensor* tensor : {x, y, z}) aclDestroyTensor(tensor);
  aclDestroyScalar(alpha);
  for (void* block : blocks) aclrtFree(block);
  return out;
}

TORCH_LIBRARY(sample, library) { library.def("acl_add(Tensor a, Tensor b) -> Tensor"); }
TORCH_LIBRARY_IMPL(sample, CPU, library) { library.impl("acl_add", AclAdd); }

}  // namespace

int main() {
  Check(aclInit(nullptr), "aclInit");
  Check(aclrtSetDevice(0), "aclrtSetDevice");
  Check(aclrtCreateStream(&g_stream), "aclrtCreateStream");
  const auto add = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("sample::acl_add", "")
                       .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  const at::Tensor a = at::ones({4});
  for (int i = 0; i < 3; ++i) {
    std::printf("%g\n", add.call(a, at::full({4}, static_cast<double>(i))).sum().item<double>());
  }
  Check(aclrtDestroyStream(g_stream), "aclrtDestroyStream");
  Check(aclrtResetDevice(0), "aclrtResetDevice");
  Check(aclFinalize(), "aclFinalize");
  return 0;
}
