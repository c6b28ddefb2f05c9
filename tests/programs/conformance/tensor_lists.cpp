// Lists of tensors and scalars, and arrays of numbers: their sizes, and operators that take them.
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_foreach_mul_scalar_list.h"
#include "aclnnop/aclnn_permute.h"
#include "session.h"

int main() {
  CHECK_ACL(aclnnInit(nullptr));
  aclrtStream stream = StartSession();
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  void* x = UploadFloats(numbers.data(), 6);
  void* y = MallocDevice(12 * 4);
  const int64_t sizes[] = {2, 3}, wide[] = {2, 6}, turned[] = {6, 2};
  uint64_t count = 0;

  const aclTensor* twice[] = {MakeTensor(ACL_FLOAT, 2, sizes, x),
                              MakeTensor(ACL_FLOAT, 2, sizes, x)};
  aclTensorList* list = aclCreateTensorList(twice, 2);
  CHECK_ACL(aclGetTensorListSize(list, &count));
  CHECK(count == 2);
  aclTensor* result = MakeTensor(ACL_FLOAT, 2, wide, y);
  RUN_OP(stream, aclnnCat, list, 1, result);
  float back[12];
  DownloadFloats(back, y, 12, stream);
  for (int i = 0; i < 12; ++i) CHECK(back[i] == numbers[i / 6 * 3 + i % 3]);

  const int64_t order[] = {1, 0};
  aclIntArray* dims = aclCreateIntArray(order, 2);
  CHECK_ACL(aclGetIntArraySize(dims, &count));
  CHECK(count == 2);
  void* z = MallocDevice(12 * 4);
  aclTensor* transposed = MakeTensor(ACL_FLOAT, 2, turned, z);
  RUN_OP(stream, aclnnPermute, result, dims, transposed);
  float other[12];
  DownloadFloats(other, z, 12, stream);
  for (int i = 0; i < 12; ++i) CHECK(other[i] == back[i % 2 * 6 + i / 2]);

  const aclScalar* factors[] = {MakeScalar(2), MakeScalar(10)};
  aclScalarList* scalars = aclCreateScalarList(factors, 2);
  CHECK_ACL(aclGetScalarListSize(scalars, &count));
  CHECK(count == 2);
  const aclTensor* outs[] = {MakeTensor(ACL_FLOAT, 2, sizes, y),
                             MakeTensor(ACL_FLOAT, 2, sizes, static_cast<float*>(y) + 6)};
  aclTensorList* results = aclCreateTensorList(outs, 2);
  RUN_OP(stream, aclnnForeachMulScalarList, list, scalars, results);
  DownloadFloats(back, y, 12, stream);
  for (int i = 0; i < 12; ++i) CHECK(back[i] == numbers[i % 6] * (i < 6 ? 2 : 10));

  const float reals[] = {0.5f, 1};
  const bool flags[] = {true, false, true};
  aclFloatArray* floats = aclCreateFloatArray(reals, 2);
  aclBoolArray* bools = aclCreateBoolArray(flags, 3);
  CHECK_ACL(aclGetFloatArraySize(floats, &count));
  CHECK(count == 2);
  CHECK_ACL(aclGetBoolArraySize(bools, &count));
  CHECK(count == 3);
  CHECK_ACL(aclDestroyFloatArray(floats));
  CHECK_ACL(aclDestroyBoolArray(bools));
  CHECK_ACL(aclDestroyIntArray(dims));
  CHECK_ACL(aclDestroyTensorList(list));
  CHECK_ACL(aclDestroyTensorList(results));
  CHECK_ACL(aclDestroyScalarList(scalars));
  CHECK_ACL(aclDestroyTensor(result));
  CHECK_ACL(aclDestroyTensor(transposed));
  for (void* block : {x, y, z}) CHECK_ACL(aclrtFree(block));
  const int ended = EndSession(stream);
  CHECK_ACL(aclnnFinalize());
  return ended;
}
