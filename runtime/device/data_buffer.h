// A buffer of the program: an address and its size (aclCreateDataBuffer).
#pragma once

#include <cstddef>

#include "acl/acl_base_rt.h"

struct aclDataBuffer {
  void* data;
  size_t bytes;
};
