#include "replayer/device/hccl_functions.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "storage/error.h"

namespace acltape::replayer {
namespace {

constexpr const char* kLibrary = "libhccl.so";

template <typename Function>
void Resolve(void* library, const char* name, Function& function) {
  void* address = dlsym(library, name);
  if (address == nullptr) {
    throw Error(ErrorKind::kDevice, std::string(kLibrary) + " does not define " + name +
                                        ", which a replay of several ranks needs; use a newer one");
  }
  std::memcpy(&function, &address, sizeof(function));
}

}  // namespace

HcclFunctions LoadHccl(const acl::Library& library) {
  constexpr int kMode = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;
  void* opened = dlopen((library.directory() / kLibrary).c_str(), kMode);
  // A vendor's toolkit may have it in another folder of the search path.
  if (opened == nullptr) opened = dlopen(kLibrary, kMode);
  if (opened == nullptr) {
    const char* reason = dlerror();
    throw Error(ErrorKind::kDevice,
                std::string("ranks cannot be replayed together without HCCL: ") +
                    (reason == nullptr ? "libhccl.so cannot be opened" : reason) +
                    "; name a device library that has libhccl.so beside it");
  }
  HcclFunctions functions;
  Resolve(opened, "HcclGetRootInfo", functions.GetRootInfo);
  Resolve(opened, "HcclCommInitRootInfo", functions.CommInitRootInfo);
  Resolve(opened, "HcclCommDestroy", functions.CommDestroy);
  Resolve(opened, "HcclGetCommName", functions.GetCommName);
  Resolve(opened, "HcclAllReduce", functions.AllReduce);
  Resolve(opened, "HcclReduce", functions.Reduce);
  Resolve(opened, "HcclBroadcast", functions.Broadcast);
  Resolve(opened, "HcclScatter", functions.Scatter);
  Resolve(opened, "HcclAllGather", functions.AllGather);
  Resolve(opened, "HcclAllGatherV", functions.AllGatherV);
  Resolve(opened, "HcclReduceScatter", functions.ReduceScatter);
  Resolve(opened, "HcclReduceScatterV", functions.ReduceScatterV);
  Resolve(opened, "HcclAlltoAll", functions.AlltoAll);
  Resolve(opened, "HcclAlltoAllV", functions.AlltoAllV);
  Resolve(opened, "HcclAlltoAllVC", functions.AlltoAllVC);
  Resolve(opened, "HcclSend", functions.Send);
  Resolve(opened, "HcclRecv", functions.Recv);
  Resolve(opened, "HcclBatchSendRecv", functions.BatchSendRecv);
  return functions;
}

}  // namespace acltape::replayer
