// The two phases of every operator call.
#include "runtime/opapi/stub.h"

#include <unistd.h>

#include <memory>
#include <string>

#include "runtime/opapi/engine/kernel_library.h"
#include "runtime/prepared_launch.h"

namespace acltape::opapi {
namespace {

using acl::OperatorInfo;

// Binds the call with the kernel library of this process. Sets the thread's message when it fails.
aclnnStatus Bind(const OperatorInfo& op, const acl::ArgValue* args,
                 std::unique_ptr<Kernel>* kernel) {
  const char* why = nullptr;
  const KernelLibrary* library = ThisKernelLibrary(&why);
  if (library == nullptr) return Reject(kFindKernelError, std::string(op.name) + ": " + why);
  Kernel* bound = nullptr;
  const aclnnStatus status = library->bind(op, args, &bound);
  kernel->reset(bound);
  return status;
}

// A first phase leaves this to the second one.
struct PreparedKernel : BoundTask {
  std::unique_ptr<Kernel> kernel;
  uint32_t thread = 0;  // that called it, by the system's number
};

uint32_t ThisThread() {
  static thread_local const auto number = static_cast<uint32_t>(gettid());
  return number;
}

void DropKernel(void* bound) { delete static_cast<Kernel*>(bound); }

}  // namespace

aclnnStatus Prepare(uint32_t op_index, const acl::ArgValue* args, uint64_t* workspace_size,
                    aclOpExecutor** executor) {
  const OperatorInfo& op = acl::OperatorAt(op_index);
  if (workspace_size == nullptr || executor == nullptr) {
    return Reject(kParamNull, std::string(op.name) + ": workspaceSize or executor is NULL.");
  }
  *workspace_size = 0;
  *executor = nullptr;
  // Names of the table are literals, so they end with a zero byte.
  if (const aclError fault = SoftInjectedFault(op.workspace_name.data())) return fault;
  try {
    std::unique_ptr<Kernel> kernel;
    if (const aclnnStatus status = Bind(op, args, &kernel)) return status;
    auto made = std::make_unique<aclOpExecutor>();
    made->op = &op;
    made->args.assign(args, args + op.arg_count);
    made->workspace_size = kernel->workspace_size();
    auto prepared = std::make_unique<PreparedKernel>();
    prepared->kernel = std::move(kernel);
    prepared->thread = ThisThread();
    made->task = std::move(prepared);
    *workspace_size = made->workspace_size;
    *executor = made.release();
    return OK;
  } catch (const std::exception& error) {
    return Reject(kInner, std::string(op.name) + ": " + error.what());
  }
}

aclnnStatus Launch(uint32_t op_index, void* workspace, uint64_t workspace_size,
                   aclOpExecutor* executor, aclrtStream stream) {
  const OperatorInfo& op = acl::OperatorAt(op_index);
  const auto reject = [&op](aclnnStatus status, const std::string& what) {
    return Reject(status, std::string(op.name) + ": " + what);
  };
  if (executor == nullptr) return reject(kParamNull, "executor is NULL.");
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
  std::unique_ptr<Kernel> kernel;
  uint32_t prepared_by = ThisThread();
  if (executor->owned != nullptr) {
    if (const aclnnStatus status = Bind(op, executor->owned->values(), &kernel)) return status;
  } else {
    auto* prepared = static_cast<PreparedKernel*>(executor->task.get());
    kernel = std::move(prepared->kernel);
    prepared_by = prepared->thread;
    delete executor;
  }
  // Like a launch that the runtime refuses, an injected fault has used the executor up.
  if (const aclError fault = SoftInjectedFault(op.name.data())) return fault;
  if (kernel->workspace_size() > 0) kernel->Attach(workspace);
  const SoftKernelRun run = kernel->run();
  // The table's names are literals, so they end with a zero.
  const aclError error = SoftLaunchPreparedKernel(stream, op.name.data(), prepared_by, run,
                                                  DropKernel, kernel.release());
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
