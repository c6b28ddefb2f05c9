#include "runtime/opapi/engine/unwritten.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/kernel_launch.h"

namespace acltape::opapi {
namespace {

using acl::ArgKind;
using acl::Direction;
using at::Tensor;

// Operators that pass elements on and compute nothing of them.
constexpr std::string_view kPassOn[] = {
    "aclnnInplaceCopy", "aclnnCast", "aclnnCat",     "aclnnStack",       "aclnnConcat",
    "aclnnSlice",       "aclnnRoll", "aclnnPermute", "aclnnIndexSelect", "aclnnSplitTensor",
};
// Forms that read what they overwrite. Others that write in place need not.
constexpr std::string_view kAccumulate[] = {
    "aclnnInplaceAdd", "aclnnInplaceAdds", "aclnnInplaceSub", "aclnnInplaceSubs",
    "aclnnInplaceMul", "aclnnInplaceMuls", "aclnnInplaceDiv", "aclnnInplaceDivs",
};

bool IsIn(std::string_view name, const std::string_view* begin, const std::string_view* end) {
  return std::find(begin, end, name) != end;
}

int64_t UnwrittenElements(const Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type()) || tensor.numel() == 0) return 0;
  const at::ScalarType bits = tensor.element_size() == 8   ? at::kLong
                              : tensor.element_size() == 4 ? at::kInt
                              : tensor.element_size() == 2 ? at::kShort
                                                           : at::kChar;
  if (bits == at::kChar) return 0;  // floats of 8 bits have many such elements
  return tensor.view(bits).eq(-1).sum().item<int64_t>();
}

bool ShowsIt(const Tensor& result) {
  if (result.numel() == 0) return false;
  if (!at::isFloatingType(result.scalar_type())) return true;
  return at::isnan(result).any().item<bool>();
}

struct Input {
  std::string name;
  Tensor view;
};

class WatchedKernel final : public Kernel {
 public:
  WatchedKernel(std::string name, std::unique_ptr<Kernel> kernel, std::vector<Input> inputs,
                std::vector<Tensor> outputs)
      : Kernel(&Run),
        name_(std::move(name)),
        kernel_(std::move(kernel)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {
    workspace_size_ = kernel_->workspace_size();
  }

  void Attach(void* workspace) override { kernel_->Attach(workspace); }

 private:
  static aclError Run(void* bound) {
    auto* self = static_cast<WatchedKernel*>(static_cast<Kernel*>(bound));
    std::string found;
    try {
      found = self->Unwritten();
    } catch (const std::exception&) {  // the look must not change what the kernel does
    }
    const aclError error = self->kernel_->run()(self->kernel_.get());
    if (error != ACL_SUCCESS || found.empty()) return error;
    try {
      if (std::any_of(self->outputs_.begin(), self->outputs_.end(), ShowsIt)) {
        SoftReportUnwrittenRead(self->name_.c_str(), found.c_str());
      }
    } catch (const std::exception&) {
    }
    return error;
  }

  // The first input with elements that nothing wrote, in words; empty if there is none.
  std::string Unwritten() const {
    for (const Input& input : inputs_) {
      const int64_t count = UnwrittenElements(input.view);
      if (count == 0) continue;
      return "nothing had written " + std::to_string(count) + " of the " +
             std::to_string(input.view.numel()) + " elements of its argument " + input.name;
    }
    return "";
  }

  std::string name_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Input> inputs_;
  std::vector<Tensor> outputs_;
};

}  // namespace

std::unique_ptr<Kernel> WithWatchedReads(const Call& call, std::unique_ptr<Kernel> kernel) {
  const std::string_view op = call.op().name;
  if (IsIn(op, std::begin(kPassOn), std::end(kPassOn))) return kernel;
  const bool accumulates = IsIn(op, std::begin(kAccumulate), std::end(kAccumulate));
  std::vector<Input> inputs;
  std::vector<Tensor> outputs;
  for (uint32_t i = 0; i < call.op().arg_count; ++i) {
    const acl::ArgInfo& arg = call.op().args[i];
    const int position = static_cast<int>(i);
    if (call.IsNull(position)) continue;
    std::vector<Tensor> views;
    if (arg.kind == ArgKind::kTensor) views.push_back(call.Bits(position));
    if (arg.kind == ArgKind::kTensorList) views = call.Views(position);
    for (const Tensor& view : views) {
      if (arg.direction == Direction::kIn || (accumulates && arg.direction == Direction::kInOut)) {
        inputs.push_back({std::string(arg.name), view});
      }
      if (arg.direction != Direction::kIn) outputs.push_back(view);
    }
  }
  if (inputs.empty() || outputs.empty()) return kernel;
  return std::make_unique<WatchedKernel>(std::string(op), std::move(kernel), std::move(inputs),
                                         std::move(outputs));
}

}  // namespace acltape::opapi
