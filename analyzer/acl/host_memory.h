// The contents that pinned host memory had when a program executed its graphs. The copies from the
// host that a graph holds read them at that time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/acl/acl_program.h"

namespace acltape::analyzer {

class HostMemory {
 public:
  using Content = std::shared_ptr<const std::vector<uint8_t>>;

  // `payload` gives the bytes of a digest, or null if the trace does not hold them.
  HostMemory(const AclProgram& program,
             const std::function<Content(const std::string& digest)>& payload);

  // The content of a buffer from its first byte to the last one that the recording holds. Null if
  // it holds none. `execution` is an index in AclProgram::calls.
  Content At(int64_t execution, int64_t buffer) const;

 private:
  std::map<int64_t, std::map<int64_t, Content>> images_;  // by execution and buffer
};

}  // namespace acltape::analyzer
