// The bytes that every implementation of the interface keeps free after memory that it allocates.
#pragma once

#include <cstddef>

namespace acltape::acl {

// Devices may read this many bytes after the end of a buffer (rule MEM-02).
inline constexpr size_t kMemoryPadding = 32;

}  // namespace acltape::acl
