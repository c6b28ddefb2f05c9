// Operators whose result's size depends on the data: the program asks the tensor for it afterwards.
#include "acl/acl.h"
#include "aclnnop/aclnn_masked_select.h"
#include "aclnnop/aclnn_nonzero_v2.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    const std::vector<float> x = {0, 2, 0, -1, 5, 0};
    Tensor input({6}, x), kept({6}), places(ACL_INT64, {1, 6});
    Tensor mask(ACL_BOOL, {6}, std::vector<uint8_t>{0, 1, 0, 1, 1, 0});
    RUN_OP(stream, aclnnMaskedSelect, input, mask, kept);
    RUN_OP(stream, aclnnNonzeroV2, input, places);
    CHECK_ACL(aclrtSynchronizeStream(stream));
    int64_t* sizes = nullptr;
    uint64_t dims = 0;
    CHECK_ACL(aclGetViewShape(kept, &sizes, &dims));
    CHECK(dims == 1 && sizes[0] == 3);
    free(sizes);
    const std::vector<float> values = kept.Read(stream);
    CHECK(values[0] == 2 && values[1] == -1 && values[2] == 5);
    CHECK_ACL(aclGetViewShape(places, &sizes, &dims));
    CHECK(dims == 2 && sizes[1] == 3);
    free(sizes);
    const std::vector<int64_t> indices = places.Read<int64_t>(stream);
    CHECK(indices[0] == 1 && indices[1] == 3 && indices[2] == 4);
  }
  FreeWorkspaces();
  return EndSession(stream);
}
