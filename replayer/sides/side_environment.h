// The environment of a side's process: the environment of this process at its start, with the
// settings of the side.
#pragma once

#include <string>
#include <vector>

#include "storage/reader.h"

namespace acltape::replayer::sides {

// Returns the variables of this process as "NAME=VALUE". Must be called before the first Session,
// because a Session sets what the recording says in this process (AdoptRecordedSettings).
std::vector<std::string> CurrentEnvironment();

// Returns the environment of a side. `settings` ("NAME=VALUE") replace variables of the same names
// in `environment`. If neither sets the number of threads, it is that of the recording. A side that
// sets OMP_NUM_THREADS gets that number.
std::vector<std::string> EnvironmentOfSide(std::vector<std::string> environment,
                                           const std::vector<std::string>& settings,
                                           const storage::Reader& trace);

// Throws Error kUsage, naming the option, if the setting is not NAME=VALUE.
void CheckSetting(const std::string& option, const std::string& setting);

}  // namespace acltape::replayer::sides
