// The protocol between an experiment and the process of one of its sides, over a stream socket.
//
// The experiment sends one request at a time, and the process answers it. A message is a frame:
//
//   u32 magic 0x534C4341 ("ACLS")   u32 kind   u64 bytes of the body   body
//
//   request   body                                answered by
//   open      u32 version, text library           ready
//   prepare   list of i64 block bytes             done
//   perform   list of commands                    results
//
//   answer    body
//   ready     text: library and device
//   done      nothing
//   results   list of results: text digest, bytes
//   failed    text: why
//
// Numbers have the machine's byte order. A text, a sequence of bytes and a list begin with a u64
// length. A command is a u8 (its index in SideCommand) followed by its members in order; a tensor
// is written as a LoweredTensor. Both ends are the same executable, so there is only one version.
// All input is checked: a length that exceeds the message, a number that is not an enumerator, or
// bytes left over end the conversation with an Error that names the problem.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replayer/sides/call_side.h"

namespace acltape::replayer::sides {

enum class CallMessage : uint32_t {
  kOpen = 1,
  kPrepare = 2,
  kPerform = 3,
  kReady = 16,
  kDone = 17,
  kResults = 18,
  kFailed = 19,
};

struct CallFrame {
  CallMessage kind = CallMessage::kFailed;
  std::string body;
};

// The largest size of a frame's body.
constexpr uint64_t kMostFrameBytes = uint64_t{1} << 30;

// Returns false if the other end is gone; never raises SIGPIPE. Throws Error kDevice for other
// failures and for a body that is too long.
bool SendFrame(int socket, CallMessage kind, std::string_view body);
// Returns false at the end of the stream. Throws Error kDevice if the stream ends inside a frame or
// the frame is not valid.
bool ReceiveFrame(int socket, CallFrame& frame);

std::string EncodeOpen(const std::string& library);
std::string EncodeText(const std::string& text);  // ready, failed
std::string EncodePrepare(const std::vector<int64_t>& block_bytes);
std::string EncodePerform(const std::vector<SideCommand>& commands);
std::string EncodeResults(const std::vector<SideResult>& results);

// These throw Error kDevice, with one sentence, for an invalid body.
std::string DecodeOpen(std::string_view body);  // the library
std::string DecodeText(std::string_view body);
std::vector<int64_t> DecodePrepare(std::string_view body);
std::vector<SideCommand> DecodePerform(std::string_view body);
std::vector<SideResult> DecodeResults(std::string_view body);

}  // namespace acltape::replayer::sides
