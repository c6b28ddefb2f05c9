// The process of one side: answers requests (call_protocol.h) until the other end is gone.
#pragma once

namespace acltape::replayer {

// On a connected stream socket. Returns the exit code of the process: 0 at the end of the stream.
// Throws Error kDevice for what is no message. What a request fails at is told to the other end.
int ServeCalls(int socket);

}  // namespace acltape::replayer
