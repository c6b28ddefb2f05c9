// The two phases of every operator call.
#include "runtime/opapi/stub.h"

#include <algorithm>
#include <string>

#include "runtime/opapi/engine/kernel_table.h"

namespace acltape::opapi {
namespace {

using acl::ArgKind;
using acl::OperatorInfo;

bool IsObject(ArgKind kind) { return kind <= ArgKind::kString; }

// Rejects NULL where the operator needs an object.
void CheckNulls(const OperatorInfo& op, const KernelRow& row, const acl::ArgValue* args) {
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (args[i].pointer != nullptr || op.args[i].optional || !IsObject(op.args[i].kind)) continue;
    if (std::count(row.nullable.begin(), row.nullable.end(), static_cast<int>(i)) > 0) continue;
    throw RejectedCall{kParamNull,
                       std::string(op.name) + ": " + std::string(op.args[i].name) + " is NULL."};
  }
}

// Runs a kernel, then lets a fault on purpose flip bits of its outputs.
class FlippingKernel final : public Kernel {
 public:
  FlippingKernel(std::string name, std::unique_ptr<Kernel> kernel, std::vector<SoftOutput> outputs)
      : Kernel(&Run),
        name_(std::move(name)),
        kernel_(std::move(kernel)),
        outputs_(std::move(outputs)) {
    workspace_size_ = kernel_->workspace_size();
  }

  void Attach(void* workspace) override { kernel_->Attach(workspace); }

 private:
  static aclError Run(void* bound) {
    auto* self = static_cast<FlippingKernel*>(static_cast<Kernel*>(bound));
    const aclError error = self->kernel_->run()(self->kernel_.get());
    if (error == ACL_SUCCESS) {
      SoftFlipBits(self->name_.c_str(), self->outputs_.data(), self->outputs_.size());
    }
    return error;
  }

  std::string name_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<SoftOutput> outputs_;
};

SoftOutput MemoryOf(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return {nullptr, 0};
  const int64_t elements = tensor.is_contiguous() ? tensor.numel() : 1;
  return {tensor.data_ptr(), static_cast<uint64_t>(elements) * tensor.element_size()};
}

std::unique_ptr<Kernel> WithFlippedBits(const Call& call, std::unique_ptr<Kernel> kernel) {
  std::vector<SoftOutput> outputs;
  for (uint32_t i = 0; i < call.op().arg_count; ++i) {
    const acl::ArgInfo& arg = call.op().args[i];
    const int position = static_cast<int>(i);
    if (arg.direction == acl::Direction::kIn || call.IsNull(position)) continue;
    if (arg.kind == ArgKind::kTensor) outputs.push_back(MemoryOf(call.View(position)));
    if (arg.kind == ArgKind::kTensorList) {
      for (const at::Tensor& view : call.Views(position)) outputs.push_back(MemoryOf(view));
    }
  }
  return std::make_unique<FlippingKernel>(std::string(call.op().name), std::move(kernel),
                                          std::move(outputs));
}

// Validates and binds. Never throws anything but RejectedCall.
std::unique_ptr<Kernel> Bind(const OperatorInfo& op, const acl::ArgValue* args) {
  const KernelRow* row = FindKernel(op.index);
  if (row == nullptr) {
    throw RejectedCall{kFindKernelError,
                       std::string(op.name) +
                           " has no kernel on the soft device; run it on a vendor "
                           "device or substitute its recorded outputs."};
  }
  CheckNulls(op, *row, args);
  try {
    c10::InferenceMode inference;
    const Call call(op, args, row->widen);
    std::unique_ptr<Kernel> kernel = row->bind(call);
    if (SoftFlipsBits(op.name.data())) return WithFlippedBits(call, std::move(kernel));
    return kernel;
  } catch (const c10::Error& error) {
    throw RejectedCall{kParamInvalid, std::string(op.name) + ": " + error.what_without_backtrace()};
  } catch (const std::exception& error) {
    throw RejectedCall{kInner, std::string(op.name) + ": " + error.what()};
  }
}

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
    std::unique_ptr<Kernel> kernel = Bind(op, args);
    auto made = std::make_unique<aclOpExecutor>();
    made->op = &op;
    made->args.assign(args, args + op.arg_count);
    made->workspace_size = kernel->workspace_size();
    made->task = std::move(kernel);
    *workspace_size = made->workspace_size;
    *executor = made.release();
    return OK;
  } catch (const RejectedCall& rejected) {
    return Reject(rejected.status, rejected.message);
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
  if (executor->owned != nullptr) {
    try {
      kernel = Bind(op, executor->owned->values());
    } catch (const RejectedCall& rejected) {
      return Reject(rejected.status, rejected.message);
    }
  } else {
    kernel.reset(static_cast<Kernel*>(executor->task.release()));
    delete executor;
  }
  // Like a launch that the runtime refuses, an injected fault has used the executor up.
  if (const aclError fault = SoftInjectedFault(op.name.data())) return fault;
  if (kernel->workspace_size() > 0) kernel->Attach(workspace);
  const SoftKernelRun run = kernel->run();
  // The table's names are literals, so they end with a zero.
  const aclError error =
      SoftLaunchKernel(stream, op.name.data(), run, DropKernel, kernel.release());
  // The runtime's own code is the thread's last error (aclrtGetLastError), its text the message.
  return error == ACL_SUCCESS ? OK : kRuntimeError;
}

}  // namespace acltape::opapi
