// Writes sets of elements as text, such as "0-41,57". The empty set is "".
#pragma once

#include <string>
#include <string_view>

#include "replayer/script/experiment.h"

namespace acltape::replayer::bisect {

std::string ElementText(const script::ElementSet& set);
// Throws Error kTrace if ElementText cannot have written the text.
script::ElementSet ParseElements(std::string_view text);

// Returns the elements 0 to count - 1.
script::ElementSet AllElements(size_t count);
script::ElementSet UnionOf(const script::ElementSet& a, const script::ElementSet& b);
script::ElementSet Without(const script::ElementSet& a, const script::ElementSet& b);

// Returns "good", "bad", "unstable" or "cannot judge".
std::string_view VerdictName(script::Outcome::Verdict verdict);
// Throws Error kTrace for any other word.
script::Outcome::Verdict ParseVerdict(std::string_view name);

}  // namespace acltape::replayer::bisect
