// Binaries of kernels and their functions (KRN-01 to KRN-03, KRN-05).
#include "runtime/device/binary.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

// Modes of ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE.
constexpr int32_t kBuiltIn = 0;
constexpr int32_t kBesideJson = 1;
constexpr int32_t kFromData = 2;

// The binary of each function. Functions live as long as the process, binaries do not.
struct Owners {
  std::mutex mutex;
  std::map<const Function*, Binary*> by_function;
};

Owners& GetOwners() {
  static Owners& owners = *new Owners;
  return owners;
}

struct LoadOptions {
  int32_t cpu_mode = -1;  // -1: not given
  bool lazy = false;
};

aclError ReadOptions(const aclrtBinaryLoadOptions* given, const char* call, LoadOptions* options) {
  if (given == nullptr) return ACL_SUCCESS;
  if (given->numOpt != 0) {
    ACLTAPE_RETURN_IF_FAILED(CheckPointer(given->options, call, "options->options"));
  }
  for (size_t i = 0; i < given->numOpt; ++i) {
    const aclrtBinaryLoadOption& option = given->options[i];
    switch (option.type) {
      case ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD:
        options->lazy = option.value.isLazyLoad != 0;
        break;
      case ACL_RT_BINARY_LOAD_OPT_MAGIC:
        break;  // means a kernel that a device would run
      case ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE:
        options->cpu_mode = option.value.cpuKernelMode;
        break;
      default:
        return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no option %u", call,
                    static_cast<uint32_t>(option.type));
    }
  }
  return ACL_SUCCESS;
}

// Programs try several binaries and go on in other ways when these are refused, so that once is
// enough.
aclError RefuseDeviceCode(const char* call) {
  static std::once_flag once;
  std::call_once(once, [call] {
    std::fprintf(stderr,
                 "acltape soft device: %s gives %d: kernels that were compiled for the device's "
                 "cores cannot run here; what the program does without them is what runs\n",
                 call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  });
  return Fail(
      ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
      "%s: a binary of the device's cores cannot run on the CPU; kernels of the AI CPU can, "
      "with ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE",
      call);
}

aclError ReadFile(const std::string& path, const char* call, std::string* bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(ACL_ERROR_RT_FILE_OPEN, "%s: %s cannot be read", call, path.c_str());
  bytes->assign(std::istreambuf_iterator<char>(file), {});
  return ACL_SUCCESS;
}

aclError OpenLibrary(const std::string& path, const char* call, void** library) {
  *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (*library != nullptr) return ACL_SUCCESS;
  const char* why = dlerror();
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: this is no library of this machine: %s", call,
              why != nullptr ? why : "");
}

// Functions by kernel: {"Add": {"opInfo": {"functionName": "RunAdd", ...}}, ...}.
aclError ReadEntries(const std::string& text, const char* call,
                     std::map<std::string, std::string>* entries) {
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the file is no JSON object", call);
  }
  for (const auto& [kernel, row] : parsed.items()) {
    std::string function = kernel;
    if (row.is_object() && row.contains("opInfo") && row["opInfo"].is_object()) {
      const auto& info = row["opInfo"];
      if (info.contains("functionName") && info["functionName"].is_string()) {
        function = info["functionName"].get<std::string>();
      }
    }
    (*entries)[kernel] = function;
  }
  return ACL_SUCCESS;
}

aclError Enter(std::unique_ptr<Binary> binary, const std::string& image, bool lazy,
               const char* call, aclrtBinHandle* handle) {
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  binary->image_bytes = image.size();
  if (!lazy) {
    binary->device_image = AllocateDeviceMemory(context->device(), image.size(), 0, call);
    if (binary->device_image == nullptr) {
      return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no room for %zu bytes", call, image.size());
    }
    std::memcpy(binary->device_image, image.data(), image.size());
  }
  binary->handle = AllocateHandle(HandleKind::kBinary, binary.get());
  if (binary->handle == nullptr) {
    if (binary->device_image != nullptr) FreeMemory(binary->device_image, MemoryKind::kDevice);
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle left", call);
  }
  *handle = binary.release()->handle;
  return ACL_SUCCESS;
}

