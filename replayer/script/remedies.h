// What is changed in a captured step to see whether a difference goes away, under names that
// commands, counter-experiments and stored experiments share.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace acltape::replayer {

struct Remedies {
  bool one_stream = false;      // all captured calls in program order on one stream
  bool own_memory = false;      // no two buffers of the step share memory
  bool own_workspace = false;   // every captured call has workspace and temporaries of its own
  bool fresh_inputs = false;    // every input is copied to its captured address before an execution
  bool step_arguments = false;  // graphs hold the host arguments of the step that is executed
  bool recapture = false;       // captured at the step that is executed
  bool operator==(const Remedies&) const = default;
};

struct Remedy {
  std::string_view name;  // "one stream"
  bool Remedies::*member;
  std::string_view changes;  // a phrase: what is different then

  // The name as one word: "one-stream" of options, "one_stream" of JSON.
  std::string Word(char between) const;
};

// In the order in which counter-experiments are made.
std::span<const Remedy> AllRemedies();

// Null when none has this word.
const Remedy* FindRemedy(std::string_view word, char between);

}  // namespace acltape::replayer
