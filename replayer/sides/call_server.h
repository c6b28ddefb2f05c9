// The main loop of the process of one side. It answers requests (call_protocol.h) until the other
// end is gone.
#pragma once

namespace acltape::replayer::sides {

// `socket` is a connected stream socket. Returns the exit code of the process: 0 at the end of the
// stream. Throws Error kDevice if the input is not a message. If a request fails, the other end is
// told the reason.
int ServeCalls(int socket);

}  // namespace acltape::replayer::sides
