// Descriptors 0, 1 and 2 of a process that was started without them.
#pragma once

namespace acltape::cli {

// Takes the numbers of standard streams that are closed, so that no file that acltape opens gets
// one of them: a sentence on standard error would then be written into the trace, or into the
// memory that is shared with the recorded program. Reading and writing such a stream fails as
// before, and the recorded program finds it closed.
void ReserveStandardStreams();

}  // namespace acltape::cli
