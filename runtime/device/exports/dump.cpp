// Dumps of what operators read and write (section 34 of the rules).
#include "runtime/device/dump/dump.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "acl/acl_op_compiler.h"
#include "runtime/device/call.h"
#include "runtime/device/configuration.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

aclError CheckDumpType(uint32_t type, const char* call) {
  if (type == ACL_OP_DUMP_OP_AICORE_ARGS) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: dumpType is %u; there is only 1", call, type);
}

// True if the path leaves the folder that it begins in.
bool HasParent(const std::string& path) { return ("/" + path + "/").find("/../") != path.npos; }

// Reads what the program says of one of its tensors.
aclError ReadTensor(const acldumpTensorInfo& tensor, size_t index, const char* call,
                    SavedTensor* saved) {
  const auto fail = [&](const char* what) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: tensors[%zu] %s", call, index, what);
  };
  if (tensor.shapeNum > ACL_DUMP_MAX_SHAPE_NUM || tensor.originShapeNum > ACL_DUMP_MAX_SHAPE_NUM) {
    return fail("has more than 25 sizes");
  }
  if (tensor.type > ACL_DUMP_TENSOR_WORKSPACE) return fail("has a type that does not exist");
  if (tensor.addrType != ACL_DUMP_ADDR_RAW || tensor.placement != ACL_DUMP_PLACEMENT_DEVICE) {
    return fail("has no plain address in device memory");
  }
  if (tensor.tensorAddr == nullptr || tensor.tensorSize == 0) return fail("has no bytes");
  ACLTAPE_RETURN_IF_FAILED(
      CheckMemory(tensor.tensorAddr, tensor.tensorSize, call, "tensorAddr", MemoryAccess::kRead));
  *saved = {static_cast<aclDataType>(tensor.dataType),
            static_cast<aclFormat>(tensor.format),
            {tensor.shape, tensor.shape + tensor.shapeNum},
            {tensor.originShape, tensor.originShape + tensor.originShapeNum},
            tensor.tensorAddr,
            tensor.tensorSize,
            static_cast<SavedTensor::Role>(tensor.type)};
  return ACL_SUCCESS;
}

// The folder of the current device for what failed.
aclError FindExceptionFolder(const char* call, std::string* folder) {
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *folder = ExceptionFolder(context->device().id);
  if (!folder->empty()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_FAILURE,
              "%s: no dump of failed operators is configured; give dump_scene to aclInit", call);
}

}  // namespace

aclError acldumpGetExceptionInfoPath(char* path, size_t maxLen) {
  ACLTAPE_CALL("acldumpGetExceptionInfoPath");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(path, kCall, "path"));
  if (maxLen <= 1) return Fail(ACL_ERROR_INVALID_PARAM, "%s: maxLen is %zu", kCall, maxLen);
  std::string folder;
  ACLTAPE_RETURN_IF_FAILED(FindExceptionFolder(kCall, &folder));
  if (folder.size() >= maxLen) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: maxLen is %zu, and the path needs %zu bytes", kCall,
                maxLen, folder.size() + 1);
  }
  std::memcpy(path, folder.c_str(), folder.size() + 1);
  return ACL_SUCCESS;
}

aclError acldumpSaveExceptionInfo(const char* fileName, const char* userTag,
                                  const acldumpTensorInfo* tensors, size_t tensorCount) {
  ACLTAPE_CALL("acldumpSaveExceptionInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(fileName, kCall, "fileName"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(tensors, kCall, "tensors"));
  if (*fileName == '\0' || HasParent(fileName)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: fileName \"%s\" is empty, or leaves its folder by ..",
                kCall, fileName);
  }
  if (tensorCount == 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: tensorCount is 0", kCall);
  std::string folder;
  ACLTAPE_RETURN_IF_FAILED(FindExceptionFolder(kCall, &folder));
  std::vector<SavedTensor> saved(tensorCount);
  for (size_t i = 0; i < tensorCount; ++i) {
    ACLTAPE_RETURN_IF_FAILED(ReadTensor(tensors[i], i, kCall, &saved[i]));
  }
  if (WriteException(folder + fileName, userTag != nullptr ? userTag : "", saved)) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_FAILURE, "%s: %s%s cannot be written", kCall, folder.c_str(), fileName);
}

aclError aclmdlInitDump(void) {
  ACLTAPE_CALL("aclmdlInitDump");
  if (BeginModelDump()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_ALREADY_RUN, "%s: aclInit was given settings for dumps", kCall);
}

aclError aclmdlSetDump(const char* dumpCfgPath) {
  ACLTAPE_CALL("aclmdlSetDump");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(dumpCfgPath, kCall, "dumpCfgPath"));
  std::string text;
  ACLTAPE_RETURN_IF_FAILED(ReadConfiguration(dumpCfgPath, kCall, &text));
  DumpSettings settings;
  ACLTAPE_RETURN_IF_FAILED(
      ReadDumpSettings(nlohmann::json::parse(text.empty() ? "{}" : text), kCall, &settings));
  if (SetModelDump(settings)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_NOT_RUN, "%s: call aclmdlInitDump first", kCall);
}

aclError aclmdlFinalizeDump(void) {
  ACLTAPE_CALL("aclmdlFinalizeDump");
  if (EndModelDump()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_NOT_RUN, "%s: call aclmdlInitDump first", kCall);
}

aclError acldumpRegCallback(acldumpMessageCallback messageCallback, int32_t flag) {
  ACLTAPE_CALL("acldumpRegCallback");
  ACLTAPE_RETURN_IF_FAILED(
      CheckPointer(reinterpret_cast<void*>(messageCallback), kCall, "messageCallback"));
  if (flag != 0) {
    return Fail(ACL_ERROR_FAILURE, "%s: flag is %d; only 0 is supported", kCall, flag);
  }
  SetDumpCallback(messageCallback);
  return ACL_SUCCESS;
}

void acldumpUnregCallback(void) { SetDumpCallback(nullptr); }

const char* acldumpGetPath(acldumpType dumpType) { return DumpPathOf(dumpType); }

aclError aclopStartDumpArgs(uint32_t dumpType, const char* path) {
  ACLTAPE_CALL("aclopStartDumpArgs");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(path, kCall, "path"));
  ACLTAPE_RETURN_IF_FAILED(CheckDumpType(dumpType, kCall));
  if (*path == '\0') return Fail(ACL_ERROR_INVALID_PARAM, "%s: path is empty", kCall);
  if (BeginArgumentDump(path)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_ALREADY_RUN, "%s: call aclopStopDumpArgs first", kCall);
}

aclError aclopStopDumpArgs(uint32_t dumpType) {
  ACLTAPE_CALL("aclopStopDumpArgs");
  ACLTAPE_RETURN_IF_FAILED(CheckDumpType(dumpType, kCall));
  if (EndArgumentDump()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_DUMP_NOT_RUN, "%s: call aclopStartDumpArgs first", kCall);
}
