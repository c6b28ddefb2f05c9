#include "replayer/script/remedies.h"

#include <algorithm>

namespace acltape::replayer::script {
namespace {

constexpr Remedy kRemedies[] = {
    {"one stream", &Remedies::one_stream, "captured calls in program order on one stream"},
    {"own memory", &Remedies::own_memory, "no two buffers share memory"},
    {"own workspace", &Remedies::own_workspace, "workspace and temporaries for every call alone"},
    {"fresh inputs", &Remedies::fresh_inputs,
     "every input copied to its captured place before the execution"},
    {"step arguments", &Remedies::step_arguments,
     "the host arguments of the step that is executed"},
    {"recapture", &Remedies::recapture, "captured at the step that is executed"},
};

}  // namespace

std::string Remedy::Word(char between) const {
  std::string word(name);
  std::replace(word.begin(), word.end(), ' ', between);
  return word;
}

std::span<const Remedy> AllRemedies() { return kRemedies; }

const Remedy* FindRemedy(std::string_view word, char between) {
  const auto* found = std::find_if(std::begin(kRemedies), std::end(kRemedies),
                                   [&](const Remedy& r) { return r.Word(between) == word; });
  return found == std::end(kRemedies) ? nullptr : found;
}

}  // namespace acltape::replayer::script
