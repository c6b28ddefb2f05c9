#include "tests/opapi/device_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <csignal>

#include "aclnn/aclnn_base.h"
#include "runtime/opapi/base/objects.h"

namespace acltape::opapi {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kRegionBytes = size_t{1} << 30;  // address space; no page is ever used, or zeros

char* g_region = nullptr;
std::atomic<int> g_accesses{0};
struct sigaction g_previous;

// Counts an access of the region and makes its page readable, so that the access then succeeds.
void OnFault(int signal, siginfo_t* info, void* context) {
  auto* address = static_cast<char*>(info->si_addr);
  if (address < g_region || address >= g_region + kRegionBytes) {
    sigaction(signal, &g_previous, nullptr);  // the instruction faults again, for the others
    return;
  }
  ++g_accesses;
  const size_t page = static_cast<size_t>(address - g_region) / kPage * kPage;
  mprotect(g_region + page, kPage, PROT_READ | PROT_WRITE);
  (void)context;
}

void MakeRegion() {
  if (g_region != nullptr) return;
  void* memory =
      mmap(nullptr, kRegionBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("the unreadable region cannot be mapped");
  g_region = static_cast<char*>(memory);
}

// Gives each storage a place of its own in the region.
class Places {
 public:
  void* Of(void* storage, size_t bytes) {
    if (storage == nullptr) return nullptr;
    const auto [entry, fresh] = places_.try_emplace(storage, next_);
    if (fresh) next_ += (bytes + 2 * kPage - 1) / kPage * kPage;
    if (next_ > kRegionBytes) throw std::runtime_error("the unreadable region is too small");
    return g_region + entry->second;
  }

 private:
  std::map<void*, size_t> places_;
  size_t next_ = 0;
};

void ExpectNoAccess(const char* name, const Args& args) {
  const HostAccess host = PrepareOverUnreadableMemory(name, args);
  EXPECT_EQ(host.accesses, 0) << name << " reads or writes device memory in its first phase";
}

// Every call of this program's tests is tried so.
[[maybe_unused]] const bool g_installed = (BeforeEachCall() = ExpectNoAccess, true);

}  // namespace

HostAccess PrepareOverUnreadableMemory(const char* name, const Args& args) {
  MakeRegion();
  TestStream();
  PackedCall call(name, args);
  Places places;
  const auto move = [&places](aclTensor* tensor, const at::Tensor& model) {
    aclSetRawTensorAddr(tensor, places.Of(StorageOf(model), model.storage().nbytes()));
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (const auto* tensor = std::get_if<at::Tensor>(&args[i])) {
      move(call.tensor(static_cast<int>(i)), *tensor);
    } else if (const auto* tensors = std::get_if<std::vector<at::Tensor>>(&args[i])) {
      auto* list = acl::Unpack<aclTensorList*>(call.values()[i]);
      for (size_t k = 0; k < tensors->size(); ++k) move(list->tensors[k], (*tensors)[k]);
    }
  }
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &g_previous);
  g_accesses = 0;
  HostAccess result;
  result.status = call.Prepare();
  sigaction(SIGSEGV, &g_previous, nullptr);
  result.accesses = g_accesses;
  if (result.accesses > 0) {  // fresh pages for the next call, unreadable again
    mmap(g_region, kRegionBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
  }
  if (result.status == OK) aclDestroyAclOpExecutor(call.executor());
  return result;
}

}  // namespace acltape::opapi
