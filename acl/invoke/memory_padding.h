// The bytes past memory that an implementation of the interface allocates.
#pragma once

#include <cstddef>

namespace acltape::acl {

// Devices may read this many bytes after the end of a buffer (rule MEM-02).
inline constexpr size_t kMemoryPadding = 32;
// ... and those up to the end of a page, if no other block is there (rule MEM-13).
inline constexpr size_t kMemoryPage = size_t{2} << 20;

}  // namespace acltape::acl
