// Where the buffers of an ACL program lie in a replay: device memory and pinned host memory,
// planned once.
//
// Two buffers share memory only when the host has waited, between the last use of one and the
// first use of the other, for every stream that used the first: with several streams the order of
// the calls alone proves nothing.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "analyzer/acl_program.h"
#include "replayer/device.h"

namespace acltape::replayer {

class Rooms {
 public:
  // All memory is zero at first.
  Rooms(Device& device, const analyzer::AclProgram& program);

  struct Room {
    uint8_t* data = nullptr;
    int64_t bytes = 0;
    bool host = false;
  };
  // Throws Error kTrace when the program's device work never names the buffer.
  const Room& Of(int64_t buffer_id) const;
  uint8_t* Address(int64_t buffer_id, int64_t offset) const { return Of(buffer_id).data + offset; }

  int64_t device_bytes() const { return static_cast<int64_t>(device_arena_.bytes()); }

 private:
  Block device_arena_;
  Block host_arena_;
  std::unordered_map<int64_t, Room> rooms_;
};

// The index of the first call at which the host knows that all work with the buffer has ended; the
// number of calls where it never does. By buffer id.
std::unordered_map<int64_t, int64_t> EndsOfUse(const analyzer::AclProgram& program);

}  // namespace acltape::replayer
