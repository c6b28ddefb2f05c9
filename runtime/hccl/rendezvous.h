// How the ranks of a communicator find its meeting: by a socket whose name one of them gives to the
// others (HCL-02). The name is no file, so nothing is left behind when the process ends. Processes
// of one machine, user and network namespace find each other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hccl/hccl_types.h"
#include "runtime/hccl/meeting.h"

namespace acltape::hccl {

// Serves a meeting under the name, or under a new name that it returns when `name` is empty, until
// all ranks have it. A name that another meeting has is waited for, as long as HCCL_CONNECT_TIMEOUT
// says. "": the system refuses; `message` says why.
std::string Serve(const std::string& name, std::string* message);

// Asks for the meeting of this name as one of `ranks` ranks. With `waits` the server may begin
// later, else it must be there. `message` says what went wrong.
HcclResult AskFor(const std::string& name, bool waits, uint32_t ranks, uint32_t rank,
                  std::shared_ptr<Meeting>* meeting, std::string* message);

// The root information that carries such a name.
void WriteRootInfo(const std::string& name, HcclRootInfo* info);
// "" when it is none of the soft device's.
std::string ReadRootInfo(const HcclRootInfo& info);

}  // namespace acltape::hccl
