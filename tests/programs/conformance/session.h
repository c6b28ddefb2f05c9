/*
 * Code that the programs of this folder share besides ../sample.h: how each begins and ends, and
 * blocks of device memory with numbers in them. Plain C, which C++ reads too.
 */
#ifndef SESSION_H_
#define SESSION_H_

#include "../sample.h"

/* Initialises ACL and device 0; a stream of its own for the program. */
static inline aclrtStream StartSession(void) {
  aclrtStream stream = NULL;
  CHECK_ACL(aclInit(NULL));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  return stream;
}

/* Gives back all that StartSession took. The line "ok" says that every check held. */
static inline int EndSession(aclrtStream stream) {
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("ok\n");
  return 0;
}

/* A device block with the bytes of `from`. */
static inline void* Upload(const void* from, size_t bytes) {
  void* block = MallocDevice(bytes);
  CHECK_ACL(aclrtMemcpy(block, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  return block;
}

static inline void* UploadFloats(const float* from, int count) {
  return Upload(from, (size_t)count * sizeof(float));
}

/* The bytes of a device block, after all work of the stream. */
static inline void Download(void* to, const void* block, size_t bytes, aclrtStream stream) {
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK_ACL(aclrtMemcpy(to, bytes, block, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

static inline void DownloadFloats(float* to, const void* block, int count, aclrtStream stream) {
  Download(to, block, (size_t)count * sizeof(float), stream);
}

/* Each byte of a device block is `value`, after all work of the stream. */
static inline void CheckFilled(const void* block, size_t bytes, int value, aclrtStream stream) {
  unsigned char* back = (unsigned char*)malloc(bytes);
  Download(back, block, bytes, stream);
  for (size_t i = 0; i < bytes; ++i) CHECK(back[i] == value);
  free(back);
}

/* |a - b| is at most `distance`. */
static inline int Near(double a, double b, double distance) {
  return a - b <= distance && b - a <= distance;
}

#endif /* SESSION_H_ */
