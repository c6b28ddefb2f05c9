// The advice how to record a program so that a replay, or a diff, has more to compare with.
#pragma once

#include <string>

#include "storage/reader.h"

namespace acltape::analyzer {

// True of the leaves of a program on a device whose own calls were not recorded: PyTorch alone does
// not tell when a result on a device is ready to be kept, so none was kept.
bool LacksResultsOfDevice(const storage::Reader& trace);

// "record with --payload all", or what is missing where all values were asked for: no full stop.
std::string HowToRecordMore(const storage::Reader& trace);

}  // namespace acltape::analyzer
