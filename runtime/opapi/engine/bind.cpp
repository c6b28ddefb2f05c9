// The entry of the kernel library: validates the arguments of a call and binds its kernel.
#include <torch/version.h>

#include <algorithm>
#include <string>

#include "runtime/opapi/engine/blocked.h"
#include "runtime/opapi/engine/kernel_library.h"
#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/trial.h"
#include "runtime/opapi/engine/unwritten.h"

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
    if (arg.kind == ArgKind::kTensor) outputs.push_back(MemoryOf(call.Bits(position)));
    if (arg.kind == ArgKind::kTensorList) {
      for (const at::Tensor& view : call.Views(position)) outputs.push_back(MemoryOf(view));
    }
  }
  return std::make_unique<FlippingKernel>(std::string(call.op().name), std::move(kernel),
                                          std::move(outputs));
}

std::unique_ptr<Kernel> BindOrThrow(const OperatorInfo& op, const acl::ArgValue* args) {
  const OperatorKernel* found = FindKernel(op.index);
  if (found == nullptr) {
    throw RejectedCall{kFindKernelError,
                       std::string(op.name) +
                           " has no kernel on the soft device; run it on a vendor "
                           "device or substitute its recorded outputs."};
  }
  const KernelRow& row = found->row;
  CheckNulls(op, row, args);
  try {
    c10::InferenceMode inference;
    BlockedArguments blocked(op, args);
    const bool plain = !blocked.any();
    const acl::ArgValue* values = plain ? args : blocked.values();
    const Call call(op, values, row.widen, found->merged_out);
    std::unique_ptr<Kernel> kernel = row.bind(call);
    TryKernel(call, row, values, found->merged_out, *kernel);
    if (SoftFlipsBits(op.name.data())) {
      kernel = WithFlippedBits(Call(op, values, row.widen), std::move(kernel));
    }
    if (SoftWatchesReads()) {
      kernel = WithWatchedReads(Call(op, values, row.widen), std::move(kernel));
    }
    return plain ? std::move(kernel) : blocked.Around(std::move(kernel));
  } catch (const c10::Error& error) {
    throw RejectedCall{kParamInvalid, std::string(op.name) + ": " + error.what_without_backtrace()};
  } catch (const std::exception& error) {
    throw RejectedCall{kInner, std::string(op.name) + ": " + error.what()};
  }
}

aclnnStatus Refuse(aclnnStatus status, const std::string& message) {
  SoftSetErrorMessage(message.c_str());
  return status;
}

aclnnStatus Bind(const OperatorInfo& op, const acl::ArgValue* args, Kernel** kernel) {
  try {
    *kernel = BindOrThrow(op, args).release();
    return OK;
  } catch (const RejectedCall& rejected) {
    return Refuse(rejected.status, rejected.message);
  } catch (const std::exception& error) {
    return Refuse(kInner, std::string(op.name) + ": " + error.what());
  }
}

bool Open(const OperatorTable& table) {
  const std::string wrong = BuildKernelTable(table);
  if (!wrong.empty()) SoftSetErrorMessage(wrong.c_str());
  return wrong.empty();
}

constexpr KernelLibrary kLibrary = {
    TORCH_VERSION, Open, [](uint32_t index) { return FindKernel(index) != nullptr; }, Bind};

}  // namespace
}  // namespace acltape::opapi

extern "C" ACL_FUNC_VISIBILITY const acltape::opapi::KernelLibrary* acltape_kernel_library() {
  return &acltape::opapi::kLibrary;
}
