// Random tensors and dropout: the same seed gives the same numbers.
#include "acl/acl.h"
#include "aclnnop/aclnn_dropout_do_mask.h"
#include "aclnnop/aclnn_dropout_gen_mask.h"
#include "aclnnop/aclnn_normal.h"
#include "aclnnop/aclnn_uniform.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    constexpr int kCount = 4096;
    Tensor uniform({kCount}), again({kCount}), normal({kCount});
    RUN_OP(stream, aclnnInplaceUniform, uniform, 2.0, 4.0, 7, 0);
    RUN_OP(stream, aclnnInplaceUniform, again, 2.0, 4.0, 7, 0);
    RUN_OP(stream, aclnnInplaceNormal, normal, 1.0f, 2.0f, 9, 0);
    const std::vector<float> u = uniform.Read(stream), n = normal.Read(stream);
    CHECK(again.Read(stream) == u);
    double mean = 0, spread = 0;
    for (int i = 0; i < kCount; ++i) {
      CHECK(u[i] >= 2 && u[i] <= 4);
      mean += n[i] / kCount;
    }
    for (float value : n) spread += (value - mean) * (value - mean) / kCount;
    CHECK(Near(mean, 1, 0.2) && Near(std::sqrt(spread), 2, 0.2));
    Tensor mask(ACL_UINT8, {kCount / 8}), dropped({kCount});
    RUN_OP(stream, aclnnDropoutGenMaskV2, Ints({kCount}), 0.25, 3, 0, ACL_FLOAT, mask);
    RUN_OP(stream, aclnnDropoutDoMask, uniform, mask, 0.25, dropped);
    int zeros = 0;
    const std::vector<float> d = dropped.Read(stream);
    for (int i = 0; i < kCount; ++i) {
      zeros += d[i] == 0;
      CHECK(d[i] == 0 || Near(d[i], u[i] / 0.75, 1e-5));
    }
    CHECK(Near(zeros, kCount / 4, kCount / 16));
  }
  FreeWorkspaces();
  return EndSession(stream);
}
