// The synchronous calls that a running capture refuses (CAP-30 to CAP-39).
#pragma once

#include "acl/acl.h"

namespace acltape::device {

class Context;

// True when an unsafe call of this thread in `context` is refused (CAP-32).
bool UnsafeCallRefused(const Context& context);

// The check of synchronous copies and fills: 0, or 107030 when a capture refuses them (CAP-35).
aclError CheckSynchronousCall(const Context& context, const char* call);

// CAP-33.
aclError ExchangeCaptureMode(aclmdlRICaptureMode* mode);

}  // namespace acltape::device
