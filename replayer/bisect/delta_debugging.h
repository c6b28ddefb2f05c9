// Reduces a set that fails to one of which nothing can be left out.
#pragma once

#include <functional>

#include "replayer/bisect/experiment.h"

namespace acltape::replayer {

// The algorithm ddmin (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input,
// IEEE TSE 2002). `fails` is asked about subsets; what cannot be judged counts as not failing. The
// result fails and no set with one element less does, as far as `fails` is asked the same twice:
// 1-minimal. At most |c|^2 + 3|c| questions; about 2 k log2 |c| when k elements are to blame and
// the outcome depends on nothing else. Precondition: the whole set fails.
ElementSet MinimizeByDeltaDebugging(ElementSet set,
                                    const std::function<bool(const ElementSet&)>& fails);

}  // namespace acltape::replayer
