#include "analyzer/waits/mends.h"

#include <algorithm>

namespace acltape::analyzer::waits {
namespace {

constexpr int kAny = -1;

struct Mend {
  // Names between bars: "|aten::item|aten::is_nonzero|"; empty: any. Compared with the outermost
  // operator and with the one that waits.
  std::string_view operators;
  std::string_view frame;    // a part of the frames; empty: any
  std::string_view made_by;  // as `operators`, of the operator that made the host's tensor
  int copy = kAny;           // a CopySide
  int non_blocking = kAny;   // 0 or 1
  int integers = kAny;       // 0 or 1
  int over_torch = kAny;     // 0 or 1
  std::string_view sentence;
};

constexpr int kFromPageable = static_cast<int>(CopySide::kFromPageable);
constexpr int kFromPinned = static_cast<int>(CopySide::kFromPinned);
constexpr int kToHost = static_cast<int>(CopySide::kToHost);

constexpr std::string_view kItem = "|aten::item|aten::_local_scalar_dense|";
constexpr std::string_view kBranch = "|aten::is_nonzero|aten::equal|aten::allclose|";
constexpr std::string_view kMasks =
    "|aten::nonzero|aten::masked_select|aten::index|aten::index_put_|aten::index_put|"
    "aten::_index_put_impl_|aten::where|aten::argwhere|aten::nonzero_numpy|";
constexpr std::string_view kSizes =
    "|aten::unique|aten::_unique2|aten::unique_consecutive|aten::unique_dim|aten::bincount|"
    "aten::repeat_interleave|";
constexpr std::string_view kRandom =
    "|aten::randn|aten::rand|aten::randint|aten::randperm|aten::randn_like|aten::rand_like|"
    "aten::randint_like|aten::normal|aten::normal_|aten::uniform_|aten::random_|aten::bernoulli|"
    "aten::bernoulli_|aten::multinomial|aten::exponential_|";

constexpr Mend kMends[] = {
    // These rows are for the framework's own functions.
    {"", "GradScaler", "", kAny, kAny, kAny, kAny,
     "GradScaler reads once a step whether a gradient was infinite: train in bfloat16, which needs "
     "no scaler, or give it an optimizer that takes found_inf itself (fused=True)"},
    {"", "clip_grad_norm_", "", kAny, kAny, kAny, kAny,
     "clip_grad_norm_ reads the norm for error_if_nonfinite=True: leave that out and look at the "
     "norm it returns once in many steps"},
    {"", "Adam", "", kAny, kAny, kAny, kAny,
     "the optimizer keeps its step count where the host reads it: pass capturable=True, which "
     "keeps it on the device"},
    {"", "Optimizer.step", "", kAny, kAny, kAny, kAny,
     "the optimizer reads a value of the device: pass capturable=True where it has that option"},
    {"", "LRScheduler", "", kAny, kAny, kAny, kAny,
     "the schedule reads a learning rate that is a tensor: keep it a Python number, or fill the "
     "tensor in place from one"},
    {"", "tolist", "", kAny, kAny, kAny, kAny,
     "tolist() brings a list of lengths to the host: keep the lengths beside it on the host, or "
     "copy them to pinned memory and read them a step later"},
    // These are for operators whose result has a size that only the device knows, and for reads.
    {kMasks, "", "", kAny, kAny, kAny, kAny,
     "a boolean mask makes a result whose size only the device knows: use torch.where, masked_fill "
     "or a product with the mask, which keep the size"},
    {kSizes, "", "", kAny, kAny, kAny, kAny,
     "the size of the result is known on the device alone: pass it where the operator takes it "
     "(output_size, minlength), or work with a fixed size"},
    {kBranch, "", "", kAny, kAny, kAny, kAny,
     "Python branches on a value of the device: choose with torch.where, or look at it once in "
     "many steps"},
    {kItem, "", "", kAny, kAny, kAny, kAny,
     "keep the value as a tensor and read it once in many steps, or copy it to pinned memory with "
     "non_blocking=True and read it after an event, a step later"},
    // These are for copies.
    {"", "", kRandom, kFromPageable, kAny, kAny, kAny,
     "the random numbers are made on the host: make them on the device (device=...)"},
    {"", "", "", kFromPageable, 1, kAny, kAny,
     "non_blocking=True blocks all the same, because the memory is not pinned: pin the memory "
     "(pin_memory(), or pin_memory=True of a DataLoader)"},
    {"", "", "", kFromPageable, 0, 1, kAny,
     "a list or a tensor of integers comes from memory that is not pinned: keep it in one pinned "
     "tensor and copy that with non_blocking=True, or make it on the device"},
    {"", "", "", kFromPageable, kAny, kAny, kAny,
     "pin the memory (pin_memory(), or pin_memory=True of a DataLoader) and copy with "
     "non_blocking=True"},
    {"", "", "", kFromPinned, 0, kAny, kAny, "the memory is pinned: copy with non_blocking=True"},
    {"", "", "", kToHost, kAny, kAny, kAny,
     "copy to pinned memory with non_blocking=True, record an event, and read after the event, a "
     "step later"},
    // This one is for copies that PyTorch makes without an operator, as torch.tensor does.
    {"|aclrtMemcpy|aclrtMemcpyAsync|", "", "", kAny, kAny, kAny, 1,
     "a Python number or a list is brought to the device: make the tensor once and change it in "
     "place (fill_, add_), or keep lengths in one pinned tensor and copy that with "
     "non_blocking=True"},
    // These are for the interface itself.
    {"|aclrtMemcpyAsync|aclrtMemcpy2dAsync|", "", "", kAny, kAny, kAny, kAny,
     "the host's memory is not pinned, so that the copy blocks: allocate it with aclrtMallocHost"},
    {"|aclrtMemcpy|aclrtMemcpy2d|", "", "", kAny, kAny, kAny, kAny,
     "copy with aclrtMemcpyAsync and pinned memory, and wait for an event where the value is used"},
    {"|aclrtMemset|", "", "", kAny, kAny, kAny, kAny, "fill with aclrtMemsetAsync"},
    {"|aclmdlRIExecute|", "", "", kAny, kAny, kAny, kAny,
     "execute with aclmdlRIExecuteAsync, which does not wait"},
};

bool Lists(std::string_view names, std::string_view name) {
  if (names.empty()) return true;
  if (name.empty()) return false;
  name = name.substr(0, name.find('.'));  // without the overload
  const size_t found = names.find(name);
  return found != std::string_view::npos && names[found - 1] == '|' &&
         names[found + name.size()] == '|';
}

bool Fits(int wanted, int is) { return wanted == kAny || wanted == is; }

}  // namespace

std::string_view MendOf(const WaitFacts& facts) {
  const Mend* found = std::ranges::find_if(kMends, [&](const Mend& row) {
    return (Lists(row.operators, facts.called) || Lists(row.operators, facts.inner)) &&
           (row.frame.empty() || facts.frames.find(row.frame) != std::string_view::npos) &&
           Lists(row.made_by, facts.made_by) && Fits(row.copy, static_cast<int>(facts.copy)) &&
           Fits(row.non_blocking, facts.non_blocking) && Fits(row.integers, facts.integers) &&
           Fits(row.over_torch, facts.over_torch);
  });
  return found == std::end(kMends) ? std::string_view() : found->sentence;
}

}  // namespace acltape::analyzer::waits
