/*
 * Code of the programs that tests/opapi/program_writer.cpp writes: blocks of device memory with
 * bytes of the program's data file, arguments of operators, and the check of what an operator
 * wrote.
 */
#ifndef GENERATED_PROGRAM_H_
#define GENERATED_PROGRAM_H_

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

static unsigned char* data;
static aclrtStream stream;
static int calls, failures;
static const char* failed_call = ""; /* the one whose results are not looked at */

#define MOST_OBJECTS 4096
static void* blocks[MOST_OBJECTS];
static const aclTensor* tensors[MOST_OBJECTS];
static const aclTensorList* tensor_lists[MOST_OBJECTS];
static int block_count, tensor_count, list_count;

static void Must(int code, const char* what) {
  const char* message = aclGetRecentErrMsg();
  if (code == 0) return;
  fprintf(stderr, "%s returned %d: %s\n", what, code, message != NULL ? message : "");
  exit(1);
}

static void Begin(int argc, char** argv) {
  FILE* file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL) Must(1, "reading the data file");
  fseek(file, 0, SEEK_END);
  const size_t bytes = (size_t)ftell(file);
  rewind(file);
  data = (unsigned char*)malloc(bytes + 1);
  if (fread(data, 1, bytes, file) != bytes) Must(1, "reading the data file");
  fclose(file);
  Must(aclInit(NULL), "aclInit");
  Must(aclrtSetDevice(0), "aclrtSetDevice");
  Must(aclrtCreateStream(&stream), "aclrtCreateStream");
}

static int End(void) {
  Must(aclrtDestroyStream(stream), "aclrtDestroyStream");
  Must(aclrtResetDevice(0), "aclrtResetDevice");
  Must(aclFinalize(), "aclFinalize");
  free(data);
  printf("%d calls, %d failures\n", calls, failures);
  if (failures == 0) printf("ok\n");
  return failures == 0 ? 0 : 1;
}

static inline void* Block(size_t from, size_t bytes) {
  void* block = NULL;
  if (bytes == 0) return NULL;
  Must(aclrtMalloc(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  Must(aclrtMemcpy(block, bytes, data + from, bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
  blocks[block_count++] = block;
  return block;
}

static inline aclTensor* View(aclDataType type, int rank, const int64_t* sizes,
                              const int64_t* strides, int64_t offset, void* block,
                              int64_t elements) {
  aclTensor* made = aclCreateTensor(sizes, (uint64_t)rank, type, strides, offset, ACL_FORMAT_ND,
                                    &elements, 1, block);
  if (made == NULL) Must(1, "aclCreateTensor");
  tensors[tensor_count++] = made;
  return made;
}

/* A list owns its tensors. */
static inline aclTensorList* TensorList(int count, aclTensor** members) {
  aclTensorList* made = aclCreateTensorList((const aclTensor* const*)members, (uint64_t)count);
  tensor_count -= count;
  tensor_lists[list_count++] = made;
  return made;
}

static inline aclScalar* BoolScalar(int value) {
  bool flag = value != 0;
  return aclCreateScalar(&flag, ACL_BOOL);
}
static inline aclScalar* IntScalar(int64_t value) { return aclCreateScalar(&value, ACL_INT64); }
static inline aclScalar* RealScalar(double value) { return aclCreateScalar(&value, ACL_DOUBLE); }
static inline aclScalarList* ScalarList(int count, aclScalar** members) {
  return aclCreateScalarList((const aclScalar* const*)members, (uint64_t)count);
}
static inline aclIntArray* IntArray(int count, const int64_t* values) {
  return aclCreateIntArray(values, (uint64_t)count);
}
static inline aclFloatArray* FloatArray(int count, const float* values) {
  return aclCreateFloatArray(values, (uint64_t)count);
}
static inline aclBoolArray* BoolArray(int count, const bool* values) {
  return aclCreateBoolArray(values, (uint64_t)count);
}

static inline void Failed(const char* op, const char* what, int code) {
  const char* message = aclGetRecentErrMsg();
  printf("%s: %s returned %d: %s\n", op, what, code, message != NULL ? message : "");
  failed_call = op;
  ++failures;
}

/* Both phases and a wait. */
#define CALL(op, ...)                                                                 \
  do {                                                                                \
    uint64_t bytes = 0;                                                               \
    aclOpExecutor* executor = NULL;                                                   \
    void* workspace = NULL;                                                           \
    int code = op##GetWorkspaceSize(__VA_ARGS__, &bytes, &executor);                  \
    ++calls;                                                                          \
    failed_call = "";                                                                 \
    if (code != 0) {                                                                  \
      Failed(#op, "the first phase", code);                                           \
      break;                                                                          \
    }                                                                                 \
    if (bytes != 0) {                                                                 \
      Must(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc"); \
      blocks[block_count++] = workspace;                                              \
    }                                                                                 \
    code = op(workspace, bytes, executor, stream);                                    \
    if (code == 0) code = aclrtSynchronizeStream(stream);                             \
    if (code != 0) Failed(#op, "the second phase", code);                             \
  } while (0);

/* A block that the operator wrote holds these bytes of the data file. */
static inline void Expect(const char* op, const void* block, size_t from, size_t bytes) {
  if (bytes == 0 || strcmp(failed_call, op) == 0) return;
  unsigned char* found = (unsigned char*)malloc(bytes);
  Must(aclrtMemcpy(found, bytes, block, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
  size_t index = 0;
  while (index < bytes && found[index] == data[from + index]) ++index;
  if (index < bytes) {
    printf("%s: byte %zu of %zu is %d, expected %d\n", op, index, bytes, found[index],
           data[from + index]);
    ++failures;
  }
  free(found);
}

/* The handle of an output reports how many results there are. The array comes from C++'s new, so a
 * program in C leaves it. */
static inline void ExpectSizes(const char* op, const aclTensor* tensor, int rank,
                               const int64_t* sizes) {
  int64_t* found = NULL;
  uint64_t count = 0;
  if (strcmp(failed_call, op) == 0) return;
  Must(aclGetViewShape(tensor, &found, &count), "aclGetViewShape");
  if ((int)count == rank && memcmp(found, sizes, count * sizeof(*sizes)) == 0) return;
  printf("%s: an output of %d dims reports other sizes than expected\n", op, (int)count);
  ++failures;
}

static inline void EndCall(void) {
  while (tensor_count > 0) Must(aclDestroyTensor(tensors[--tensor_count]), "aclDestroyTensor");
  while (list_count > 0)
    Must(aclDestroyTensorList(tensor_lists[--list_count]), "aclDestroyTensorList");
  while (block_count > 0) Must(aclrtFree(blocks[--block_count]), "aclrtFree");
}

#endif /* GENERATED_PROGRAM_H_ */
