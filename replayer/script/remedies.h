// The changes to a captured step that are tried to make a difference go away. Commands,
// counter-experiments and stored experiments use the same names for them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace acltape::replayer::script {

struct Remedies {
  bool one_stream = false;     // all captured calls in program order on one stream
  bool own_memory = false;     // no two buffers of the step share memory
  bool own_workspace = false;  // no two captured calls share workspace or temporaries
  // Every input is copied to its captured address before an execution.
  bool fresh_inputs = false;
  bool step_arguments = false;  // graphs hold the host arguments of the executed step
  bool recapture = false;       // the capture sees the executed step
  bool operator==(const Remedies&) const = default;
};

struct Remedy {
  std::string_view name;  // "one stream"
  bool Remedies::*member;
  std::string_view changes;  // a phrase that says what is changed

  // Returns the name as one word: "one-stream" for options, "one_stream" for JSON.
  std::string Word(char between) const;
};

// Returns the remedies in the order in which counter-experiments are made.
std::span<const Remedy> AllRemedies();

// Returns null if no remedy has this word.
const Remedy* FindRemedy(std::string_view word, char between);

}  // namespace acltape::replayer::script
