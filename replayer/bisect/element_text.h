// Sets of elements as text: "0-41,57"; "" is the empty set.
#pragma once

#include <string>
#include <string_view>

#include "replayer/bisect/experiment.h"

namespace acltape::replayer {

std::string ElementText(const ElementSet& set);
// Throws Error kTrace when the text is none that ElementText gives.
ElementSet ParseElements(std::string_view text);

// Elements 0 to count - 1.
ElementSet AllElements(size_t count);
ElementSet UnionOf(const ElementSet& a, const ElementSet& b);
ElementSet Without(const ElementSet& a, const ElementSet& b);

// "good", "bad", "unstable", "cannot judge".
std::string_view VerdictName(Outcome::Verdict verdict);
// Throws Error kTrace for another word.
Outcome::Verdict ParseVerdict(std::string_view name);

}  // namespace acltape::replayer
