// The facts about a process that the collector asks the system for when it meets the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "recorder/collector/spool.h"

namespace acltape::collector {

// `slot` and `generation`: the claim through which its records come.
LogOrigin OriginOf(uint32_t pid, uint32_t tid, uint32_t slot, uint32_t generation);

// The thread of a process that has the number `own_tid` in its innermost PID namespace, by its
// number in /proc; 0 when there is none.
uint32_t ThreadByOwnNumber(uint32_t pid, uint32_t own_tid);

// A rank as variables of launchers have it; nothing when the text is no number from 0 on.
std::optional<int64_t> ParseRank(std::string_view text);

}  // namespace acltape::collector
