// Which synchronous calls a running capture refuses (CAP-30 to CAP-39).
#pragma once

#include "acl/acl.h"

namespace acltape::device {

class Context;

// CAP-32: whether an unsafe call of this thread in `context` is refused.
bool UnsafeCallRefused(const Context& context);

// For synchronous copies and fills: 0, or 107030 when refused (CAP-35).
aclError CheckSynchronousCall(const Context& context, const char* call);

// CAP-33.
aclError ExchangeCaptureMode(aclmdlRICaptureMode* mode);

}  // namespace acltape::device
