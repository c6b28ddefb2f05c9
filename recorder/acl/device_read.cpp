// Facts of device memory, and its contents, for the torch plug-in, which has no way to the device
// of its own. It looks these functions up by name, because they are there only when the ACL level
// is recorded.
#include <cstdint>

#include "acl/acl.h"
#include "recorder/acl/handles.h"
#include "recorder/acl/memory.h"
#include "recorder/acl/real.h"
#include "recorder/acl/thread.h"
#include "recorder/agent/tape.h"

// True when the device can be read now: no capture is active, which refuses such copies.
extern "C" ACLTAPE_AGENT_API bool acltape_device_is_readable() {
  return acltape::acl_agent::ActiveCaptures() == 0;
}

// The devices that a thread of the program can wait for now, as bits: those on which the program
// has memory, none while a capture is active.
extern "C" ACLTAPE_AGENT_API uint64_t acltape_devices_to_wait_for() {
  using namespace acltape::acl_agent;
  return ActiveCaptures() == 0 ? DevicesWithMemory() : 0;
}

// The id of the buffer of the block that holds the address, 0 when no block of the interface does.
// The buffer's birth is recorded by then.
extern "C" ACLTAPE_AGENT_API uint64_t acltape_block_of(const void* address) {
  using namespace acltape::acl_agent;
  Thread* thread = Enter();
  Block block;
  if (thread == nullptr || !FindBlock(reinterpret_cast<uint64_t>(address), &block)) return 0;
  RecordFirstUse(*thread, block.buffer_id);
  return block.buffer_id;
}

// A copy that the program does not make and the trace does not show. It waits for no stream, so it
// is for contents that the host has put there. False while a capture is active, which refuses such
// copies, and when the device refuses it.
extern "C" ACLTAPE_AGENT_API bool acltape_read_device(void* to, const void* from, uint64_t bytes) {
  using namespace acltape::acl_agent;
  Thread* thread = Enter();
  if (thread == nullptr || ActiveCaptures() != 0) return false;
  using Function = decltype(&aclrtMemcpy);
  static Function copy = nullptr;  // found by name once; each thread finds the same
  if (copy == nullptr) copy = reinterpret_cast<Function>(RealByName("aclrtMemcpy"));
  if (copy == nullptr) return false;
  const Inside inside(*thread);
  return copy(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS;
}
