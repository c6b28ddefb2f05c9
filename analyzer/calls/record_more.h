// The advice how to record a program so that a replay, or a diff, has more to compare with.
#pragma once

#include <string>

#include "storage/reader.h"

namespace acltape::analyzer {

// True of the leaves of a program on a device whose own calls were not recorded. PyTorch alone does
// not tell when a result on a device is ready to be kept, so that these leaves have none.
bool LacksDeviceLevel(const storage::Reader& trace);

// Says how to record more results: "record with --payload all", with the level that is missing.
// Says where all values were asked for what else is missing. No full stop.
std::string HowToRecordMore(const storage::Reader& trace);

// Says the same of contents that the program's calls read and no recorded call wrote.
std::string HowToRecordInputs(const storage::Reader& trace);

}  // namespace acltape::analyzer
