// The two phases of every operator call.
#include "runtime/opapi/stub.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "meaning/acl_operators.h"
#include "runtime/captured_stream.h"
#include "runtime/kernel_memory.h"
#include "runtime/opapi/base/dtype.h"
#include "runtime/opapi/base/live.h"
#include "runtime/opapi/engine/dump.h"
#include "runtime/opapi/engine/kernel_library.h"
#include "runtime/opapi/engine/saturation.h"
#include "runtime/opapi/engine/tensor_blocks.h"
#include "runtime/opapi/engine/waiting_kernel.h"
#include "runtime/prepared_launch.h"
#include "runtime/waiting_launch.h"

namespace acltape::opapi {
namespace {

using acl::OperatorInfo;

// Binds the call with the kernel library of this process. Sets the thread's message when it fails.
aclnnStatus Bind(const OperatorInfo& op, const acl::ArgValue* args,
                 std::unique_ptr<Kernel>* kernel) {
  const char* why = nullptr;
  bool no_memory = false;
  const KernelLibrary* library = ThisKernelLibrary(&why, &no_memory);
  if (library == nullptr) {
    return Reject(no_memory ? ACL_ERROR_RT_MEMORY_ALLOCATION : kFindKernelError,
                  std::string(op.name) + ": " + why);
  }
  Kernel* bound = nullptr;
  const aclnnStatus status = library->bind(op, args, &bound);
  kernel->reset(bound);
  return status;
}

// The memory of a call's tensors. Most calls have few, which need no allocation.
class MemoryUses {
 public:
  void Add(const SoftMemoryUse& use) {
    if (count_ < std::size(few_)) {
      few_[count_++] = use;
      return;
    }
    if (many_.empty()) many_.assign(few_, few_ + count_);
    many_.push_back(use);
    ++count_;
  }
  const SoftMemoryUse* data() const { return many_.empty() ? few_ : many_.data(); }
  size_t size() const { return count_; }

 private:
  size_t count_ = 0;
  SoftMemoryUse few_[4];
  std::vector<SoftMemoryUse> many_;
};

// A first phase leaves this for the second one, and a launch for the stream's worker.
struct PreparedKernel : BoundTask {
  std::unique_ptr<Kernel> kernel;
  WaitingKernel* waiting = nullptr;  // the kernel, where it waits for other ranks
  // SoftMemoryGeneration() when a run found the memory good.
  std::atomic<uint64_t> good_at{0};
  const OperatorInfo* op = nullptr;
  uint32_t thread = 0;  // the system's number of the thread that called the first phase
  MemoryUses memory;
  std::unique_ptr<DumpedCall> dumped;           // null while no dump is on
  std::unique_ptr<SaturatedOutputs> saturated;  // null on streams whose results do not saturate
};

// No block has so many bytes.
constexpr uint64_t kNoSuchBytes = uint64_t{1} << 62;

// Bytes from the tensor's address, in front of its offset, to the end of its last element; 0 for a
// view without elements, kNoSuchBytes where no number holds them. A tensor in FRACTAL_NZ has those
// of its blocks.
uint64_t SpanOf(const aclTensor& tensor) {
  if (std::ranges::count(tensor.sizes, 0) != 0) return 0;
  if (tensor.offset < 0) return kNoSuchBytes;
  acl::BlockedLayout blocks;
  if (BlocksOf(tensor, &blocks)) {
    int64_t bytes = 0;
    BytesOfElements(tensor.dtype, blocks.elements() + tensor.offset, &bytes);
    return static_cast<uint64_t>(bytes);
  }
  int64_t elements = 1, bytes = 0;
  bool too_many = __builtin_add_overflow(elements, tensor.offset, &elements);
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    int64_t reach = 0;
    too_many |= __builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &reach);
    too_many |= __builtin_add_overflow(elements, reach, &elements);
  }
  too_many |= !BytesOfElements(tensor.dtype, elements, &bytes);
  return too_many || bytes < 0 ? kNoSuchBytes
                               : std::min(static_cast<uint64_t>(bytes), kNoSuchBytes);
}

// A view lies in the block of its tensor's address, so all from there to its end has to be memory
// of one block: an offset must not reach another one.
void AddMemory(const aclTensor* tensor, const acl::ArgInfo& argument, MemoryUses* memory) {
  if (tensor == nullptr || tensor->address == nullptr) return;
  const uint64_t bytes = SpanOf(*tensor);
  if (bytes == 0) return;
  // Names of the table are literals, so they end with a zero byte.
  memory->Add(
      {tensor->address, bytes, argument.name.data(), argument.direction == acl::Direction::kIn});
}

void AddMemoryOf(const OperatorInfo& op, const acl::ArgValue* args, MemoryUses* memory) {
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (op.args[i].kind == acl::ArgKind::kTensor) {
      AddMemory(acl::Unpack<const aclTensor*>(args[i]), op.args[i], memory);
    } else if (op.args[i].kind == acl::ArgKind::kTensorList && args[i].pointer != nullptr) {
      for (const aclTensor* member : acl::Unpack<const aclTensorList*>(args[i])->tensors) {
        AddMemory(member, op.args[i], memory);
      }
    }
  }
}

