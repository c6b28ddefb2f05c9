// Reduces a set of elements that fails to a smaller one that still fails, and of which no element
// can be left out.
#pragma once

#include <functional>

#include "replayer/script/experiment.h"

namespace acltape::replayer::bisect {

// The algorithm ddmin (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input,
// IEEE TSE 2002). `fails` is asked about subsets; a subset that cannot be judged counts as not
// failing. The result fails, and no set with one element less fails (it is 1-minimal), if `fails`
// gives the same answer each time. It takes at most |c|^2 + 3|c| questions, and about 2 k log2 |c|
// if k elements are to blame and the outcome depends on nothing else. Precondition: the whole set
// fails.
script::ElementSet MinimizeByDeltaDebugging(
    script::ElementSet set, const std::function<bool(const script::ElementSet&)>& fails);

}  // namespace acltape::replayer::bisect
