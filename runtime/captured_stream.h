// Tells whether a stream is being captured. Private to the soft device.
#pragma once

#include "acl/acl.h"

namespace acltape {

// It is false for the default stream, which no capture takes.
inline bool IsCaptured(aclrtStream stream) {
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  aclmdlRI model = nullptr;
  return stream != nullptr && aclmdlRICaptureGetInfo(stream, &status, &model) == ACL_SUCCESS &&
         status == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
}

}  // namespace acltape
