// Sorted values with their places, the greatest few, and the greatest one.
#include <algorithm>

#include "acl/acl.h"
#include "aclnnop/aclnn_argmax.h"
#include "aclnnop/aclnn_sort.h"
#include "aclnnop/aclnn_topk.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    constexpr int kCount = 40, kFew = 5;
    const std::vector<float> x = Numbers(kCount);
    Tensor input({kCount}, x), sorted({kCount}), places(ACL_INT64, {kCount});
    Tensor few({kFew}), few_places(ACL_INT64, {kFew}), largest(ACL_INT64, {1});
    RUN_OP(stream, aclnnSort, input, true, 0, true, sorted, places);
    RUN_OP(stream, aclnnTopk, input, kFew, 0, true, true, few, few_places);
    RUN_OP(stream, aclnnArgMax, input, 0, true, largest);
    std::vector<float> expected = x;
    std::sort(expected.begin(), expected.end(), std::greater<float>());
    const std::vector<float> found = sorted.Read(stream);
    const std::vector<int64_t> indices = places.Read<int64_t>(stream);
    CHECK(found == expected);
    for (int i = 0; i < kCount; ++i) CHECK(x[static_cast<size_t>(indices[i])] == expected[i]);
    CHECK(few.Read(stream) == std::vector<float>(expected.begin(), expected.begin() + kFew));
    CHECK(x[static_cast<size_t>(largest.Read<int64_t>(stream)[0])] == expected[0]);
  }
  FreeWorkspaces();
  return EndSession(stream);
}
