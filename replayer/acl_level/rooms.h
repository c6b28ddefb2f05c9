// Gives each buffer of an ACL program a room: memory in an arena on the device or in pinned host
// memory. The arenas are planned once, before the replay. Of a buffer only the pages that calls
// touch have a room: a program may reserve 64 GiB of addresses and map a few of them.
//
// Two buffers share memory only if the host waits between the last use of one and the first use of
// the other, for every stream that used the first. With several streams the order of the calls
// alone proves nothing.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/acl/acl_program.h"
#include "replayer/device/device.h"

namespace acltape::replayer::acl_level {

class Rooms {
 public:
  // All memory is zero at the start.
  Rooms(Device& device, const analyzer::AclProgram& program);

  // True if the buffer is pinned host memory. Throws Error kTrace if no device work of the program
  // names the buffer, as Address does.
  bool IsHost(int64_t buffer_id) const { return Of(buffer_id).host; }
  // Returns where a byte of the buffer lies. All bytes of a tensor follow its first one.
  uint8_t* Address(int64_t buffer_id, int64_t offset) const;
  // Places a buffer at memory that the device library owns.
  void Adopt(int64_t buffer_id, void* data, int64_t bytes);

  int64_t device_bytes() const { return static_cast<int64_t>(device_arena_.bytes()); }

 private:
  struct Part {
    int64_t first = 0;  // bytes of the buffer
    int64_t end = 0;
    uint8_t* data = nullptr;
  };
  struct Room {
    std::vector<Part> parts;  // in order
    bool host = false;
  };
  const Room& Of(int64_t buffer_id) const;

  Block device_arena_;
  Block host_arena_;
  std::unordered_map<int64_t, Room> rooms_;
};

// Returns, by buffer id, the index of the first call at which the host knows that all work with the
// buffer has ended. If the host never knows, it is the number of calls.
std::unordered_map<int64_t, int64_t> EndsOfUse(const analyzer::AclProgram& program);

}  // namespace acltape::replayer::acl_level
