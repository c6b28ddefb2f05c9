// Names that the recorder gives to ranges of an inference engine (recorder/agent/engine_steps.py);
// words after them say what was executed (meaning/engine_step.h).
#pragma once

#include <string_view>

namespace acltape::meaning {

inline constexpr std::string_view kEngineStep = "vllm.step";
inline constexpr std::string_view kEngineForward = "vllm.forward";

}  // namespace acltape::meaning
