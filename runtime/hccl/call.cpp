#include "runtime/hccl/call.h"

#include <iterator>

#include "meaning/hccl_numbers.h"

namespace acltape::hccl {
namespace {

constexpr KindFacts kKinds[] = {
    // name, gives, takes, parts, reduces, has_counts
    {"HcclAllReduce", Who::kAll, Who::kAll, false, true, false},
    {"HcclReduce", Who::kAll, Who::kRoot, false, true, false},
    {"HcclBroadcast", Who::kRoot, Who::kAll, false, false, false},
    {"HcclScatter", Who::kRoot, Who::kAll, true, false, false},
    {"HcclAllGather", Who::kAll, Who::kAll, false, false, false},
    {"HcclAllGatherV", Who::kAll, Who::kAll, false, false, true},
    {"HcclReduceScatter", Who::kAll, Who::kAll, true, true, false},
    {"HcclReduceScatterV", Who::kAll, Who::kAll, true, true, true},
    {"HcclAlltoAll", Who::kAll, Who::kAll, true, false, false},
    {"HcclAlltoAllV", Who::kAll, Who::kAll, true, false, true},
    {"HcclBarrier", Who::kNobody, Who::kNobody, false, false, false},
    {"HcclSend", Who::kNobody, Who::kNobody, false, false, false},
    {"HcclRecv", Who::kNobody, Who::kNobody, false, false, false},
};
static_assert(std::size(kKinds) == static_cast<size_t>(Kind::kKinds));
static_assert(meaning::FindHcclDtype(HCCL_DATA_TYPE_BFP16)->bytes == 2);
static_assert(meaning::FindHcclDtype(HCCL_DATA_TYPE_FP8E8M0)->bytes == 1);

}  // namespace

const KindFacts& FactsOf(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }

DtypeFacts FactsOf(HcclDataType dtype) {
  const meaning::HcclDtype* row = meaning::FindHcclDtype(dtype);
  return row == nullptr ? DtypeFacts{"unknown dtype", 0} : DtypeFacts{row->name, row->bytes};
}

const char* NameOf(HcclReduceOp op) {
  static_assert(std::size(meaning::kHcclReductions) == HCCL_REDUCE_RESERVED);
  return op >= HCCL_REDUCE_SUM && op < HCCL_REDUCE_RESERVED ? meaning::kHcclReductions[op]
                                                            : "unknown operation";
}

std::string Describe(Kind kind, uint64_t count, HcclDataType dtype, HcclReduceOp op,
                     uint32_t root) {
  const KindFacts& facts = FactsOf(kind);
  std::string text = facts.name;
  if (kind == Kind::kBarrier) return text;
  text += "(count " + std::to_string(count) + ", " + FactsOf(dtype).name;
  if (facts.reduces) text += std::string(", ") + NameOf(op);
  if (facts.gives == Who::kRoot || facts.takes == Who::kRoot) {
    text += ", root " + std::to_string(root);
  }
  return text + ")";
}

}  // namespace acltape::hccl
