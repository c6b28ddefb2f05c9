// Plans of how the cores of a device share out an operator's work, which vLLM's plug-in computes
// once for all layers of a step.
#pragma once

#include <cstdint>

namespace acltape::opapi {

// How many int32 a plan has, as the plug-in's headers say (SAS_META_SIZE, QLI_META_SIZE).
inline constexpr int64_t kPlanSize = 1024;

}  // namespace acltape::opapi
