#include "runtime/hccl/call.h"

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
static_assert(sizeof kKinds / sizeof *kKinds == static_cast<size_t>(Kind::kKinds));

}  // namespace

const KindFacts& FactsOf(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }

DtypeFacts FactsOf(HcclDataType dtype) {
  static constexpr struct {
    HcclDataType dtype;
    DtypeFacts facts;
  } kDtypes[] = {
      {HCCL_DATA_TYPE_INT8, {"int8", 1}},       {HCCL_DATA_TYPE_INT16, {"int16", 2}},
      {HCCL_DATA_TYPE_INT32, {"int32", 4}},     {HCCL_DATA_TYPE_FP16, {"fp16", 2}},
      {HCCL_DATA_TYPE_FP32, {"fp32", 4}},       {HCCL_DATA_TYPE_INT64, {"int64", 8}},
      {HCCL_DATA_TYPE_UINT64, {"uint64", 8}},   {HCCL_DATA_TYPE_UINT8, {"uint8", 1}},
      {HCCL_DATA_TYPE_UINT16, {"uint16", 2}},   {HCCL_DATA_TYPE_UINT32, {"uint32", 4}},
      {HCCL_DATA_TYPE_FP64, {"fp64", 8}},       {HCCL_DATA_TYPE_BFP16, {"bfp16", 2}},
      {HCCL_DATA_TYPE_INT128, {"int128", 16}},  {HCCL_DATA_TYPE_HIF8, {"hif8", 1}},
      {HCCL_DATA_TYPE_FP8E4M3, {"fp8e4m3", 1}}, {HCCL_DATA_TYPE_FP8E5M2, {"fp8e5m2", 1}},
      {HCCL_DATA_TYPE_FP8E8M0, {"fp8e8m0", 1}},
  };
  for (const auto& row : kDtypes) {
    if (row.dtype == dtype) return row.facts;
  }
  return {"unknown dtype", 0};
}

const char* NameOf(HcclReduceOp op) {
  static constexpr const char* kNames[] = {"sum", "prod", "max", "min"};
  return op >= HCCL_REDUCE_SUM && op < HCCL_REDUCE_RESERVED ? kNames[op] : "unknown operation";
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
