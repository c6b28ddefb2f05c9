/* The generated headers are plain C: this file holds nothing but their use from C. */
#include "acl/acl.h"
#include "acl/acl_prof.h"
#include "aclnn/aclnn_base.h"
#include "all_operator_headers.h"

_Static_assert(ACL_SUCCESS == 0 || sizeof(aclError) == 4, "error codes are int");

int CountModesFromC(void) {
  aclmdlRICaptureMode modes[] = {ACL_MODEL_RI_CAPTURE_MODE_GLOBAL,
                                 ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL,
                                 ACL_MODEL_RI_CAPTURE_MODE_RELAXED};
  return (int)(sizeof(modes) / sizeof(modes[0]));
}
