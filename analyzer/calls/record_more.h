// The advice how to record a program so that a replay, or a diff, has more to compare with.
#pragma once

#include <string>

#include "storage/reader.h"

namespace acltape::analyzer {

// "record with --payload all", or what is missing where all values were asked for: no full stop.
std::string HowToRecordMore(const storage::Reader& trace);

}  // namespace acltape::analyzer
