// Gradients of an enlarged image go back to the pixels that they came from.
#include "acl/acl.h"
#include "aclnnop/aclnn_upsample_nearest_2d_backward.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    const std::vector<float> gradient = Numbers(2 * 4 * 6);
    Tensor upstream({1, 2, 4, 6}, gradient), back({1, 2, 2, 3});
    RUN_OP(stream, aclnnUpsampleNearest2dBackward, upstream, Ints({4, 6}), Ints({1, 2, 2, 3}), 2.0,
           2.0, back);
    std::vector<double> expected(12);
    for (int i = 0; i < 48; ++i)
      expected[i / 24 * 6 + i % 24 / 6 / 2 * 3 + i % 6 / 2] += gradient[i];
    CheckNear(back.Read(stream), expected, 1e-6);
  }
  FreeWorkspaces();
  return EndSession(stream);
}
