/* Kernels of the AI CPU, as a program's own library has them: built for the host. */
#include <stddef.h>
#include <stdint.h>

int32_t launches = 0;

struct ScaleArgs {
  const float* from;
  float* to;
  int64_t count;
  const float* factor; /* a placeholder */
};

uint32_t RunScale(void* args) {
  const struct ScaleArgs* scale = args;
  ++launches;
  for (int64_t i = 0; i < scale->count; ++i) scale->to[i] = scale->from[i] * scale->factor[0];
  return 0;
}

uint32_t RunBroken(void* args) {
  (void)args;
  return 7;
}
