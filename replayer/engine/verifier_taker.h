// Gives the outputs of a script to a verifier.
#pragma once

#include <vector>

#include "replayer/engine/script_machine.h"
#include "replayer/values/verifier.h"

namespace acltape::replayer {

class VerifierTaker final : public OutputTaker {
 public:
  // `leaves` are the leaves of the step that runs, by place, where outputs name places because
  // several steps share the script. Null: outputs name leaves.
  VerifierTaker(const Script& script, Verifier& verifier, const std::vector<int64_t>* leaves)
      : script_(script), verifier_(verifier), leaves_(leaves) {}

  void Take(int /*observation*/, int output, const uint8_t* address) override {
    const int write = script_.outputs[output].write;
    const int64_t leaf = LeafOf(output);
    if (verifier_.Wants(leaf, write)) verifier_.Take(leaf, write, address);
  }
  void TakeHostRead(int /*observation*/, int output, const uint8_t* address) override {
    verifier_.TakeHostRead(LeafOf(output), address);
  }

 private:
  int64_t LeafOf(int output) const {
    const int64_t leaf = script_.outputs[output].leaf;
    return leaves_ == nullptr ? leaf : (*leaves_)[leaf];
  }

  const Script& script_;
  Verifier& verifier_;
  const std::vector<int64_t>* leaves_;
};

}  // namespace acltape::replayer
