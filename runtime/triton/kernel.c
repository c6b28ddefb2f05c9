/* The code of each Triton kernel on the soft device: calls the function of Python that interprets it.
 * docs/soft_device.md, "Triton kernels". */
#include <stdint.h>

struct Arguments {
  uint32_t (*call)(uint64_t launch);
  uint64_t launch;
  /* The arguments of the kernel itself follow; the launch knows them too. */
};

uint32_t AcltapeTritonKernel(void* args) {
  const struct Arguments* arguments = args;
  return arguments->call(arguments->launch);
}
