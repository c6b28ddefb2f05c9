// The rule which ranges of a program are its steps.
#pragma once

#include <string_view>

#include "meaning/engine_names.h"

namespace acltape::wire {

// The name of a range that the program itself marks as a step (recorder/ranges/acltape.h).
inline constexpr std::string_view kMarkedStep = "acltape.step";

// PyTorch runs the steps of its optimizers in ranges of names that begin so.
inline constexpr std::string_view kOptimizerStep = "Optimizer.step";

// The value of `found_by` for a step that ends with a step of an optimizer.
inline constexpr std::string_view kFoundByOptimizer = "optimizer";

// True when a range of this name is a step. `wanted` is a name, or "NAME*" for all names that begin
// so; empty for what the program marks itself, and for the steps of its engine.
inline bool IsStepName(std::string_view wanted, std::string_view name) {
  if (wanted.empty()) return name == kMarkedStep || name.starts_with(meaning::kEngineStep);
  if (wanted.back() != '*') return name == wanted;
  wanted.remove_suffix(1);
  return name.substr(0, wanted.size()) == wanted;
}

}  // namespace acltape::wire
