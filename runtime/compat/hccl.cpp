// libhccl.so: communication between devices, in groups of one rank. All that such a group computes
// is a copy of its own data; a group of more ranks is not offered.
#include "hccl/hccl.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

#include "runtime/compat/export.h"

namespace {

struct Group {
  char name[COMM_NAME_MAX_LENGTH];
};

std::mutex g_mutex;
// The live groups; a handle is the address of one. Never destroyed, because programs destroy groups
// at exit.
std::set<Group*>& Groups() {
  static std::set<Group*>& groups = *new std::set<Group*>;
  return groups;
}

bool IsLive(HcclComm comm) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  return Groups().count(static_cast<Group*>(comm)) != 0;
}

HcclResult MakeGroup(uint32_t ranks, uint32_t rank, const char* name, HcclComm* comm) {
  if (comm == nullptr) return HCCL_E_PTR;
  if (ranks == 0 || rank >= ranks) return HCCL_E_PARA;
  if (ranks != 1) return HCCL_E_NOT_SUPPORT;
  static std::atomic<uint32_t> number{0};
  auto* group = new Group;
  if (name != nullptr && name[0] != '\0') {
    std::snprintf(group->name, sizeof group->name, "%s", name);
  } else {
    std::snprintf(group->name, sizeof group->name, "soft_group_%u", number.fetch_add(1));
  }
  const std::lock_guard<std::mutex> lock(g_mutex);
  Groups().insert(group);
  *comm = group;
  return HCCL_SUCCESS;
}

uint64_t BytesOf(HcclDataType type) {
  switch (type) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_UINT8:
      return 1;
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16:
      return 2;
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32:
    case HCCL_DATA_TYPE_FP32:
      return 4;
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
    case HCCL_DATA_TYPE_FP64:
      return 8;
    default:
      return 0;
  }
}

HcclResult CheckCall(HcclDataType type, HcclComm comm) {
  if (comm == nullptr) return HCCL_E_PTR;
  return IsLive(comm) && BytesOf(type) != 0 ? HCCL_SUCCESS : HCCL_E_PARA;
}

HcclResult Copy(const void* from, void* to, uint64_t count, HcclDataType type, HcclComm comm,
                aclrtStream stream) {
  if (const HcclResult wrong = CheckCall(type, comm)) return wrong;
  if (count == 0 || from == to) return HCCL_SUCCESS;
  if (from == nullptr || to == nullptr) return HCCL_E_PTR;
  const uint64_t bytes = count * BytesOf(type);
  return aclrtMemcpyAsync(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream) == 0
             ? HCCL_SUCCESS
             : HCCL_E_RUNTIME;
}

HcclResult CheckReduce(HcclReduceOp op) {
  return op >= HCCL_REDUCE_SUM && op < HCCL_REDUCE_RESERVED ? HCCL_SUCCESS : HCCL_E_PARA;
}

// There is no other rank to send to or to hear from.
HcclResult NoPeer(uint32_t peer, HcclDataType type, HcclComm comm) {
  if (const HcclResult wrong = CheckCall(type, comm)) return wrong;
  return peer == 0 ? HCCL_E_NOT_SUPPORT : HCCL_E_PARA;
}

std::atomic<int32_t> g_deterministic{0};

}  // namespace

ACLTAPE_COMPAT HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  if (rootInfo == nullptr) return HCCL_E_PTR;
  *rootInfo = HcclRootInfo{};
  return HCCL_SUCCESS;
}

// A file of ranks names devices of several hosts.
ACLTAPE_COMPAT HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t,
                                                  HcclComm* comm) {
  return clusterInfo == nullptr || comm == nullptr ? HCCL_E_PTR : HCCL_E_NOT_SUPPORT;
}

ACLTAPE_COMPAT HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                               uint32_t rank, HcclComm* comm) {
  return rootInfo == nullptr ? HCCL_E_PTR : MakeGroup(nRanks, rank, nullptr, comm);
}

ACLTAPE_COMPAT HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                                     uint32_t rank, const HcclCommConfig* config,
                                                     HcclComm* comm) {
  if (rootInfo == nullptr || config == nullptr) return HCCL_E_PTR;
  return MakeGroup(nRanks, rank, config->hcclCommName, comm);
}

ACLTAPE_COMPAT HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  if (devices == nullptr || comms == nullptr) return HCCL_E_PTR;
  return MakeGroup(ndev, 0, nullptr, comms);
}

ACLTAPE_COMPAT HcclResult HcclCommDestroy(HcclComm comm) {
  if (comm == nullptr) return HCCL_E_PTR;
  const std::lock_guard<std::mutex> lock(g_mutex);
  auto* group = static_cast<Group*>(comm);
  if (Groups().erase(group) == 0) return HCCL_E_PARA;
  delete group;
  return HCCL_SUCCESS;
}

