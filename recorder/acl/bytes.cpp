#include "recorder/acl/bytes.h"

#include "recorder/agent/memory.h"

namespace acltape::acl_agent {

bool Bytes::Reserve(size_t more) {
  size_t wanted = capacity < 1024 ? 1024 : capacity;
  while (wanted < size + more) wanted *= 2;
  const bool fits = wanted <= (size_t{1} << 20);
  void* larger = fits ? agent::TryResize(data, wanted) : nullptr;
  if (larger == nullptr) {
    lost = true;
    too_long |= !fits;
    return false;
  }
  data = static_cast<std::byte*>(larger);
  capacity = wanted;
  return true;
}

}  // namespace acltape::acl_agent
