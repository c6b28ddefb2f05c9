// The same header by the name under which programs that bring operators of their own include it.
#ifndef ACLNN_UTIL_H_
#define ACLNN_UTIL_H_

#include "aclnnop/aclnn_util.h"

#endif  // ACLNN_UTIL_H_
