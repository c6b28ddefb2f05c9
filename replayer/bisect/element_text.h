// Writes sets of elements as text, such as "0-41,57". The empty set is "".
#pragma once

#include <string>
#include <string_view>

#include "replayer/script/experiment.h"

namespace acltape::replayer {

std::string ElementText(const ElementSet& set);
// Throws Error kTrace if ElementText cannot have written the text.
ElementSet ParseElements(std::string_view text);

// Returns the elements 0 to count - 1.
ElementSet AllElements(size_t count);
ElementSet UnionOf(const ElementSet& a, const ElementSet& b);
ElementSet Without(const ElementSet& a, const ElementSet& b);

// Returns "good", "bad", "unstable" or "cannot judge".
std::string_view VerdictName(Outcome::Verdict verdict);
// Throws Error kTrace for any other word.
Outcome::Verdict ParseVerdict(std::string_view name);

}  // namespace acltape::replayer
