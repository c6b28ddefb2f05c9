// A call of a collective, as the program made it, and what is known about kinds and dtypes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hccl/hccl.h"

namespace acltape::hccl {

enum class Kind : uint32_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kScatter,
  kAllGather,
  kAllGatherV,
  kReduceScatter,
  kReduceScatterV,
  kAlltoAll,
  kAlltoAllV,
  kBarrier,
  kSend,
  kRecv,
  kKinds,
};

// Who gives and who takes data in a collective.
enum class Who : uint8_t { kNobody, kRoot, kAll };

struct KindFacts {
  const char* name;  // the function's
  Who gives;
  Who takes;
  bool parts;       // each rank gets a part of its own; else all get the same
  bool reduces;     // the data is reduced on its way
  bool has_counts;  // the counts of ranks may differ
};
const KindFacts& FactsOf(Kind kind);

struct DtypeFacts {
  const char* name;
  uint32_t bytes;  // 0: the soft device does not know the dtype
};
DtypeFacts FactsOf(HcclDataType dtype);

const char* NameOf(HcclReduceOp op);

// `count`, counts and displacements are in elements. Arrays that the program gives live only
// during its call, so they are copied.
struct Call {
  Kind kind = Kind::kBarrier;
  const void* send = nullptr;
  void* recv = nullptr;
  uint64_t count = 0;
  HcclDataType dtype = HCCL_DATA_TYPE_INT8;
  HcclReduceOp op = HCCL_REDUCE_SUM;
  uint32_t root = 0;  // the other rank of kSend and kRecv
  std::vector<uint64_t> send_counts, send_places, recv_counts, recv_places;
};

// "HcclAllReduce(count 4, fp32, sum)".
std::string Describe(Kind kind, uint64_t count, HcclDataType dtype, HcclReduceOp op, uint32_t root);

}  // namespace acltape::hccl
