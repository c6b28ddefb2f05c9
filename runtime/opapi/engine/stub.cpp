// The two phases of every operator call.
#include "runtime/opapi/stub.h"

#include <unistd.h>

#include <atomic>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "acl/invoke/blocked_layout.h"
#include "runtime/kernel_memory.h"
#include "runtime/opapi/base/dtype.h"
#include "runtime/opapi/base/live.h"
#include "runtime/opapi/engine/dump.h"
#include "runtime/opapi/engine/kernel_library.h"
#include "runtime/prepared_launch.h"

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
  // SoftMemoryGeneration() when a run found the memory good.
  std::atomic<uint64_t> good_at{0};
  const OperatorInfo* op = nullptr;
  uint32_t thread = 0;  // the system's number of the thread that called the first phase
  MemoryUses memory;
  std::unique_ptr<DumpedCall> dumped;  // null while no dump is on
};

// Bytes from the first to the last element of a view; 0 for a view without elements. A tensor in
// FRACTAL_NZ has those of its blocks.
uint64_t SpanOf(const aclTensor& tensor) {
  acl::BlockedLayout blocks;
  if (tensor.format == ACL_FORMAT_FRACTAL_NZ &&
      acl::BlockedLayoutOf(tensor.sizes.data(), tensor.strides.data(),
                           static_cast<uint32_t>(tensor.sizes.size()), tensor.storage_dims.data(),
                           static_cast<uint32_t>(tensor.storage_dims.size()),
                           static_cast<uint32_t>(ItemSize(tensor.dtype)), &blocks)) {
    return static_cast<uint64_t>(blocks.elements()) * ItemSize(tensor.dtype);
  }
  uint64_t elements = 1;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return 0;
    elements += static_cast<uint64_t>((tensor.sizes[i] - 1) * tensor.strides[i]);
  }
  return elements * ItemSize(tensor.dtype);
}

void AddMemory(const aclTensor* tensor, const char* name, MemoryUses* memory) {
  if (tensor == nullptr || tensor->address == nullptr) return;
  const uint64_t bytes = SpanOf(*tensor);
  if (bytes == 0) return;
  const int64_t skipped = tensor->offset * static_cast<int64_t>(ItemSize(tensor->dtype));
  memory->Add({static_cast<const char*>(tensor->address) + skipped, bytes, name});
}

void AddMemoryOf(const OperatorInfo& op, const acl::ArgValue* args, MemoryUses* memory) {
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    // Names of the table are literals, so they end with a zero byte.
    const char* name = op.args[i].name.data();
    if (op.args[i].kind == acl::ArgKind::kTensor) {
      AddMemory(acl::Unpack<const aclTensor*>(args[i]), name, memory);
    } else if (op.args[i].kind == acl::ArgKind::kTensorList && args[i].pointer != nullptr) {
      for (const aclTensor* member : acl::Unpack<const aclTensorList*>(args[i])->tensors) {
        AddMemory(member, name, memory);
      }
    }
  }
}

uint32_t ThisThread() {
  static thread_local const auto number = static_cast<uint32_t>(gettid());
  return number;
}

// Binds the call for one launch, or for all replays of a captured one.
aclnnStatus BindPrepared(const OperatorInfo& op, const acl::ArgValue* args,
                         std::unique_ptr<PreparedKernel>* prepared) {
  auto made = std::make_unique<PreparedKernel>();
  if (const aclnnStatus status = Bind(op, args, &made->kernel)) return status;
  made->op = &op;
  AddMemoryOf(op, args, &made->memory);
  made->thread = ThisThread();
  if (const uint32_t what = SoftDumps(); what != 0) [[unlikely]]
    made->dumped = std::make_unique<DumpedCall>(op, args, what);
  *prepared = std::move(made);
  return OK;
}

// The kernel is not run over memory that is gone: a worker would end the process.
aclError RunPrepared(void* bound) {
  static const uint64_t* const generation = SoftMemoryGeneration();
  auto* prepared = static_cast<PreparedKernel*>(bound);
  const uint64_t now = __atomic_load_n(generation, __ATOMIC_ACQUIRE);
  if (prepared->good_at.load(std::memory_order_relaxed) != now) {
    const aclError gone = SoftCheckMemory(prepared->op->name.data(), prepared->memory.data(),
                                          prepared->memory.size());
    if (gone != ACL_SUCCESS) [[unlikely]]
      return gone;
    prepared->good_at.store(now, std::memory_order_relaxed);
  }
  Kernel* kernel = prepared->kernel.get();
  if (prepared->dumped == nullptr) [[likely]]
    return kernel->run()(kernel);
  prepared->dumped->Before();
  const aclError code = kernel->run()(kernel);
  if (code == ACL_SUCCESS) prepared->dumped->After();
  return code;
}

void DropPrepared(void* bound) { delete static_cast<PreparedKernel*>(bound); }

// The last first phase of this thread that was refused. Some programs do not look at its code and
// call the second phase without an executor; the message of that one then has the reason.
struct Refusal {
  const OperatorInfo* op = nullptr;
  std::string why;
};
thread_local Refusal refusal;

void KeepRefusal(const OperatorInfo& op) {
  const char* text = aclGetRecentErrMsg();  // takes the message, so it is put back
  refusal = {&op, text != nullptr ? text : ""};
  if (text != nullptr) SoftSetErrorMessage(refusal.why.c_str());
}

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

}  // namespace

aclnnStatus Prepare(uint32_t op_index, const acl::ArgValue* args, uint64_t* workspace_size,
                    aclOpExecutor** executor) {
  const OperatorInfo& op = acl::OperatorAt(op_index);
  const aclnnStatus status = PrepareCall(op, args, workspace_size, executor);
  if (status != OK) KeepRefusal(op);
  return status;
}

aclnnStatus Launch(uint32_t op_index, void* workspace, uint64_t workspace_size,
                   aclOpExecutor* executor, aclrtStream stream) {
  const OperatorInfo& op = acl::OperatorAt(op_index);
  const auto reject = [&op](aclnnStatus status, const std::string& what) {
    return Reject(status, std::string(op.name) + ": " + what);
  };
  if (executor == nullptr && refusal.op == &op) {
    return reject(kParamNull,
                  "executor is NULL, because the first phase was refused: " + refusal.why);
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
  const uint32_t prepared_by = prepared->thread;
  // The table's names are literals, so they end with a zero.
  const aclError error = SoftLaunchPreparedKernel(stream, op.name.data(), prepared_by, RunPrepared,
                                                  DropPrepared, prepared.release());
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
