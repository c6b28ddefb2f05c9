// The environment of a side's process: this one's, as it was when the program began, with what the
// side sets for itself.
#pragma once

#include <string>
#include <vector>

#include "storage/reader.h"

namespace acltape::replayer {

// "NAME=VALUE" of this process. Taken before the first Session, which sets the threads of the
// recording (AdoptRecordedThreads) for this process.
std::vector<std::string> CurrentEnvironment();

// `settings` ("NAME=VALUE") replace what `environment` has of these names. The threads are those of
// the recording where neither says otherwise; a side that sets OMP_NUM_THREADS gets that many.
std::vector<std::string> EnvironmentOfSide(std::vector<std::string> environment,
                                           const std::vector<std::string>& settings,
                                           const storage::Reader& trace);

// Throws Error kUsage, naming the option, for what is not NAME=VALUE.
void CheckSetting(const std::string& option, const std::string& setting);

}  // namespace acltape::replayer
