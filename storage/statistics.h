// Statistics of recorded contents, kept beside or in place of their bytes.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "storage/reader.h"

namespace acltape::storage {

// A snapshot by its call, position, moment (after?) and tensor.
using SnapshotKey = std::tuple<int64_t, int, bool, int64_t>;
inline SnapshotKey KeyOf(const Snapshot& snapshot) {
  return {snapshot.call_id, snapshot.position, snapshot.after, snapshot.tensor.tensor_id()};
}

// The statistics of every snapshot that has them.
std::map<SnapshotKey, Statistics> LoadStatistics(const Reader& reader);

}  // namespace acltape::storage
