#include "recorder/acl/messages.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "meaning/last_errors.h"
#include "recorder/acl/thread.h"

namespace acltape::acl_agent {
namespace {

// The longest text that a trace keeps. The program gets it whole.
constexpr size_t kLongestText = 4096;

__thread char* t_waiting = nullptr;  // the newest text, for which the program did not ask so far
__thread char* t_given = nullptr;    // the text that the program was given last

void Replace(char*& text, char* by) {
  free(text);
  text = by;
}

decltype(&::aclGetRecentErrMsg) RealMessage() {
  return reinterpret_cast<decltype(&::aclGetRecentErrMsg)>(
      Real(MessageFunctionNumber(/*message_function=*/0)));
}

void WriteText(agent::Tape& tape, uint64_t call_id, const char* text) {
  const size_t bytes = strnlen(text, kLongestText);
  uint32_t total = 0;
  auto* record = tape.Begin<wire::FailureTextRecord>(wire::RecordKind::kFailureText,
                                                     static_cast<uint32_t>(bytes + 1), &total);
  if (record == nullptr) return;
  record->call_id = call_id;
  auto* copy = reinterpret_cast<char*>(record + 1);
  memcpy(copy, text, bytes);
  copy[bytes] = '\0';
  tape.End(total);
}

}  // namespace

void RecordMessage(Thread& thread, uint64_t call_id, const char* function) {
  if (meaning::TellsOfEarlierFailure(function)) return;
  const auto real = RealMessage();
  if (real == nullptr) return;
  const char* text = nullptr;
  {
    const Inside inside(thread);
    text = real();
  }
  if (text == nullptr || text[0] == '\0') return;
  WriteText(*thread.tape, call_id, text);
  if (char* kept = strdup(text); kept != nullptr) Replace(t_waiting, kept);
}

void ForgetMessages() {
  Replace(t_waiting, nullptr);
  Replace(t_given, nullptr);
}

}  // namespace acltape::acl_agent

extern "C" {

// The library's own text is newer than the one that waits, if there is one: a failure that was not
// recorded gave it.
const char* aclGetRecentErrMsg(void) {
  using namespace acltape::acl_agent;
  const auto real = RealMessage();
  const char* text = real != nullptr ? real() : nullptr;
  if (text != nullptr && text[0] != '\0') {
    Replace(t_waiting, nullptr);
    return text;
  }
  if (t_waiting == nullptr) return text;
  Replace(t_given, t_waiting);
  t_waiting = nullptr;
  return t_given;
}

}  // extern "C"

namespace acltape::acl_agent {

const WrappedFunction kMessageFunctions[] = {
    {"aclGetRecentErrMsg", reinterpret_cast<void*>(&::aclGetRecentErrMsg)},
    {nullptr, nullptr},
};

}  // namespace acltape::acl_agent
