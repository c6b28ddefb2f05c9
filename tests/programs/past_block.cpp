// Reads on past a block of device memory, as programs do whose tensor has a wider dtype than the
// data that they brought: past_block BYTES ELEMENTS. A device gives what lies there (rule
// MEM-13).
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_neg.h"

static void Check(int code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s: %d: %s\n", what, code, aclGetRecentErrMsg());
  std::exit(1);
}

int main(int, char** words) {
  const size_t bytes = std::strtoul(words[1], nullptr, 10);
  const int64_t elements = std::strtol(words[2], nullptr, 10);
  const int64_t stride = 1;
  Check(aclInit(nullptr), "aclInit");
  Check(aclrtSetDevice(0), "aclrtSetDevice");
  aclrtStream stream = nullptr;
  Check(aclrtCreateStream(&stream), "aclrtCreateStream");
  void *given = nullptr, *made = nullptr;
  Check(aclrtMalloc(&given, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  Check(aclrtMalloc(&made, elements * 4, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  std::vector<float> host(elements, 1.5f);
  Check(aclrtMemcpy(given, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
  for (int i = 0; i < 4; ++i) {
    aclTensor* self =
        aclCreateTensor(&elements, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &elements, 1, given);
    aclTensor* out =
        aclCreateTensor(&elements, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &elements, 1, made);
    uint64_t workspace = 0;
    aclOpExecutor* executor = nullptr;
    Check(aclnnNegGetWorkspaceSize(self, out, &workspace, &executor), "aclnnNegGetWorkspaceSize");
    Check(aclnnNeg(nullptr, 0, executor, stream), "aclnnNeg");
    Check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    aclDestroyTensor(self);
    aclDestroyTensor(out);
  }
  Check(aclrtMemcpy(host.data(), elements * 4, made, elements * 4, ACL_MEMCPY_DEVICE_TO_HOST),
        "aclrtMemcpy");
  std::printf("%g\n", host[0]);
  Check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  Check(aclFinalize(), "aclFinalize");
}
