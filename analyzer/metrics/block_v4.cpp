// The kernels of block.h for x86-64-v4. The build compiles this file with that option.
#define ACLTAPE_BLOCK_KERNELS kV4Kernels
#define ACLTAPE_BLOCK_SET "x86-64-v4"
#include "analyzer/metrics/block_kernels.inc"
