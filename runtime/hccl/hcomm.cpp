// libhcomm.so: the functions of communication that programs look up there.
#include "runtime/hccl/export.h"

extern "C" HcclResult SoftHcclGroupStart(void);
extern "C" HcclResult SoftHcclGroupEnd(void);

ACLTAPE_HCCL HcclResult HcclGroupStart(void) { return SoftHcclGroupStart(); }
ACLTAPE_HCCL HcclResult HcclGroupEnd(void) { return SoftHcclGroupEnd(); }
