// Arguments and launches of kernels of a binary (KRN-04).
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "runtime/device/binary.h"
#include "runtime/device/call.h"
#include "runtime/device/device_heap.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

constexpr size_t kMostParameters = 128;
constexpr size_t kOwnBytes = size_t{64} << 10;  // size of a list that the device allocates
constexpr size_t kHandleBytes = 64;

struct Place {
  uint32_t address;  // where in the block the address of the data stands
  uint32_t data;     // where in the block the data begin
};

struct ListedParameter {
  size_t offset;
  size_t bytes;
  bool placeholder;
  bool placed = false;  // its data have room
};

// A list of arguments: parameters in their order, each at a multiple of 8, then the data of
// placeholders.
struct ArgumentList {
  const Function* function = nullptr;
  std::unique_ptr<char[]> own;
  char* block = nullptr;
  size_t room = 0;
  size_t used = 0;
  std::vector<ListedParameter> parameters = {};
  std::vector<Place> places = {};
  bool has_data = false;
  bool finalized = false;
};

// The lists by their handles. Those of the program's own memory are known by its address.
struct Lists {
  std::mutex mutex;
  std::map<void*, std::unique_ptr<ArgumentList>> by_handle;
};

Lists& GetLists() {
  static Lists& lists = *new Lists;
  return lists;
}

aclError FindList(Lists& lists, aclrtArgsHandle handle, const char* call, ArgumentList** list) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "argsHandle"));
  auto found = lists.by_handle.find(handle);
  if (found == lists.by_handle.end()) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is no list of arguments", call, handle);
  }
  *list = found->second.get();
  return ACL_SUCCESS;
}

// Parameters are numbered from 1.
aclError FindParameter(ArgumentList& list, aclrtParamHandle handle, bool placeholder,
                       const char* call, ListedParameter** parameter) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "paramHandle"));
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number > list.parameters.size()) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is no parameter of the list", call, handle);
  }
  *parameter = &list.parameters[number - 1];
  if ((*parameter)->placeholder == placeholder) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the parameter is %s placeholder", call,
              placeholder ? "no" : "a");
}

aclError Append(aclrtArgsHandle handle, const void* value, size_t bytes, bool placeholder,
                aclrtParamHandle* parameter, const char* call) {
  Lists& lists = GetLists();
  std::lock_guard lock(lists.mutex);
  ArgumentList* list = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindList(lists, handle, call, &list));
  if (list->finalized || list->has_data || list->parameters.size() == kMostParameters) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the list is finalized, has data of a placeholder, or has %zu parameters", call,
                list->parameters.size());
  }
  if (bytes > list->room - list->used) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes do not fit into the list", call, bytes);
  }
  if (value != nullptr) std::memcpy(list->block + list->used, value, bytes);
  list->parameters.push_back({list->used, bytes, placeholder});
  list->used = std::min(RoundUp(list->used + bytes, 8), list->room);
  *parameter = reinterpret_cast<aclrtParamHandle>(list->parameters.size());
  return ACL_SUCCESS;
}

aclError CheckLaunchConfig(uint32_t blocks, const aclrtLaunchKernelCfg* config, const char* call) {
  if (blocks == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: numBlocks is 0", call);
  if (config == nullptr || config->numAttrs == 0) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(config->attrs, call, "cfg->attrs"));
  for (size_t i = 0; i < config->numAttrs; ++i) {
    const auto id = static_cast<uint32_t>(config->attrs[i].id);
    if (id < ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE ||
        id > ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no attribute %u", call, id);
    }
  }
  return ACL_SUCCESS;
}

// Launches the kernel with a copy of the block, in which the addresses of placeholders are set. It
// runs once: a kernel of the host has no number of a block.
aclError LaunchBlock(const Function& function, const void* block, size_t bytes,
                     std::span<const Place> places, aclrtStream stream, const char* call) {
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, call, &found));
  Task task = KernelTaskWithArgs(function, block, bytes);
  auto* copy = static_cast<char*>(task.argument);
  for (const Place& place : places) {
    void* data = copy + place.data;
    std::memcpy(copy + place.address, &data, sizeof(data));
  }
  return SubmitTask(*found, std::move(task));
}

