// Device memory between processes, by keys (IPC-01 to IPC-04).
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <map>
#include <mutex>

#include "runtime/device/call.h"
#include "runtime/device/device_heap.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

constexpr size_t kMemoryKeyBytes = 65;
// So many address ranges of closed imports stay reserved, so that tasks which still use them fail.
constexpr size_t kClosedRanges = 64;

std::string KeyOf(const SharedPart& part) {
  char text[kMemoryKeyBytes];
  std::snprintf(text, sizeof(text), "acltape:%x:%x:%x:%zx:%zx", part.name.process,
                part.name.descriptor, part.name.serial, part.offset, part.bytes);
  return text;
}

aclError ReadKey(const char* key, const char* call, SharedPart* part) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(key, call, "key"));
  int end = -1;
  const int read =
      std::sscanf(key, "acltape:%x:%x:%x:%zx:%zx%n", &part->name.process, &part->name.descriptor,
                  &part->name.serial, &part->offset, &part->bytes, &end);
  if (read == 5 && end >= 0 && key[end] == '\0') return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: this is no key of aclrtIpcMemGetExportKey", call);
}

struct ImportedRange {
  char* begin;     // the first byte of its pages
  size_t mapped;   // bytes of its pages
  char* address;   // the program got this address
  uint32_t count;  // imports that were not closed
};

struct ImportedRanges {
  std::mutex mutex;
  std::map<std::string, ImportedRange> by_key;
  std::deque<ImportedRange> closed;
};

ImportedRanges& GetImportedRanges() {
  static ImportedRanges& imports = *new ImportedRanges;
  return imports;
}

// Takes the pages away and keeps their addresses for a while.
void CloseRange(ImportedRanges& imports, const ImportedRange& import) {
  UntrackMemory(import.address);
  mmap(import.begin, import.mapped, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  NoteReserved(import.begin, import.mapped);
  imports.closed.push_back(import);
  if (imports.closed.size() <= kClosedRanges) return;
  const ImportedRange& oldest = imports.closed.front();
  ForgetReserved(oldest.begin);
  munmap(oldest.begin, oldest.mapped);
  imports.closed.pop_front();
}

aclError MapShared(const SharedPart& part, const Device& device, const char* call,
                   ImportedRange* import) {
  std::unique_ptr<SharedFile> file = SharedFile::Open(part.name);
  if (file == nullptr) {
    return Fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                "%s: process %u has ended, or has closed or freed the memory of the key", call,
                part.name.process);
  }
  if (!file->AdmitsUs()) {
    return Fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                "%s: process %u has not allowed process %d; aclrtIpcMemSetImportPid does that",
                call, part.name.process, static_cast<int>(getpid()));
  }
  const size_t first = part.offset / kPageBytes * kPageBytes;
  if (part.offset > file->bytes() || part.bytes > file->bytes() - part.offset) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the key names more bytes than there are", call);
  }
  import->mapped = RoundUp(part.offset + part.bytes - first, kPageBytes);
  import->begin = file->Map(nullptr, first, import->mapped);
  if (import->begin == nullptr) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host cannot map %zu bytes", call,
                import->mapped);
  }
  import->address = import->begin + (part.offset - first);
  import->count = 1;
  TrackMemory({import->address, part.bytes, 0, MemoryKind::kMapped, device.id});
  return ACL_SUCCESS;
}

}  // namespace

aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len, uint64_t flags) {
  ACLTAPE_CALL("aclrtIpcMemGetExportKey");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(devPtr, kCall, "devPtr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(key, kCall, "key"));
  if (size == 0 || len < kMemoryKeyBytes ||
      flags > ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the size is 0, a key of %zu bytes is shorter than %zu, or flags %llu is not "
                "0 or 1",
                kCall, len, kMemoryKeyBytes, static_cast<unsigned long long>(flags));
  }
  SharedPart part;
  ACLTAPE_RETURN_IF_FAILED(ShareMemory(devPtr, size, flags != 0, kCall, &part));
  std::snprintf(key, len, "%s", KeyOf(part).c_str());
  return ACL_SUCCESS;
}

aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num) {
  ACLTAPE_CALL("aclrtIpcMemSetImportPid");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pid, kCall, "pid"));
  SharedPart part;
  ACLTAPE_RETURN_IF_FAILED(ReadKey(key, kCall, &part));
  if (num == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: num is 0", kCall);
  bool room = false;
  bool published = false;
  const bool found = ForShared(part.name, [&](SharedFile& file) {
    published = file.published();
    room = published && file.Allow(pid, num);
  });
  if (found && room) return ACL_SUCCESS;
  if (found && published) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: at most %zu processes can be allowed", kCall,
                SharedFile::kMostProcesses);
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the key is of no memory that this process shares",
              kCall);
}

aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags) {
  ACLTAPE_CALL("aclrtIpcMemImportByKey");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(devPtr, kCall, "devPtr"));
  SharedPart part;
  ACLTAPE_RETURN_IF_FAILED(ReadKey(key, kCall, &part));
  if (flags > ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags %llu is not 0 or 1", kCall,
                static_cast<unsigned long long>(flags));
  }
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  ImportedRanges& imports = GetImportedRanges();
  std::lock_guard lock(imports.mutex);
  auto known = imports.by_key.find(key);
  if (known != imports.by_key.end()) {
    ++known->second.count;
  } else {
    ImportedRange import;
    ACLTAPE_RETURN_IF_FAILED(MapShared(part, context->device(), kCall, &import));
    known = imports.by_key.emplace(key, import).first;
  }
  *devPtr = known->second.address;
  return ACL_SUCCESS;
}

aclError aclrtIpcMemClose(const char* key) {
  ACLTAPE_CALL("aclrtIpcMemClose");
  SharedPart part;
  ACLTAPE_RETURN_IF_FAILED(ReadKey(key, kCall, &part));
  ImportedRanges& imports = GetImportedRanges();
  {
    std::lock_guard lock(imports.mutex);
    auto found = imports.by_key.find(key);
    if (found != imports.by_key.end()) {
      if (--found->second.count == 0) {
        CloseRange(imports, found->second);
        imports.by_key.erase(found);
      }
      return ACL_SUCCESS;
    }
  }
  bool published = false;
  ForShared(part.name, [&](SharedFile& file) {
    published = file.published();
    file.Withdraw();
  });
  if (published) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: this process neither shares the memory of the key nor has imported it", kCall);
}

// Numbers are those of this machine; containers have no numbers of their own here.
aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  ACLTAPE_CALL("aclrtDeviceGetBareTgid");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pid, kCall, "pid"));
  *pid = static_cast<int32_t>(getpid());
  return ACL_SUCCESS;
}