uint32_t ThisThread() {
  static thread_local const auto number = static_cast<uint32_t>(gettid());
  return number;
}

// True for operators that take a group's name. The names of arguments are looked at once.
bool Communicates(const OperatorInfo& op) {
  static const std::vector<bool>& rows = *new std::vector<bool>([] {
    std::vector<bool> all(acl::OperatorCount());
    for (uint32_t i = 0; i < all.size(); ++i)
      all[i] = meaning::Communicates(acl::OperatorAt(i).name);
    return all;
  }());
  return rows[op.index];
}

// Binds the call for one launch, or for all replays of a captured one.
aclnnStatus BindPrepared(const OperatorInfo& op, const acl::ArgValue* args,
                         std::unique_ptr<PreparedKernel>* prepared) {
  auto made = std::make_unique<PreparedKernel>();
  if (const aclnnStatus status = Bind(op, args, &made->kernel)) return status;
  made->op = &op;
  if (Communicates(op)) made->waiting = dynamic_cast<WaitingKernel*>(made->kernel.get());
  AddMemoryOf(op, args, &made->memory);
  made->thread = ThisThread();
  if (const uint32_t what = SoftDumps(); what != 0) [[unlikely]]
    made->dumped = std::make_unique<DumpedCall>(op, args, what);
  if (SoftSaturates()) [[unlikely]]
    made->saturated = std::make_unique<SaturatedOutputs>(op, args);
  *prepared = std::move(made);
  return OK;
}

// The kernel is not run over memory that is gone: a worker would end the process.
aclError CheckMemory(PreparedKernel* prepared) {
  static const uint64_t* const generation = SoftMemoryGeneration();
  const uint64_t now = __atomic_load_n(generation, __ATOMIC_ACQUIRE);
  if (prepared->good_at.load(std::memory_order_relaxed) == now) return ACL_SUCCESS;
  const aclError gone =
      SoftCheckMemory(prepared->op->name.data(), prepared->memory.data(), prepared->memory.size());
  if (gone == ACL_SUCCESS) {
    prepared->good_at.store(now, std::memory_order_relaxed);
  } else if (prepared->waiting != nullptr) {
    prepared->waiting->GiveUp(SoftErrorMessage());
  }
  return gone;
}

aclError RunPrepared(void* bound) {
  auto* prepared = static_cast<PreparedKernel*>(bound);
  if (const aclError gone = CheckMemory(prepared)) [[unlikely]]
    return gone;
  Kernel* kernel = prepared->kernel.get();
  if (prepared->dumped == nullptr && prepared->saturated == nullptr) [[likely]]
    return kernel->run()(kernel);
  if (prepared->dumped != nullptr) prepared->dumped->Before();
  const aclError code = kernel->run()(kernel);
  if (code != ACL_SUCCESS) return code;
  if (prepared->saturated != nullptr) prepared->saturated->Saturate();
  if (prepared->dumped != nullptr) prepared->dumped->After();
  return code;
}

// A run finds memory that is gone, too.
bool PreparedIsReady(void* bound) {
  auto* prepared = static_cast<PreparedKernel*>(bound);
  return CheckMemory(prepared) != ACL_SUCCESS || prepared->waiting->Ready();
}

// Why first phases were refused, by operator: the newest reason each. A framework may go on after a
// refusal and launch without an executor, in another thread and with no more to tell.
struct Refusals {
  std::mutex mutex;
  std::map<uint32_t, std::string> reasons;
};

Refusals& GetRefusals() {
  static Refusals& refusals = *new Refusals;  // programs may call operators at exit
  return refusals;
}

void NoteRefusal(uint32_t op_index) {
  const std::string reason = SoftErrorMessage();
  Refusals& refusals = GetRefusals();
  const std::lock_guard lock(refusals.mutex);
  refusals.reasons[op_index] = reason;
}

// "" where no first phase of the operator was refused since it was last asked for.
std::string TakeRefusal(uint32_t op_index) {
  Refusals& refusals = GetRefusals();
  const std::lock_guard lock(refusals.mutex);
  const auto found = refusals.reasons.find(op_index);
  if (found == refusals.reasons.end()) return "";
  std::string reason = std::move(found->second);
  refusals.reasons.erase(found);
  return reason;
}

void DropPrepared(void* bound) { delete static_cast<PreparedKernel*>(bound); }

