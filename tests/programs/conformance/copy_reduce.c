/* Sums, maxima and minima that arise while memory is copied. */
#include "acl/acl.h"
#include "session.h"

enum { kCount = 32 };

static void Reduce(aclrtReduceKind kind, const int32_t* expected, const int32_t* a,
                   const int32_t* b, aclrtStream stream) {
  void* to = Upload(a, kCount * 4);
  void* from = Upload(b, kCount * 4);
  int32_t back[kCount];
  CHECK_ACL(aclrtReduceAsync(to, from, kCount * 4, kind, ACL_INT32, stream, NULL));
  Download(back, to, sizeof(back), stream);
  CHECK(memcmp(back, expected, sizeof(back)) == 0);
  CHECK_ACL(aclrtFree(to));
  CHECK_ACL(aclrtFree(from));
}

int main(void) {
  aclrtStream stream = StartSession();
  int32_t a[kCount], b[kCount], sum[kCount], greater[kCount], lesser[kCount];
  for (int i = 0; i < kCount; ++i) {
    a[i] = i * 17 % 23 - 11;
    b[i] = i * 5 % 19 - 9;
    sum[i] = a[i] + b[i];
    greater[i] = a[i] > b[i] ? a[i] : b[i];
    lesser[i] = a[i] < b[i] ? a[i] : b[i];
  }
  Reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, sum, a, b, stream);
  Reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, greater, a, b, stream);
  Reduce(ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN, lesser, a, b, stream);
  return EndSession(stream);
}
