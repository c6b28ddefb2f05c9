// Faults that are planted in a captured step on purpose, to test bisection and to learn what each
// kind of fault looks like. They use only ordinary operations of the ACL interface, so that they
// show on any device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acltape::replayer::script {

enum class FaultKind {
  kWrongBits,          // the captured call gives wrong bits
  kLowBits,            // the lowest byte of a number is wrong: a small error
  kMissingWait,        // the call does not wait for one that it depends on
  kStaleInput,         // an input keeps the value that it had at the capture
  kBakedScalar,        // a host argument keeps the value of the capture
  kOverwrittenOutput,  // it overwrites a result that is still needed
  kReusedWorkspace,    // its workspace lies on a result that is still needed
  kMovedAddress,       // it reads an input at its address of the capture
};

// Returns "wrong_bits", "low_bits", "missing_wait", "stale_input", "baked_scalar",
// "overwritten_output", "reused_workspace" or "moved_address".
std::string_view FaultKindName(FaultKind kind);

// A fault at the captured call `call_id` of the template step. It has an effect only while that
// call runs captured.
struct PlantedFault {
  FaultKind kind = FaultKind::kWrongBits;
  int64_t call_id = 0;
  // The other call: the call that is not waited for, or whose result is overwritten. 0: it is
  // chosen.
  int64_t other_call = 0;
  bool operator==(const PlantedFault&) const = default;
};

// Parses a text such as "wrong_bits@812" or "missing_wait@812:805". Throws Error kUsage with the
// words that are accepted.
PlantedFault ParseFault(const std::string& text);
std::string FaultText(const PlantedFault& fault);

}  // namespace acltape::replayer::script
