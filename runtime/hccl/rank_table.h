// The file that lists the ranks of a job (RANK_TABLE_FILE).
#pragma once

#include <cstdint>
#include <string>

#include "hccl/hccl_types.h"

namespace acltape::hccl {

struct RankTable {
  uint32_t ranks = 0;
  std::string name;  // the meeting's, the same for all that read this file
};

// Counts the devices of the file's servers. All of them are of this machine here.
HcclResult ReadRankTable(const char* path, RankTable* table, std::string* message);

}  // namespace acltape::hccl
