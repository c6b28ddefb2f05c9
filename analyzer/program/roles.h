// The role of each buffer in the program, found from the leaves that use it.
//
//   parameter   a tensor over it was recorded as a parameter
//   state       written in place by several steps, or by one step and read by a later one
//   input       read before anything writes it, or filled by a source
//   host        brought to the host and read by nothing else
//   output      written and never read
//   activation  everything else that a leaf touches
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "analyzer/program/program.h"

namespace acltape::storage {
class Results;
}

namespace acltape::analyzer {

enum class BufferRole : uint8_t { kParameter, kState, kInput, kHost, kOutput, kActivation };
std::string_view BufferRoleName(BufferRole role);

// The roles by buffer id. Buffers that no leaf reads or writes have no role. Steps must be
// assigned.
std::map<int64_t, BufferRole> ClassifyBuffers(const Program& program);

void WriteRoles(const std::map<int64_t, BufferRole>& roles, storage::Results& results);

}  // namespace acltape::analyzer
