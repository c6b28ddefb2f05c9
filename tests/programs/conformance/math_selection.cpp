// Choices by a mask and by indices, without the host looking at them.
#include "acl/acl.h"
#include "aclnnop/aclnn_gather.h"
#include "aclnnop/aclnn_gt_scalar.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_s_where.h"
#include "aclnnop/aclnn_scatter_add.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    const std::vector<float> x = Numbers(12), y = Numbers(12, 5);
    Tensor input({4, 3}, x), other({4, 3}, y), chosen({4, 3}), rows({2, 3}), picked({4, 1}),
        added({4, 3});
    Tensor mask(ACL_BOOL, {4, 3});
    Tensor two(ACL_INT64, {2}, std::vector<int64_t>{3, 0});
    Tensor columns(ACL_INT64, {4, 1}, std::vector<int64_t>{0, 2, 1, 1});
    aclScalar* zero = MakeScalar(0);
    RUN_OP(stream, aclnnGtScalar, input, zero, mask);
    RUN_OP(stream, aclnnSWhere, mask, input, other, chosen);
    RUN_OP(stream, aclnnIndexSelect, input, 0, two, rows);
    RUN_OP(stream, aclnnGather, input, 1, columns, picked);
    RUN_OP(stream, aclnnScatterAdd, other, 1, columns, picked, added);
    const std::vector<float> a = chosen.Read(stream), b = rows.Read(stream),
                             c = picked.Read(stream), d = added.Read(stream);
    const size_t column[] = {0, 2, 1, 1};
    for (size_t i = 0; i < 12; ++i) {
      CHECK(a[i] == (x[i] > 0 ? x[i] : y[i]));
      CHECK(d[i] == (i % 3 == column[i / 3] ? y[i] + x[i] : y[i]));
    }
    for (size_t i = 0; i < 6; ++i) CHECK(b[i] == x[(i < 3 ? 9 : 0) + i % 3]);
    for (size_t i = 0; i < 4; ++i) CHECK(c[i] == x[i * 3 + column[i]]);
    CHECK_ACL(aclDestroyScalar(zero));
  }
  FreeWorkspaces();
  return EndSession(stream);
}