// The function of the library of this name, as the kernel of the binary.
aclError Resolve(Binary& binary, const std::string& kernel, const std::string& entry,
                 const char* call, aclrtFuncHandle* handle) {
  std::lock_guard lock(binary.mutex);
  Function*& function = binary.kernels[kernel];
  if (function == nullptr) {
    auto* address = reinterpret_cast<HostEntry>(dlsym(binary.library, entry.c_str()));
    if (address != nullptr) function = FunctionOf(kernel.c_str(), address);
    if (function == nullptr) {
      binary.kernels.erase(kernel);
      return Fail(ACL_ERROR_RT_KERNEL_LOOKUP, "%s: the library has no function %s", call,
                  entry.c_str());
    }
    Owners& owners = GetOwners();
    std::lock_guard owners_lock(owners.mutex);
    owners.by_function[function] = &binary;
  }
  *handle = function->handle;
  return ACL_SUCCESS;
}

struct BinaryData {
  const void* data;
  size_t bytes;
  HandleBlock* handle;
};

}  // namespace

namespace acltape::device {

Binary* BinaryOf(const Function& function) {
  Owners& owners = GetOwners();
  std::lock_guard lock(owners.mutex);
  auto found = owners.by_function.find(&function);
  return found != owners.by_function.end() ? found->second : nullptr;
}

void CallBinaryCallback(const Task& kernel, aclrtExceptionInfo* info) {
  if (kernel.kind != TaskKind::kKernel || !TakesBytes(kernel)) return;
  const Function* function = FunctionOf(kernel);
  Binary* binary = function != nullptr ? BinaryOf(*function) : nullptr;
  if (binary == nullptr) return;
  aclrtOpExceptionCallback callback = nullptr;
  void* data = nullptr;
  {
    std::lock_guard lock(binary->mutex);
    callback = binary->on_exception;
    data = binary->exception_data;
  }
  if (callback != nullptr) callback(info, data);
}

aclError FindBinary(aclrtBinHandle handle, const char* call, Binary** binary) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "binHandle"));
  *binary = ObjectOf<Binary>(handle, HandleKind::kBinary);
  if (*binary != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a loaded binary", call, handle);
}

aclError FindKernel(aclrtFuncHandle handle, const char* call, Function** function) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "funcHandle"));
  *function = ObjectOf<Function>(handle, HandleKind::kFunction);
  if (*function != nullptr && BinaryOf(**function) != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is no function of a loaded binary", call,
              handle);
}

}  // namespace acltape::device

aclError aclrtBinaryLoadFromFile(const char* binPath, aclrtBinaryLoadOptions* options,
                                 aclrtBinHandle* binHandle) {
  ACLTAPE_CALL("aclrtBinaryLoadFromFile");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(binPath, kCall, "binPath"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(binHandle, kCall, "binHandle"));
  LoadOptions read;
  ACLTAPE_RETURN_IF_FAILED(ReadOptions(options, kCall, &read));
  std::string path = binPath;
  std::string text;
  ACLTAPE_RETURN_IF_FAILED(ReadFile(path, kCall, &text));
  const bool json = path.ends_with(".json");
  if (read.cpu_mode == -1 && !json) return RefuseDeviceCode(kCall);
  if (read.cpu_mode == kBuiltIn) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: the device has no built-in AI CPU kernels",
                kCall);
  }
  if (!json || (read.cpu_mode != -1 && read.cpu_mode != kBesideJson)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: mode %d does not go with the file %s", kCall,
                read.cpu_mode, binPath);
  }
  auto binary = std::make_unique<Binary>();
  ACLTAPE_RETURN_IF_FAILED(ReadEntries(text, kCall, &binary->entries));
  path.replace(path.size() - 5, 5, ".so");
  std::string image;
  ACLTAPE_RETURN_IF_FAILED(ReadFile(path, kCall, &image));
  ACLTAPE_RETURN_IF_FAILED(OpenLibrary(path, kCall, &binary->library));
  return Enter(std::move(binary), image, read.lazy, kCall, binHandle);
}

