// One step of AdamW on a parameter, and the same idea over a list of tensors.
#include "acl/acl.h"
#include "aclnnop/aclnn_apply_adam_w_v2.h"
#include "aclnnop/aclnn_foreach_addcdiv_scalar.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    constexpr int kCount = 20;
    const std::vector<float> start = Numbers(kCount), slope = Numbers(kCount, 3);
    Tensor parameter({kCount}, start), first({kCount}, std::vector<float>(kCount)),
        second({kCount}, std::vector<float>(kCount)), gradient({kCount}, slope);
    Tensor step({1}, {0});  // updates before this one
    RUN_OP(stream, aclnnApplyAdamWV2, parameter, first, second, nullptr, gradient, step, 0.1f, 0.9f,
           0.99f, 0.01f, 1e-8f, false, false);
    std::vector<double> expected, expected_first;
    for (int i = 0; i < kCount; ++i) {
      const double g = slope[i], m = 0.1 * g, v = 0.01 * g * g;
      expected_first.push_back(m);
      expected.push_back(start[i] * (1 - 0.1 * 0.01) -
                         0.1 * (m / 0.1) / (std::sqrt(v / 0.01) + 1e-8));
    }
    // Roundings of 1 - beta in single precision.
    CheckNear(first.Read(stream), expected_first, 1e-4);
    CheckNear(parameter.Read(stream), expected, 1e-4);

    std::vector<float> divisor = Numbers(kCount, 8);
    for (float& value : divisor) value += 3;
    Tensor by({kCount}, divisor), factor({1}, {0.5f}), result({kCount});
    const int64_t sizes[] = {kCount};
    const auto list = [&](const Tensor& of) {
      aclTensor* only = MakeTensor(ACL_FLOAT, 1, sizes, of.block());
      return aclCreateTensorList(&only, 1);
    };
    aclTensorList *x = list(gradient), *y = list(first), *z = list(by), *out = list(result);
    RUN_OP(stream, aclnnForeachAddcdivScalar, x, y, z, factor, out);
    expected.clear();
    const std::vector<float> m = first.Read(stream);
    for (int i = 0; i < kCount; ++i) expected.push_back(slope[i] + 0.5 * m[i] / divisor[i]);
    CheckNear(result.Read(stream), expected, 1e-6);
    for (aclTensorList* each : {x, y, z, out}) CHECK_ACL(aclDestroyTensorList(each));
  }
  FreeWorkspaces();
  return EndSession(stream);
}
