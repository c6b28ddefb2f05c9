// Says what a person can do about a wait, in the terms of the framework. A row of the table names
// the operators, the source and the memory of the waits that it is for; the first row that fits is
// taken. To add a mend is to add a row to mends.cpp, before the more general ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acltape::analyzer::waits {

// The direction of a copy, and the memory on its host side.
enum class CopySide : uint8_t {
  kNone,          // it is no copy between host and device, or not known
  kFromPageable,  // to the device, from memory that is not pinned
  kFromPinned,    // to the device, from pinned memory
  kToHost,
};

// The facts that are known of the waits of a line.
struct WaitFacts {
  std::string_view called;   // the outermost operator of PyTorch, or the function: "aten::item"
  std::string_view inner;    // the operator whose kernel waits: "aten::_local_scalar_dense"
  std::string_view made_by;  // the operator that made the host side of a copy; may be empty
  CopySide copy = CopySide::kNone;
  bool non_blocking = false;  // the operator was asked not to block
  bool integers = false;      // the copied tensor holds integers
  bool over_torch = false;    // the program is one over PyTorch
  // The functions of the framework between the line and the operator, and the ranges around it, a
  // name a line: "GradScaler._maybe_opt_step\nOptimizer.step#AdamW.step\n".
  std::string_view frames;
};

// A sentence without its end; empty: no row fits.
std::string_view MendOf(const WaitFacts& facts);

}  // namespace acltape::analyzer::waits
