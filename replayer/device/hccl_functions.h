// The functions of HCCL that a replay of several ranks calls, from the library beside the ACL
// library of a device.
#pragma once

#include "acl/loader/library.h"
#include "hccl/hccl.h"

namespace acltape::replayer {

// Each member is the function Hccl<member>.
struct HcclFunctions {
  decltype(&HcclGetRootInfo) GetRootInfo = nullptr;
  decltype(&HcclCommInitRootInfo) CommInitRootInfo = nullptr;
  decltype(&HcclCommDestroy) CommDestroy = nullptr;
  decltype(&HcclGetCommName) GetCommName = nullptr;
  decltype(&HcclAllReduce) AllReduce = nullptr;
  decltype(&HcclReduce) Reduce = nullptr;
  decltype(&HcclBroadcast) Broadcast = nullptr;
  decltype(&HcclScatter) Scatter = nullptr;
  decltype(&HcclAllGather) AllGather = nullptr;
  decltype(&HcclAllGatherV) AllGatherV = nullptr;
  decltype(&HcclReduceScatter) ReduceScatter = nullptr;
  decltype(&HcclReduceScatterV) ReduceScatterV = nullptr;
  decltype(&HcclAlltoAll) AlltoAll = nullptr;
  decltype(&HcclAlltoAllV) AlltoAllV = nullptr;
  decltype(&HcclAlltoAllVC) AlltoAllVC = nullptr;
  decltype(&HcclSend) Send = nullptr;
  decltype(&HcclRecv) Recv = nullptr;
  decltype(&HcclBatchSendRecv) BatchSendRecv = nullptr;
};

// Throws Error kDevice if the library cannot be opened or lacks one of them. It stays loaded until
// the process ends.
HcclFunctions LoadHccl(const acl::Library& library);

}  // namespace acltape::replayer
