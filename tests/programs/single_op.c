/*
 * One operator after the other, as the first samples of every ACL course do it: copy the inputs to
 * the device, ask for the workspace, launch, wait, copy the result back.
 *
 *   single_op
 */
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

/* A tensor with its device memory. */
typedef struct {
  aclTensor* tensor;
  void* device;
  size_t bytes;
} DeviceTensor;

static DeviceTensor Upload(aclDataType type, int rank, const int64_t* sizes, const void* host) {
  DeviceTensor made;
  made.bytes = aclDataTypeSize(type);
  for (int i = 0; i < rank; ++i) made.bytes *= (size_t)sizes[i];
  made.device = MallocDevice(made.bytes);
  if (host != NULL) {
    CHECK_ACL(aclrtMemcpy(made.device, made.bytes, host, made.bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  made.tensor = MakeTensor(type, rank, sizes, made.device);
  return made;
}

static void Download(const DeviceTensor* from, void* host) {
  CHECK_ACL(aclrtMemcpy(host, from->bytes, from->device, from->bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void Release(DeviceTensor* made) {
  CHECK_ACL(aclDestroyTensor(made->tensor));
  CHECK_ACL(aclrtFree(made->device));
}

static void Print(const char* name, const float* values, int count) {
  printf("%s:", name);
  for (int i = 0; i < count; ++i) printf(" %g", values[i]);
  printf("\n");
}

/* out = self + alpha * other, both phases spelled out. */
static void Add(aclrtStream stream) {
  const int64_t sizes[] = {4, 2};
  const float a[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const float b[8] = {1, 1, 1, 2, 2, 2, 3, 3};
  float result[8];
  DeviceTensor self = Upload(ACL_FLOAT, 2, sizes, a);
  DeviceTensor other = Upload(ACL_FLOAT, 2, sizes, b);
  DeviceTensor out = Upload(ACL_FLOAT, 2, sizes, NULL);
  aclScalar* alpha = MakeScalar(1.5f);

  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = NULL;
  CHECK_ACL(aclnnAddGetWorkspaceSize(self.tensor, other.tensor, alpha, out.tensor, &workspace_bytes,
                                     &executor));
  void* workspace = NULL;
  if (workspace_bytes > 0) workspace = MallocDevice(workspace_bytes);
  CHECK_ACL(aclnnAdd(workspace, workspace_bytes, executor, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));

  Download(&out, result);
  Print("add", result, 8);
  for (int i = 0; i < 8; ++i) CHECK(result[i] == a[i] + 1.5f * b[i]);
  if (workspace != NULL) CHECK_ACL(aclrtFree(workspace));
  CHECK_ACL(aclDestroyScalar(alpha));
  Release(&self);
  Release(&other);
  Release(&out);
}

/* A row times every row of a matrix. */
static void Mul(aclrtStream stream) {
  const int64_t sizes[] = {3, 2};
  const int64_t row_sizes[] = {2};
  const float a[6] = {1, 2, 3, 4, 5, 6};
  const float row[2] = {10, -1};
  float result[6];
  DeviceTensor self = Upload(ACL_FLOAT, 2, sizes, a);
  DeviceTensor other = Upload(ACL_FLOAT, 1, row_sizes, row);
  DeviceTensor out = Upload(ACL_FLOAT, 2, sizes, NULL);
  RUN_OP(stream, aclnnMul, self.tensor, other.tensor, out.tensor);
  CHECK_ACL(aclrtSynchronizeStream(stream));
  Download(&out, result);
  Print("mul", result, 6);
  for (int i = 0; i < 6; ++i) CHECK(result[i] == a[i] * row[i % 2]);
  Release(&self);
  Release(&other);
  Release(&out);
}

/* [2, 3] x [3, 4] in half precision. */
static void Matmul(aclrtStream stream) {
  const int64_t a_sizes[] = {2, 3};
  const int64_t b_sizes[] = {3, 4};
  const int64_t out_sizes[] = {2, 4};
  aclFloat16 a[6], b[12], result[8];
  float wide[8];
  for (int i = 0; i < 6; ++i) a[i] = aclFloatToFloat16((float)(i - 2));
  for (int i = 0; i < 12; ++i) b[i] = aclFloatToFloat16((float)(i % 5) * 0.5f);
  DeviceTensor self = Upload(ACL_FLOAT16, 2, a_sizes, a);
  DeviceTensor mat2 = Upload(ACL_FLOAT16, 2, b_sizes, b);
  DeviceTensor out = Upload(ACL_FLOAT16, 2, out_sizes, NULL);
  const int8_t keep_dtype = 0;
  RUN_OP(stream, aclnnMatmul, self.tensor, mat2.tensor, out.tensor, keep_dtype);
  CHECK_ACL(aclrtSynchronizeStream(stream));
  Download(&out, result);
  for (int i = 0; i < 8; ++i) wide[i] = aclFloat16ToFloat(result[i]);
  Print("matmul", wide, 8);
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 4; ++column) {
      float sum = 0;
      for (int k = 0; k < 3; ++k) {
        sum += aclFloat16ToFloat(a[row * 3 + k]) * aclFloat16ToFloat(b[k * 4 + column]);
      }
      CHECK(wide[row * 4 + column] == sum);
    }
  }
  Release(&self);
  Release(&mat2);
  Release(&out);
}

int main(void) {
  aclrtStream stream = NULL;
  uint32_t devices = 0;
  CHECK_ACL(aclInit(NULL));
  CHECK_ACL(aclrtGetDeviceCount(&devices));
  CHECK(devices >= 1);
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  Add(stream);
  Mul(stream);
  Matmul(stream);
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("single_op: passed\n");
  return 0;
}
