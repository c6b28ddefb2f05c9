// The kernels of block.h for x86-64-v3. The build compiles this file with that option.
#define ACLTAPE_BLOCK_KERNELS kV3Kernels
#define ACLTAPE_BLOCK_SET "x86-64-v3"
#include "analyzer/metrics/block_kernels.inc"
