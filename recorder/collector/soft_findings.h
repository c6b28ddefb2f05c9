// Findings of the soft device while the recorded program ran, as rows of the ledger.
//
// The device's processes append lines to a file (runtime/device/findings.h). The recorded program
// can write into it too, so no line is trusted: what is no finding is left out, and rows are
// counted.
#pragma once

#include <string>
#include <vector>

#include "storage/trace.h"

namespace acltape::collector {

// Returns one entry for each kind and subject of the file, the most frequent of a kind first.
// Counts of processes add up. A file that is not there has none.
std::vector<storage::LedgerEntry> ReadSoftFindings(const std::string& path);

}  // namespace acltape::collector
