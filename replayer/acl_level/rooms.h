// Gives each buffer of an ACL program a room: memory in an arena on the device or in pinned host
// memory. The arenas are planned once, before the replay.
//
// Two buffers share memory only if the host waits between the last use of one and the first use of
// the other, for every stream that used the first. With several streams the order of the calls
// alone proves nothing.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "analyzer/acl_program.h"
#include "replayer/device.h"

namespace acltape::replayer::acl_level {

class Rooms {
 public:
  // All memory is zero at the start.
  Rooms(Device& device, const analyzer::AclProgram& program);

  // The place of one buffer: an address in an arena.
  struct Room {
    uint8_t* data = nullptr;
    int64_t bytes = 0;
    bool host = false;
  };
  // Returns the room of a buffer. Throws Error kTrace if no device work of the program names the
  // buffer.
  const Room& Of(int64_t buffer_id) const;
  uint8_t* Address(int64_t buffer_id, int64_t offset) const { return Of(buffer_id).data + offset; }

  int64_t device_bytes() const { return static_cast<int64_t>(device_arena_.bytes()); }

 private:
  Block device_arena_;
  Block host_arena_;
  std::unordered_map<int64_t, Room> rooms_;
};

// Returns, by buffer id, the index of the first call at which the host knows that all work with the
// buffer has ended. If the host never knows, it is the number of calls.
std::unordered_map<int64_t, int64_t> EndsOfUse(const analyzer::AclProgram& program);

}  // namespace acltape::replayer::acl_level
