// A call that fails gives a code (exact, see the rules), which aclrtGetLastError remembers
// (ERR-02), and one sentence for aclGetRecentErrMsg (ERR-01).
#pragma once

#include <string>

#include "acl/acl.h"

namespace acltape::device {

// Stores `code` as the thread's last failing code and the sentence as its newest message, followed
// by the code's name. Returns `code`.
[[gnu::format(printf, 2, 3)]] aclError Fail(aclError code, const char* format, ...);

// Stores the code alone. Success is not stored (ERR-02).
aclError SetLastError(aclError code);
aclError PeekLastError();
aclError TakeLastError();

void SetMessage(const char* text);
// The newest message, or null; cleared. Valid until the thread's next call of this function. A
// thread without a message of its own gets the newest failure of a task that no synchronisation has
// reported yet, once: frameworks ask in another thread than the one that meets the failure.
const char* TakeMessage();
// The newest message of this thread, which stays; "" where it has none.
const char* OwnMessage();
// Like TakeMessage, but never gives the failure of a task.
const char* TakeOwnMessage();
void NoteFailedTask(const char* text);
void FailedTaskIsReported();

// True: from now on all threads share one message (INIT-04, error message mode).
void ShareMessagesInProcess(bool shared);

// "107027 (stream is capturing)"; just the number when the code is not in the table.
std::string CodeText(aclError code);

}  // namespace acltape::device
