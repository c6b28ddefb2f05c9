#include "recorder/agent/native_stack.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/process.h"

namespace acltape::agent {

// Return addresses with their callers, by open addressing.
struct NativeNodes {
  struct Node {
    const void* address;
    uint32_t outer_id;
    uint32_t place_id;  // 0: the address lies in no file
  };
  Node* nodes;
  size_t count;
  size_t capacity;  // a power of two
};

namespace {

constexpr int kMaxDepth = 128;
constexpr size_t kFirstCapacity = 256;

size_t Hash(const void* address, uint32_t outer_id) {
  return base::SpreadPair(reinterpret_cast<uint64_t>(address), outer_id);
}

// The entry of the address and its callers, or the free entry where it belongs.
NativeNodes::Node& EntryOf(NativeNodes& table, const void* address, uint32_t outer_id) {
  for (size_t slot = Hash(address, outer_id);; ++slot) {
    NativeNodes::Node& node = table.nodes[slot & (table.capacity - 1)];
    if (node.address == nullptr || (node.address == address && node.outer_id == outer_id)) {
      return node;
    }
  }
}

bool Grow(NativeNodes& table) {
  NativeNodes larger{nullptr, table.count,
                     table.capacity == 0 ? kFirstCapacity : 2 * table.capacity};
  larger.nodes = static_cast<NativeNodes::Node*>(
      AllocateZeros(larger.capacity, sizeof(NativeNodes::Node), wire::LeftOut::kLines));
  if (larger.nodes == nullptr) return false;
  for (size_t i = 0; i < table.capacity; ++i) {
    const NativeNodes::Node& node = table.nodes[i];
    if (node.address != nullptr) EntryOf(larger, node.address, node.outer_id) = node;
  }
  free(table.nodes);
  table = larger;
  return true;
}

// Returns the id of the place right after which `address` lies, or that of its callers if the place
// is not known.
uint32_t NodeOf(Tape& tape, NativeNodes& table, const void* address, uint32_t outer_id) {
  if (2 * (table.count + 1) > table.capacity && !Grow(table)) return outer_id;
  NativeNodes::Node& node = EntryOf(table, address, outer_id);
  if (node.address == nullptr) {
    // The return address follows the call, which may be the last instruction of its line.
    node = {address, outer_id,
            AnnounceAddress(tape, static_cast<const char*>(address) - 1, outer_id,
                            wire::kPlaceUsers | wire::kPlaceWhole)};
    ++table.count;
  }
  return node.place_id != 0 ? node.place_id : outer_id;
}

}  // namespace

uint32_t AnnounceAddress(Tape& tape, const char* address_in_call, uint32_t outer_id,
                         uint32_t flags) {
  Dl_info info;
  link_map* object = nullptr;
  if (dladdr1(address_in_call, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 ||
      object == nullptr) {
    return 0;
  }
  const char* file = object->l_name;
  if (file == nullptr || *file == '\0') file = ProgramPath();
  if (*file == '\0') return 0;
  char address[32];
  snprintf(address, sizeof(address), "%lx",
           reinterpret_cast<unsigned long>(address_in_call) - object->l_addr);
  const char* texts[] = {file, address};
  const uint32_t place_id = tape.NextHandleId();
  tape.WriteWithTexts(
      wire::PlaceRecord{
          {wire::RecordKind::kPlace, 0, 0}, place_id, 0, outer_id, flags | wire::kPlaceAddress},
      texts, 2);
  return place_id;
}

uint32_t NativeStack(Tape& tape, const void* caller) {
  if (tape.native_nodes == nullptr) {
    tape.native_nodes =
        static_cast<NativeNodes*>(AllocateZeros(1, sizeof(NativeNodes), wire::LeftOut::kLines));
    if (tape.native_nodes == nullptr) return 0;
  }
  void* addresses[kMaxDepth];
  const int depth = backtrace(addresses, kMaxDepth);
  int innermost = 0;  // the frames before it are the recorder's own
  while (innermost < depth && addresses[innermost] != caller) ++innermost;
  if (innermost == depth) return NodeOf(tape, *tape.native_nodes, caller, 0);
  uint32_t place_id = 0;
  for (int i = depth; i-- > innermost;) {
    place_id = NodeOf(tape, *tape.native_nodes, addresses[i], place_id);
  }
  return place_id;
}

void PrepareNativeStacks() {
  void* address[1];
  backtrace(address, 1);
}

void FreeNativeNodes(NativeNodes* nodes) {
  if (nodes == nullptr) return;
  free(nodes->nodes);
  free(nodes);
}

}  // namespace acltape::agent
