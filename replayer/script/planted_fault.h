// Faults that are put into a captured step on purpose: to measure bisection, and to learn what a
// kind of fault looks like. They are made of ordinary operations of the ACL interface, so that they
// show on any device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acltape::replayer {

enum class FaultKind {
  kWrongBits,          // the captured call gives wrong bits in its output
  kLowBits,            // the same in the lowest byte of a number: a small error
  kMissingWait,        // the call does not wait for one that it depends on
  kStaleInput,         // an input keeps the value that it had at the capture
  kBakedScalar,        // a host argument keeps a value of the capture that is not the step's
  kOverwrittenOutput,  // it writes where an earlier call's result is still needed
  kReusedWorkspace,    // its workspace lies on an earlier call's result that is still needed
  kMovedAddress,       // it reads an input at the address which that had at the capture
};

// "wrong_bits", "low_bits", "missing_wait", "stale_input", "baked_scalar", "overwritten_output",
// "reused_workspace", "moved_address".
std::string_view FaultKindName(FaultKind kind);

// A fault at the captured call `call_id` of the template step. It takes effect only while that call
// is executed captured.
struct PlantedFault {
  FaultKind kind = FaultKind::kWrongBits;
  int64_t call_id = 0;
  // The other call: the one that is not waited for, or whose result is overwritten. 0: chosen.
  int64_t other_call = 0;
  bool operator==(const PlantedFault&) const = default;
};

// "wrong_bits@812" or "missing_wait@812:805". Throws Error kUsage with the words that are accepted.
PlantedFault ParseFault(const std::string& text);
std::string FaultText(const PlantedFault& fault);

}  // namespace acltape::replayer
