/* The getters of a tensor, and tensors that are made anew in place. */
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  float numbers[24];
  for (int i = 0; i < 24; ++i) numbers[i] = (float)i;
  void* x = UploadFloats(numbers, 24);
  void* y = MallocDevice(6 * 4);
  /* Every second column of the lower half of a matrix of 4 by 6. */
  const int64_t sizes[2] = {2, 3}, strides[2] = {6, 2}, storage[1] = {24}, dense[2] = {3, 1};
  aclTensor* view = aclCreateTensor(sizes, 2, ACL_FLOAT, strides, 12, ACL_FORMAT_ND, storage, 1, x);
  CHECK(view != NULL);
  int64_t* found = NULL;
  uint64_t count = 0;
  int64_t offset = 0;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  aclDataType type = ACL_DT_UNDEFINED;
  CHECK_ACL(aclGetViewShape(view, &found, &count));
  CHECK(count == 2 && found[0] == 2 && found[1] == 3);
  free(found);
  CHECK_ACL(aclGetViewStrides(view, &found, &count));
  CHECK(count == 2 && found[0] == 6 && found[1] == 2);
  free(found);
  CHECK_ACL(aclGetStorageShape(view, &found, &count));
  CHECK(count == 1 && found[0] == 24);
  free(found);
  CHECK_ACL(aclGetViewOffset(view, &offset));
  CHECK_ACL(aclGetFormat(view, &format));
  CHECK_ACL(aclGetDataType(view, &type));
  CHECK(offset == 12 && format == ACL_FORMAT_ND && type == ACL_FLOAT);
  void* address = NULL;
  CHECK_ACL(aclGetRawTensorAddr(view, &address));
  CHECK(address == x);
  aclTensor* result = MakeTensor(ACL_FLOAT, 2, sizes, x);
  CHECK_ACL(aclSetRawTensorAddr(result, y));
  aclScalar* one = MakeScalar(1);
  RUN_OP(stream, aclnnAdd, view, view, one, result);
  float back[6];
  DownloadFloats(back, y, 6, stream);
  for (int i = 0; i < 6; ++i) CHECK(back[i] == 2 * numbers[12 + i / 3 * 6 + i % 3 * 2]);
  /* The same object as another view. */
  CHECK_ACL(aclInitTensor(view, sizes, 2, ACL_FLOAT, dense, 0, ACL_FORMAT_ND, sizes, 2, x));
  RUN_OP(stream, aclnnAdd, view, view, one, result);
  DownloadFloats(back, y, 6, stream);
  for (int i = 0; i < 6; ++i) CHECK(back[i] == 2 * numbers[i]);
  CHECK_ACL(aclDestroyTensor(view));
  CHECK_ACL(aclDestroyTensor(result));
  CHECK_ACL(aclDestroyScalar(one));
  CHECK_ACL(aclrtFree(x));
  CHECK_ACL(aclrtFree(y));
  return EndSession(stream);
}