aclError aclrtBinaryLoadFromData(const void* data, size_t length,
                                 const aclrtBinaryLoadOptions* options, aclrtBinHandle* binHandle) {
  ACLTAPE_CALL("aclrtBinaryLoadFromData");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(data, kCall, "data"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(binHandle, kCall, "binHandle"));
  if (length == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: length is 0", kCall);
  LoadOptions read;
  ACLTAPE_RETURN_IF_FAILED(ReadOptions(options, kCall, &read));
  if (read.cpu_mode == -1) return RefuseDeviceCode(kCall);
  if (read.cpu_mode != kFromData) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: mode %d is for files", kCall, read.cpu_mode);
  }
  const std::string image(static_cast<const char*>(data), length);
  const int file = memfd_create("acltape-kernels", MFD_CLOEXEC);
  if (file < 0 || write(file, image.data(), length) != static_cast<ssize_t>(length)) {
    if (file >= 0) close(file);
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: the host cannot keep the library", kCall);
  }
  auto binary = std::make_unique<Binary>();
  binary->from_data = true;
  // Through the process's own number: the loader knows libraries by their paths.
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
  const aclError code = OpenLibrary(path, kCall, &binary->library);
  if (code != ACL_SUCCESS) {
    close(file);
    return code;
  }
  // The file stays open, so that no other library gets the same path.
  return Enter(std::move(binary), image, read.lazy, kCall, binHandle);
}

aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle) {
  ACLTAPE_CALL("aclrtBinaryUnLoad");
  Binary* binary = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindBinary(binHandle, kCall, &binary));
  WipeHandle(binary->handle);
  {
    Owners& owners = GetOwners();
    std::lock_guard lock(owners.mutex);
    std::erase_if(owners.by_function, [&](const auto& row) { return row.second == binary; });
  }
  if (binary->device_image != nullptr) FreeMemory(binary->device_image, MemoryKind::kDevice);
  delete binary;
  return ACL_SUCCESS;
}

aclrtBinary aclrtCreateBinary(const void* data, size_t dataLen) {
  if (data == nullptr || dataLen == 0) {
    Fail(ACL_ERROR_INVALID_PARAM, "aclrtCreateBinary: data is NULL, or dataLen is 0");
    return nullptr;
  }
  auto* binary = new BinaryData{data, dataLen, nullptr};
  binary->handle = AllocateHandle(HandleKind::kBinaryData, binary);
  if (binary->handle != nullptr) return binary->handle;
  delete binary;
  return nullptr;
}

aclError aclrtDestroyBinary(aclrtBinary binary) {
  ACLTAPE_CALL("aclrtDestroyBinary");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(binary, kCall, "binary"));
  auto* found = ObjectOf<BinaryData>(binary, HandleKind::kBinaryData);
  if (found == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is no live binary", kCall, binary);
  }
  WipeHandle(found->handle);
  delete found;
  return ACL_SUCCESS;
}

// Such binaries are of the device's cores alone.
aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle* binHandle) {
  ACLTAPE_CALL("aclrtBinaryLoad");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(binary, kCall, "binary"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(binHandle, kCall, "binHandle"));
  if (ObjectOf<BinaryData>(binary, HandleKind::kBinaryData) == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is no live binary", kCall, binary);
  }
  return RefuseDeviceCode(kCall);
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char* kernelName,
                                aclrtFuncHandle* funcHandle) {
  ACLTAPE_CALL("aclrtBinaryGetFunction");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(kernelName, kCall, "kernelName"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(funcHandle, kCall, "funcHandle"));
  Binary* binary = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindBinary(binHandle, kCall, &binary));
  auto entry = binary->entries.find(kernelName);
  if (entry != binary->entries.end()) {
    return Resolve(*binary, kernelName, entry->second, kCall, funcHandle);
  }
  std::lock_guard lock(binary->mutex);
  auto registered = binary->kernels.find(kernelName);
  if (registered == binary->kernels.end()) {
    return Fail(ACL_ERROR_RT_KERNEL_LOOKUP, "%s: the binary has no kernel %s", kCall, kernelName);
  }
  *funcHandle = registered->second->handle;
  return ACL_SUCCESS;
}