ACLTAPE_COMPAT HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  if (comm == nullptr || commName == nullptr) return HCCL_E_PTR;
  if (!IsLive(comm)) return HCCL_E_PARA;
  std::snprintf(commName, COMM_NAME_MAX_LENGTH, "%s", static_cast<Group*>(comm)->name);
  return HCCL_SUCCESS;
}

ACLTAPE_COMPAT HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  if (comm == nullptr || rankSize == nullptr) return HCCL_E_PTR;
  if (!IsLive(comm)) return HCCL_E_PARA;
  *rankSize = 1;
  return HCCL_SUCCESS;
}

ACLTAPE_COMPAT HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  if (comm == nullptr || rank == nullptr) return HCCL_E_PTR;
  if (!IsLive(comm)) return HCCL_E_PARA;
  *rank = 0;
  return HCCL_SUCCESS;
}

ACLTAPE_COMPAT const char* HcclGetErrorString(HcclResult code) {
  switch (code) {
    case HCCL_SUCCESS:
      return "no error";
    case HCCL_E_PARA:
      return "parameter error";
    case HCCL_E_PTR:
      return "empty pointer";
    case HCCL_E_NOT_SUPPORT:
      return "not supported: the soft device has groups of one rank";
    case HCCL_E_RUNTIME:
      return "a call of the runtime failed";
    default:
      return "unknown error";
  }
}

// Programs set it before each operator; copies are deterministic.
ACLTAPE_COMPAT HcclResult HcclSetConfig(HcclConfig config, union HcclConfigValue configValue) {
  if (config == HCCL_DETERMINISTIC) g_deterministic.store(configValue.value);
  return HCCL_SUCCESS;
}

ACLTAPE_COMPAT HcclResult HcclGetConfig(HcclConfig config, union HcclConfigValue* configValue) {
  if (configValue == nullptr) return HCCL_E_PTR;
  if (config != HCCL_DETERMINISTIC) return HCCL_E_PARA;
  configValue->value = g_deterministic.load();
  return HCCL_SUCCESS;
}

ACLTAPE_COMPAT HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count,
                                        HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                        aclrtStream stream) {
  if (const HcclResult wrong = CheckReduce(op)) return wrong;
  return Copy(sendBuf, recvBuf, count, dataType, comm, stream);
}

ACLTAPE_COMPAT HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count,
                                     HcclDataType dataType, HcclReduceOp op, uint32_t root,
                                     HcclComm comm, aclrtStream stream) {
  if (root != 0) return HCCL_E_PARA;
  if (const HcclResult wrong = CheckReduce(op)) return wrong;
  return Copy(sendBuf, recvBuf, count, dataType, comm, stream);
}

ACLTAPE_COMPAT HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                            HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                            aclrtStream stream) {
  if (const HcclResult wrong = CheckReduce(op)) return wrong;
  return Copy(sendBuf, recvBuf, recvCount, dataType, comm, stream);
}

ACLTAPE_COMPAT HcclResult HcclBroadcast(void*, uint64_t, HcclDataType dataType, uint32_t root,
                                        HcclComm comm, aclrtStream) {
  return root != 0 ? HCCL_E_PARA : CheckCall(dataType, comm);
}

ACLTAPE_COMPAT HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                      HcclDataType dataType, uint32_t root, HcclComm comm,
                                      aclrtStream stream) {
  if (root != 0) return HCCL_E_PARA;
  return Copy(sendBuf, recvBuf, recvCount, dataType, comm, stream);
}

ACLTAPE_COMPAT HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount,
                                        HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  return Copy(sendBuf, recvBuf, sendCount, dataType, comm, stream);
}

ACLTAPE_COMPAT HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount,
                                       HcclDataType sendType, const void* recvBuf,
                                       uint64_t recvCount, HcclDataType recvType, HcclComm comm,
                                       aclrtStream stream) {
  if (sendCount != recvCount || sendType != recvType) return HCCL_E_PARA;
  return Copy(sendBuf, const_cast<void*>(recvBuf), sendCount, sendType, comm, stream);
}

ACLTAPE_COMPAT HcclResult HcclBarrier(HcclComm comm, aclrtStream) {
  return CheckCall(HCCL_DATA_TYPE_INT8, comm);
}

ACLTAPE_COMPAT HcclResult HcclSend(void*, uint64_t, HcclDataType dataType, uint32_t destRank,
                                   HcclComm comm, aclrtStream) {
  return NoPeer(destRank, dataType, comm);
}

ACLTAPE_COMPAT HcclResult HcclRecv(void*, uint64_t, HcclDataType dataType, uint32_t srcRank,
                                   HcclComm comm, aclrtStream) {
  return NoPeer(srcRank, dataType, comm);
}
