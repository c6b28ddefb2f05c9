// Complex numbers of two halves: made from their parts, and their real parts read. First by a plain
// call, and then as a graph that is executed with new parts.
#include "acl/acl.h"
#include "aclnnop/aclnn_complex.h"
#include "aclnnop/aclnn_real.h"
#include "tensors.h"

namespace {

std::vector<aclFloat16> Halves(int count, int seed) {
  std::vector<aclFloat16> halves;
  for (float number : Numbers(count, seed)) halves.push_back(aclFloatToFloat16(number));
  return halves;
}

void Upload(const Tensor& tensor, const std::vector<aclFloat16>& halves) {
  const size_t bytes = halves.size() * sizeof(aclFloat16);
  CHECK_ACL(aclrtMemcpy(tensor.block(), bytes, halves.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
}

}  // namespace

int main() {
  aclrtStream stream = StartSession();
  {
    constexpr int kCount = 12;
    Tensor real(ACL_FLOAT16, {3, 4}), imaginary(ACL_FLOAT16, {3, 4});
    Tensor numbers(ACL_COMPLEX32, {3, 4}), parts(ACL_FLOAT16, {3, 4});
    const auto run = [&] {
      RUN_OP(stream, aclnnComplex, real, imaginary, numbers);
      RUN_OP(stream, aclnnReal, numbers, parts);
    };
    aclmdlRI model = nullptr;
    for (int round = 0; round < 3; ++round) {
      const auto first = Halves(kCount, 1 + round), second = Halves(kCount, 11 + round);
      Upload(real, first);
      Upload(imaginary, second);
      if (round == 1) {
        CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
        run();
        CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
      }
      if (round == 0) {
        run();
      } else {
        CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
      }
      const auto found = numbers.Read<aclFloat16>(stream);
      const auto found_parts = parts.Read<aclFloat16>(stream);
      for (size_t i = 0; i < kCount; ++i) {
        CHECK(found[2 * i] == first[i] && found[2 * i + 1] == second[i]);
        CHECK(found_parts[i] == first[i]);
      }
    }
    CHECK_ACL(aclmdlRIDestroy(model));
  }
  FreeWorkspaces();
  return EndSession(stream);
}