aclnnStatus PrepareCall(const OperatorInfo& op, const acl::ArgValue* args, uint64_t* workspace_size,
                        aclOpExecutor** executor) {
  if (workspace_size == nullptr || executor == nullptr) {
    return Reject(kParamNull, std::string(op.name) + ": workspaceSize or executor is NULL.");
  }
  *workspace_size = 0;
  *executor = nullptr;
  // Names of the table are literals, so they end with a zero byte.
  if (const aclError fault = SoftInjectedFault(op.workspace_name.data())) return fault;
  try {
    if (const aclnnStatus status = CheckObjects(op.workspace_name.data(), op, args)) return status;
    std::unique_ptr<PreparedKernel> prepared;
    if (const aclnnStatus status = BindPrepared(op, args, &prepared)) return status;
    aclOpExecutor* made = CreateExecutor();
    if (made == nullptr) return Reject(kInner, std::string(op.name) + ": no memory is left.");
    made->op = &op;
    made->args.assign(args, args + op.arg_count);
    made->workspace_size = prepared->kernel->workspace_size();
    made->task = std::move(prepared);
    *workspace_size = made->workspace_size;
    *executor = made;
    return OK;
  } catch (const std::exception& error) {
    return Reject(kInner, std::string(op.name) + ": " + error.what());
  }
}

aclError Submit(aclrtStream stream, const char* name, std::unique_ptr<PreparedKernel> prepared) {
  const uint32_t prepared_by = prepared->thread;
  if (prepared->saturated != nullptr && !prepared->saturated->BeginOn(stream)) {
    prepared->saturated.reset();
  }
  if (prepared->waiting == nullptr) [[likely]] {
    return SoftLaunchPreparedKernel(stream, name, prepared_by, RunPrepared, DropPrepared,
                                    prepared.release());
  }
  prepared->waiting->Launched(IsCaptured(stream));
  // A dump shows inputs as they were before the kernel began, so it begins in its run.
  const SoftTaskReady ready = prepared->dumped == nullptr ? PreparedIsReady : nullptr;
  return SoftLaunchWaitingKernel(stream, name, prepared_by, RunPrepared, ready, DropPrepared,
                                 prepared.release());
}

}  // namespace

aclnnStatus Prepare(uint32_t op_index, const acl::ArgValue* args, uint64_t* workspace_size,
                    aclOpExecutor** executor) {
  const OperatorInfo& op = acl::OperatorAt(op_index);
  const aclnnStatus status = PrepareCall(op, args, workspace_size, executor);
  if (status != OK) [[unlikely]]
    NoteRefusal(op_index);
  return status;
}

aclnnStatus Launch(uint32_t op_index, void* workspace, uint64_t workspace_size,
                   aclOpExecutor* executor, aclrtStream stream) {
  const OperatorInfo& op = acl::OperatorAt(op_index);
  const auto reject = [&op](aclnnStatus status, const std::string& what) {
    return Reject(status, std::string(op.name) + ": " + what);
  };
  if (executor == nullptr) [[unlikely]] {
    const std::string reason = TakeRefusal(op_index);
    if (!reason.empty()) {
      return reject(kParamNull, "executor is NULL; the first phase was refused: " + reason);
    }
  }
  if (const aclnnStatus status = CheckExecutor(op.name.data(), executor)) return status;
  if (executor->op != &op) {
    return reject(kParamInvalid,
                  "the executor was made for " + std::string(executor->op->name) + ".");
  }
  if (executor->workspace_size > 0 && workspace == nullptr) {
    return reject(kParamNull, "the workspace is NULL but " +
                                  std::to_string(executor->workspace_size) + " bytes are needed.");
  }
  if (workspace_size < executor->workspace_size) {
    return reject(kParamInvalid, "the workspace has " + std::to_string(workspace_size) +
                                     " bytes but " + std::to_string(executor->workspace_size) +
                                     " are needed.");
  }
  std::unique_ptr<PreparedKernel> prepared;
  if (executor->owned != nullptr) {
    if (const aclnnStatus status = BindPrepared(op, executor->owned->values(), &prepared)) {
      return status;
    }
  } else {
    if (!ClaimExecutor(executor)) return CheckExecutor(op.name.data(), executor);
    prepared.reset(static_cast<PreparedKernel*>(executor->task.release()));
    FreeExecutor(executor);
  }
  // Like a launch that the runtime refuses, an injected fault has used the executor up.
  if (const aclError fault = SoftInjectedFault(op.name.data())) return fault;
  const uint64_t needed = prepared->kernel->workspace_size();
  if (needed > 0) {
    prepared->kernel->Attach(workspace);
    prepared->memory.Add({workspace, needed, "workspace"});
  }
  // The table's names are literals, so they end with a zero.
  const aclError error = Submit(stream, op.name.data(), std::move(prepared));
  // The runtime's own code is the thread's last error (aclrtGetLastError), its text the message.
  return error == ACL_SUCCESS ? OK : kRuntimeError;
}

}  // namespace acltape::opapi

// 1 when the soft device has a kernel for the operator ("aclnnAdd"), else 0.
extern "C" ACL_FUNC_VISIBILITY int SoftOperatorHasKernel(const char* name) {
  using namespace acltape;
  const acl::OperatorInfo* op = name == nullptr ? nullptr : acl::FindOperator(name);
  const char* why = nullptr;
  const opapi::KernelLibrary* library = opapi::ThisKernelLibrary(&why);
  return op != nullptr && library != nullptr && library->has_kernel(op->index);
}
