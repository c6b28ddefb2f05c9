// External records and waits of captures (EXT-01 to EXT-07).
#pragma once

#include "runtime/device/event.h"

namespace acltape::device {

// aclrtRecordEventWithFlag and aclrtStreamWaitEventWithFlag with the external flag.
aclError RecordExternal(Event& event, Stream& stream);
aclError WaitExternal(Stream& stream, Event& event);

}  // namespace acltape::device
