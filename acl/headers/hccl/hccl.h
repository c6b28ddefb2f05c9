// Communication between devices. On the soft device the ranks of a communicator are processes or
// threads of one machine (docs/soft_device_rules.md, HCL-01 to HCL-11).
#ifndef HCCL_HCCL_H_
#define HCCL_HCCL_H_

#include <acl/acl.h>
#include <hccl/hccl_types.h>
#include <stdbool.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
// Libraries that hide their names still export functions of these names.
#pragma GCC visibility push(default)

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo);
HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm);
HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                HcclComm* comm);
HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                      const HcclCommConfig* config, HcclComm* comm);
HcclResult HcclGetRootInfoScalable(HcclRootInfo* rootInfo);
HcclResult HcclCommInitRootInfoScalable(uint32_t nRanks, uint32_t nRoot,
                                        const HcclRootInfo* rootInfoList, uint32_t rank,
                                        uint32_t nExtRoot, const HcclCommConfig* config,
                                        HcclComm* comm);
HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                         HcclCommConfig* config, HcclComm* comm);
HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds,
                                   uint64_t subCommId, uint32_t subCommRankId,
                                   HcclCommConfig* config, HcclComm* subComm);
HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms);
HcclResult HcclCommDestroy(HcclComm comm);
HcclResult HcclGetCommName(HcclComm comm, char* commName);
HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize);
HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
const char* HcclGetErrorString(HcclResult code);
// How many members of HcclCommConfig the library knows.
uint32_t HcclGetCommConfigCapability(void);
// Why the communicator failed, HCCL_SUCCESS while it works. Does not wait.
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError);
HcclResult HcclCommSuspend(HcclComm comm);
HcclResult HcclCommResume(HcclComm comm);
// Ranks of which the network card, or the one in reserve, is to be used. It needs links between
// machines; without them it changes nothing.
HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t* ranks, bool* useBackup,
                                    uint32_t nRanks);

HcclResult HcclSetConfig(HcclConfig config, union HcclConfigValue configValue);
HcclResult HcclGetConfig(HcclConfig config, union HcclConfigValue* configValue);

HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                         HcclReduceOp op, HcclComm comm, aclrtStream stream);
HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                      HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream);
HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                             HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                             aclrtStream stream);
HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls,
                              void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                              HcclReduceOp op, HcclComm comm, aclrtStream stream);
HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                          const void* recvDispls, HcclDataType dataType, HcclComm comm,
                          aclrtStream stream);
HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                         HcclDataType sendType, const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType, HcclComm comm,
                         aclrtStream stream);
HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
                          const void* recvBuf, HcclDataType recvType, HcclComm comm,
                          aclrtStream stream);
HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm,
                             aclrtStream stream);
HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root,
                         HcclComm comm, aclrtStream stream);
HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                       uint32_t root, HcclComm comm, aclrtStream stream);
HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                         HcclComm comm, aclrtStream stream);
HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType,
                        const void* recvBuf, uint64_t recvCount, HcclDataType recvType,
                        HcclComm comm, aclrtStream stream);
HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);
HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
                    HcclComm comm, aclrtStream stream);
HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
                    HcclComm comm, aclrtStream stream);

// Calls of HcclSend and HcclRecv between these two, which may be nested, are one batch that begins
// at the last HcclGroupEnd (libhcomm.so).
HcclResult HcclGroupStart(void);
HcclResult HcclGroupEnd(void);

#pragma GCC visibility pop

static inline void HcclCommConfigInit(HcclCommConfig* config) {
  const uint64_t bytes = sizeof(HcclCommConfig);
  const uint32_t magic = HCCL_COMM_CONFIG_MAGIC_WORD, version = HCCL_COMM_CONFIG_VERSION;
  const uint32_t not_set = 0xffffffff;
  memset(config, 0, sizeof(*config));
  memcpy(config->reserved, &bytes, sizeof(bytes));
  memcpy(config->reserved + 8, &magic, sizeof(magic));
  memcpy(config->reserved + 12, &version, sizeof(version));
  config->hcclBufferSize = 200;
  config->hcclRdmaTrafficClass = not_set;
  config->hcclRdmaServiceLevel = not_set;
  config->hcclExecTimeOut = -1;
}

#ifdef __cplusplus
}
#endif

#endif  // HCCL_HCCL_H_
