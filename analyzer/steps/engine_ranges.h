// The ranges that the recorder put around the work of an inference engine (meaning/engine_step.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/reader.h"

namespace acltape::analyzer {

// A range of an engine: its name, its thread, and its calls.
struct EngineRange {
  std::string name;
  int64_t thread_id = 0;
  int64_t first_call = 0;
  int64_t last_call = 0;

  bool Holds(const EngineRange& other) const {
    return thread_id == other.thread_id && first_call <= other.first_call &&
           other.last_call <= last_call;
  }
};
// All of them that have calls, in order of their first call, outer ones first.
std::vector<EngineRange> EngineRanges(const storage::Reader& trace);

}  // namespace acltape::analyzer
