// When collectives had ended, as far as hosts know it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/ranks/collectives.h"

namespace acltape::analyzer::ranks {

// By call of a run (Run::call_id): not later than this it had ended. That is the end of a call in
// which the host waited for its stream, for its device, for an event that was recorded after it, or
// for a stream that waited for such an event. A run without such a call has no entry. At most
// `most` runs of each process are followed, evenly chosen.
std::map<int64_t, int64_t> FindCompletions(const storage::Reader& trace, const Communication& all,
                                           size_t most);

}  // namespace acltape::analyzer::ranks
