// The kernels of block.h for the instruction set that all code is compiled for.
#define ACLTAPE_BLOCK_KERNELS kBaselineKernels
#define ACLTAPE_BLOCK_SET "baseline"
#include "analyzer/metrics/block_kernels.inc"