aclError aclrtRegisterCpuFunc(const aclrtBinHandle handle, const char* funcName,
                              const char* kernelName, aclrtFuncHandle* funcHandle) {
  ACLTAPE_CALL("aclrtRegisterCpuFunc");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(funcName, kCall, "funcName"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(kernelName, kCall, "kernelName"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(funcHandle, kCall, "funcHandle"));
  Binary* binary = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindBinary(handle, kCall, &binary));
  if (!binary->from_data) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the binary was loaded from a file, which names its kernels", kCall);
  }
  return Resolve(*binary, kernelName, funcName, kCall, funcHandle);
}

aclError aclrtFunctionGetBinary(const aclrtFuncHandle funcHandle, aclrtBinHandle* binHandle) {
  ACLTAPE_CALL("aclrtFunctionGetBinary");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(binHandle, kCall, "binHandle"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  *binHandle = BinaryOf(*function)->handle;
  return ACL_SUCCESS;
}

aclError aclrtBinaryGetDevAddress(const aclrtBinHandle binHandle, void** binAddr, size_t* binSize) {
  ACLTAPE_CALL("aclrtBinaryGetDevAddress");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(binAddr, kCall, "binAddr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(binSize, kCall, "binSize"));
  Binary* binary = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindBinary(binHandle, kCall, &binary));
  *binAddr = binary->device_image;
  *binSize = binary->image_bytes;
  return ACL_SUCCESS;
}

aclError aclrtBinaryGetGlobal(aclrtBinHandle binHandle, const char* name, void** dptr,
                              size_t* size) {
  ACLTAPE_CALL("aclrtBinaryGetGlobal");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(name, kCall, "name"));
  if (dptr == nullptr && size == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: dptr and size are both NULL", kCall);
  }
  Binary* binary = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindBinary(binHandle, kCall, &binary));
  void* address = dlsym(binary->library, name);
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (address == nullptr ||
      dladdr1(address, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
              RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) {
    return Fail(ACL_ERROR_RT_SYMBOL_NOT_FOUND, "%s: the binary has no variable %s", kCall, name);
  }
  if (dptr != nullptr) *dptr = address;
  if (size != nullptr) *size = symbol->st_size;
  return ACL_SUCCESS;
}

aclError aclrtBinarySetExceptionCallback(aclrtBinHandle binHandle,
                                         aclrtOpExceptionCallback callback, void* userData) {
  ACLTAPE_CALL("aclrtBinarySetExceptionCallback");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(reinterpret_cast<void*>(callback), kCall, "callback"));
  Binary* binary = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindBinary(binHandle, kCall, &binary));
  std::lock_guard lock(binary->mutex);
  binary->on_exception = callback;
  binary->exception_data = userData;
  return ACL_SUCCESS;
}

// A kernel of the AI CPU lies on no core.
aclError aclrtGetFunctionAddr(aclrtFuncHandle funcHandle, void** aicAddr, void** aivAddr) {
  ACLTAPE_CALL("aclrtGetFunctionAddr");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(aicAddr, kCall, "aicAddr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(aivAddr, kCall, "aivAddr"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  *aicAddr = *aivAddr = nullptr;
  return ACL_SUCCESS;
}

aclError aclrtGetFunctionSize(aclrtFuncHandle funcHandle, size_t* aicSize, size_t* aivSize) {
  ACLTAPE_CALL("aclrtGetFunctionSize");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(aicSize, kCall, "aicSize"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(aivSize, kCall, "aivSize"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  *aicSize = *aivSize = 0;
  return ACL_SUCCESS;
}

aclError aclrtGetFunctionAttribute(aclrtFuncHandle funcHandle, aclrtFuncAttribute attrType,
                                   int64_t* attrValue) {
  ACLTAPE_CALL("aclrtGetFunctionAttribute");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(attrValue, kCall, "attrValue"));
  Function* function = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindKernel(funcHandle, kCall, &function));
  if (attrType != ACL_FUNC_ATTR_KERNEL_TYPE) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: attribute %u is of kernels of the cores",
                kCall, static_cast<uint32_t>(attrType));
  }
  *attrValue = ACL_KERNEL_TYPE_AICPU;
  return ACL_SUCCESS;
}