// KRN-04: the block of a launch in device memory is read by the call.
aclError LaunchFromDevice(aclrtFuncHandle funcHandle, uint32_t blocks, const void* args,
                          size_t bytes, const aclrtLaunchKernelCfg* config, aclrtStream stream,
                          const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(args, call, "argsData"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, call, &function));
  ACLTAPE_RETURN_IF_FAILED(CheckLaunchConfig(blocks, config, call));
  if (bytes == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: argsSize is 0", call);
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(args, bytes, call, "argsData"));
  return LaunchBlock(*function, args, bytes, {}, stream, call);
}

}  // namespace

aclError aclrtKernelArgsGetHandleMemSize(aclrtFuncHandle funcHandle, size_t* memSize) {
  ACLTAPE_CALL("aclrtKernelArgsGetHandleMemSize");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(memSize, kCall, "memSize"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  *memSize = kHandleBytes;
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsGetMemSize(aclrtFuncHandle funcHandle, size_t userArgsSize,
                                   size_t* actualArgsSize) {
  ACLTAPE_CALL("aclrtKernelArgsGetMemSize");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(actualArgsSize, kCall, "actualArgsSize"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  if (userArgsSize > SIZE_MAX / 2) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes are too many", kCall, userArgsSize);
  }
  *actualArgsSize = RoundUp(userArgsSize, 8);
  return ACL_SUCCESS;
}

// The list lives as long as the process: the interface has no call that ends it.
aclError aclrtKernelArgsInit(aclrtFuncHandle funcHandle, aclrtArgsHandle* argsHandle) {
  ACLTAPE_CALL("aclrtKernelArgsInit");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(argsHandle, kCall, "argsHandle"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  auto list = std::make_unique<ArgumentList>();
  list->function = function;
  list->own = std::make_unique<char[]>(kOwnBytes);
  list->block = list->own.get();
  list->room = kOwnBytes;
  Lists& lists = GetLists();
  std::lock_guard lock(lists.mutex);
  *argsHandle = list->own.get();
  lists.by_handle[*argsHandle] = std::move(list);
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsInitByUserMem(aclrtFuncHandle funcHandle, aclrtArgsHandle argsHandle,
                                      void* userHostMem, size_t actualArgsSize) {
  ACLTAPE_CALL("aclrtKernelArgsInitByUserMem");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(argsHandle, kCall, "argsHandle"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(userHostMem, kCall, "userHostMem"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  if (actualArgsSize == 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: actualArgsSize is 0", kCall);
  }
  auto list = std::make_unique<ArgumentList>();
  list->function = function;
  list->block = static_cast<char*>(userHostMem);
  list->room = actualArgsSize;
  Lists& lists = GetLists();
  std::lock_guard lock(lists.mutex);
  lists.by_handle[argsHandle] = std::move(list);
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void* param, size_t paramSize,
                               aclrtParamHandle* paramHandle) {
  ACLTAPE_CALL("aclrtKernelArgsAppend");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(param, kCall, "param"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(paramHandle, kCall, "paramHandle"));
  if (paramSize == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: paramSize is 0", kCall);
  return Append(argsHandle, param, paramSize, false, paramHandle, kCall);
}

aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle argsHandle,
                                          aclrtParamHandle* paramHandle) {
  ACLTAPE_CALL("aclrtKernelArgsAppendPlaceHolder");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(paramHandle, kCall, "paramHandle"));
  const void* none = nullptr;
  return Append(argsHandle, &none, sizeof(none), true, paramHandle, kCall);
}

aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle argsHandle,
                                             aclrtParamHandle paramHandle, size_t dataSize,
                                             void** bufferAddr) {
  ACLTAPE_CALL("aclrtKernelArgsGetPlaceHolderBuffer");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(bufferAddr, kCall, "bufferAddr"));
  Lists& lists = GetLists();
  std::lock_guard lock(lists.mutex);
  ArgumentList* list = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindList(lists, argsHandle, kCall, &list));
  ListedParameter* parameter = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindParameter(*list, paramHandle, true, kCall, &parameter));
  if (dataSize == 0 || dataSize > list->room - list->used || parameter->placed || list->finalized) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %zu bytes are none or do not fit, the placeholder has its data already, or "
                "the list is finalized",
                kCall, dataSize);
  }
  parameter->placed = list->has_data = true;
  list->places.push_back(
      {static_cast<uint32_t>(parameter->offset), static_cast<uint32_t>(list->used)});
  *bufferAddr = list->block + list->used;
  list->used = std::min(RoundUp(list->used + dataSize, 8), list->room);
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle argsHandle, aclrtParamHandle paramHandle,
                                   void* param, size_t paramSize) {
  ACLTAPE_CALL("aclrtKernelArgsParaUpdate");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(param, kCall, "param"));
  Lists& lists = GetLists();
  std::lock_guard lock(lists.mutex);
  ArgumentList* list = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindList(lists, argsHandle, kCall, &list));
  ListedParameter* parameter = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindParameter(*list, paramHandle, false, kCall, &parameter));
  if (paramSize != parameter->bytes) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the parameter has %zu bytes, not %zu", kCall,
                parameter->bytes, paramSize);
  }
  std::memcpy(list->block + parameter->offset, param, paramSize);
  list->finalized = false;  // until aclrtKernelArgsFinalize is called again
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle) {
  ACLTAPE_CALL("aclrtKernelArgsFinalize");
  Lists& lists = GetLists();
  std::lock_guard lock(lists.mutex);
  ArgumentList* list = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindList(lists, argsHandle, kCall, &list));
  list->finalized = true;
  return ACL_SUCCESS;
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                     aclrtStream stream, aclrtLaunchKernelCfg* cfg,
                                     aclrtArgsHandle argsHandle, void* reserve) {
  ACLTAPE_CALL("aclrtLaunchKernelWithConfig");
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  ACLTAPE_RETURN_IF_FAILED(CheckLaunchConfig(numBlocks, cfg, kCall));
  if (reserve != nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: reserve must be NULL", kCall);
  }
  Lists& lists = GetLists();
  std::lock_guard lock(lists.mutex);
  ArgumentList* list = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindList(lists, argsHandle, kCall, &list));
  if (!list->finalized || list->function != function) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the list is not finalized, or was made for another kernel", kCall);
  }
  return LaunchBlock(*function, list->block, list->used, list->places, stream, kCall);
}

aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                       aclrtStream stream, aclrtLaunchKernelCfg* cfg,
                                       void* hostArgs, size_t argsSize,
                                       aclrtPlaceHolderInfo* placeHolderArray,
                                       size_t placeHolderNum) {
  ACLTAPE_CALL("aclrtLaunchKernelWithHostArgs");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(hostArgs, kCall, "hostArgs"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  ACLTAPE_RETURN_IF_FAILED(CheckLaunchConfig(numBlocks, cfg, kCall));
  if (placeHolderNum != 0) {
    ACLTAPE_RETURN_IF_FAILED(CheckPointer(placeHolderArray, kCall, "placeHolderArray"));
  }
  if (argsSize == 0 || placeHolderNum > kMostParameters) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: argsSize is 0, or there are %zu placeholders",
                kCall, placeHolderNum);
  }
  std::vector<Place> places;
  for (size_t i = 0; i < placeHolderNum; ++i) {
    const aclrtPlaceHolderInfo& info = placeHolderArray[i];
    if (uint64_t{info.addrOffset} + sizeof(void*) > argsSize || info.dataOffset >= argsSize) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: placeholder %zu lies outside of the %zu bytes",
                  kCall, i, argsSize);
    }
    places.push_back({info.addrOffset, info.dataOffset});
  }
  return LaunchBlock(*function, hostArgs, argsSize, places, stream, kCall);
}

aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void* argsData,
                           size_t argsSize, aclrtStream stream) {
  ACLTAPE_CALL("aclrtLaunchKernel");
  return LaunchFromDevice(funcHandle, numBlocks, argsData, argsSize, nullptr, stream, kCall);
}

aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void* argsData,
                             size_t argsSize, aclrtLaunchKernelCfg* cfg, aclrtStream stream) {
  ACLTAPE_CALL("aclrtLaunchKernelV2");
  return LaunchFromDevice(funcHandle, numBlocks, argsData, argsSize, cfg, stream, kCall);
}
