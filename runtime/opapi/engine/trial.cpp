#include "runtime/opapi/engine/trial.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "base/hash.h"
#include "runtime/kernel_launch.h"
#include "runtime/opapi/base/dtype.h"
#include "runtime/opapi/engine/waiting_kernel.h"

namespace acltape::opapi {
namespace {

using acl::ArgKind;
using acl::ArgValue;
using acl::OperatorInfo;

constexpr size_t kShapesOfAKind = 4;
constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // in all tensors of a call

// The library says one of these when it lacks a dtype, or when dtypes or numbers of dims do not
// fit.
constexpr std::string_view kOfDtypesAndRanks[] = {
    "not implemented for",
    "can't be cast",
    "could not create a",
    "expects float",
    "INTERNAL ASSERT FAILED",
    "floating point",
    "complex",
    "dtype",
    "scalar type",
    "bool tensor",
    "Boolean alpha",
    "Integral inputs",
    "Integer division",
    "inputs not supported",
    "unsigned type",
    "without overflow",
    "should be the same",
    "same number of dimensions",
    "to be a vector",
    "has no dimensions",
    "Dimension specified as",
    "TensorAccessor expected",
    "The shape of the mask",
    "Expected 2D",
    "Expected 3D",
    "Expected 4D",
    "tensor expected for input",
};

// Or one of these when sizes do not fit. Where integers or truth values are among the inputs, sizes
// may follow from their values, which are not those of the trial.
constexpr std::string_view kOfSizes[] = {
    "doesn't match the broadcast shape",
    "must match the size of tensor",
    "does not match the shape",
    "shape mismatch",
    "is invalid for input of size",
    "of equal length",
    "of same shape",
    "number of channels",
    "channels instead",
    "width unexpected",
    "height unexpected",
    "must be even",
    "Padding size should be less",
    "Expected index",
};

// A message with one of these is about values, whatever else it holds.
constexpr std::string_view kOfValues[] = {"out of bounds", "out of range", "singular"};

bool Holds(std::string_view message, const std::string_view* begin, const std::string_view* end) {
  return std::any_of(begin, end, [message](std::string_view part) {
    return message.find(part) != std::string_view::npos;
  });
}

bool IsOfDtypesOrShapes(std::string_view message, bool values_decide_sizes) {
  if (Holds(message, std::begin(kOfValues), std::end(kOfValues))) return false;
  if (Holds(message, std::begin(kOfDtypesAndRanks), std::end(kOfDtypesAndRanks))) return true;
  return !values_decide_sizes && Holds(message, std::begin(kOfSizes), std::end(kOfSizes));
}

bool IsWhole(const aclTensor* tensor) {
  if (tensor == nullptr) return false;
  switch (tensor->dtype) {
    case ACL_FLOAT:
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
    case ACL_COMPLEX128:
      return false;
    default:
      return true;
  }
}

// True where an input holds integers or truth values.
bool ReadsWholeNumbers(const OperatorInfo& op, const ArgValue* args) {
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (op.args[i].direction == acl::Direction::kOut || args[i].pointer == nullptr) continue;
    if (op.args[i].kind == ArgKind::kTensor && IsWhole(acl::Unpack<const aclTensor*>(args[i]))) {
      return true;
    }
    if (op.args[i].kind != ArgKind::kTensorList) continue;
    const auto& members = acl::Unpack<const aclTensorList*>(args[i])->tensors;
    if (std::any_of(members.begin(), members.end(), IsWhole)) return true;
  }
  return false;
}

// --- Kinds of calls.

// The kind of a call, and the shapes of its tensors, as hashes.
struct Kind {
  uint64_t kind = 0, shapes = 0;

  void Add(uint64_t value) { kind = base::HashWith(kind, value); }

  void Add(const aclTensor* tensor) {
    if (tensor == nullptr) return Add(uint64_t{0xFFFF});
    Add((static_cast<uint64_t>(tensor->dtype) << 8) + tensor->sizes.size());
    for (const int64_t size : tensor->sizes) {
      shapes = base::HashWith(shapes, static_cast<uint64_t>(size));
    }
  }
};

// A small number may be a mode. Others do not count: many are different in each call.
uint64_t ModeOf(int64_t number) {
  constexpr int64_t kMost = 8;
  return number >= -kMost && number <= kMost ? static_cast<uint64_t>(number + kMost)
                                             : uint64_t{0xFFFF};
}

Kind KindOf(const OperatorInfo& op, const ArgValue* args) {
  Kind kind;
  kind.Add(op.index);
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    switch (op.args[i].kind) {
      case ArgKind::kTensor:
        kind.Add(acl::Unpack<const aclTensor*>(args[i]));
        break;
      case ArgKind::kTensorList:
        if (args[i].pointer == nullptr) {
          kind.Add(uint64_t{0xFFFF});
          break;
        }
        for (const aclTensor* member : acl::Unpack<const aclTensorList*>(args[i])->tensors) {
          kind.Add(member);
        }
        break;
      case ArgKind::kScalar:
        kind.Add(args[i].pointer == nullptr
                     ? uint64_t{0xFFFF}
                     : static_cast<uint64_t>(acl::Unpack<const aclScalar*>(args[i])->dtype));
        break;
      case ArgKind::kString:
        kind.Add(std::hash<std::string_view>()(
            args[i].pointer == nullptr ? "" : acl::Unpack<const char*>(args[i])));
        break;
      case ArgKind::kBoolArray:
        if (args[i].pointer == nullptr) break;
        for (const uint8_t flag : acl::Unpack<const aclBoolArray*>(args[i])->values) {
          kind.Add(uint64_t{flag});
        }
        break;
      case ArgKind::kFloat:
      case ArgKind::kDouble:
        break;
      default:
        kind.Add(args[i].pointer == nullptr ? 0 : ModeOf(args[i].integer));
        break;
    }
  }
  return kind;
}

// The shapes of each kind whose trial went well.
class Known {
 public:
  bool Has(const Kind& kind) {
    const std::lock_guard lock(mutex_);
    const auto found = kinds_.find(kind.kind);
    if (found == kinds_.end()) return false;
    const std::vector<uint64_t>& shapes = found->second;
    return shapes.size() >= kShapesOfAKind ||
           std::find(shapes.begin(), shapes.end(), kind.shapes) != shapes.end();
  }

  void Add(const Kind& kind) {
    const std::lock_guard lock(mutex_);
    kinds_[kind.kind].push_back(kind.shapes);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> kinds_;
};

Known& KnownKinds() {
  static Known& known = *new Known;  // programs may call operators at exit
  return known;
}

// False where kernels are not run, so that none can fail (the setting `compute`), and where a
// replay says that its calls ran before.
bool TrialsAreWanted() {
  static const bool wanted = [] {
    const char* given = std::getenv("ACLTAPE_TRIALS");
    return (given == nullptr || std::string_view(given) != "0") &&
           std::string_view(SoftDescribe()).find("\"compute\"") == std::string_view::npos;
  }();
  return wanted;
}

// --- Memory of zeros.

// Bytes from the first to the last element of a view; more than kMostBytes where they are many.
uint64_t BytesOf(const aclTensor& tensor) {
  if (std::find(tensor.sizes.begin(), tensor.sizes.end(), 0) != tensor.sizes.end()) return 0;
  double elements = 1;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    elements += static_cast<double>(tensor.sizes[i] - 1) * static_cast<double>(tensor.strides[i]);
  }
  const double bytes = tensor.dtype == ACL_INT4
                           ? (elements + 1) / 2
                           : elements * static_cast<double>(ItemSize(tensor.dtype));
  return bytes > static_cast<double>(kMostBytes) ? kMostBytes + 1 : static_cast<uint64_t>(bytes);
}

// The arguments of a call with zeros in all its tensors.
class ZeroArguments {
 public:
  ZeroArguments(const OperatorInfo& op, const ArgValue* args) : values_(args, args + op.arg_count) {
    for (uint32_t i = 0; i < op.arg_count; ++i) {
      if (args[i].pointer == nullptr) continue;
      if (op.args[i].kind == ArgKind::kTensor) {
        values_[i] = acl::Pack(Zero(acl::Unpack<const aclTensor*>(args[i])));
      } else if (op.args[i].kind == ArgKind::kTensorList) {
        auto list = std::make_unique<aclTensorList>();
        for (const aclTensor* member : acl::Unpack<const aclTensorList*>(args[i])->tensors) {
          list->tensors.push_back(Zero(member));
        }
        values_[i] = acl::Pack(list.get());
        lists_.push_back(std::move(list));
      }
    }
  }

  const ArgValue* values() const { return values_.data(); }
  // True when there is no memory, or when it would be too much.
  bool too_large() const { return too_large_; }

  // Zeros that live as long as the arguments.
  void* Memory(uint64_t bytes) {
    bytes_ += bytes;
    too_large_ = too_large_ || bytes_ > kMostBytes;
    if (too_large_) return nullptr;
    memory_.emplace_back(std::calloc(1, std::max<uint64_t>(bytes, 1)), std::free);
    too_large_ = memory_.back() == nullptr;
    return memory_.back().get();
  }

 private:
  aclTensor* Zero(const aclTensor* tensor) {
    if (tensor == nullptr) return nullptr;
    auto made = std::make_unique<aclTensor>(*tensor);
    made->reported = nullptr;
    if (made->address != nullptr) {
      made->offset = 0;
      made->address = Memory(BytesOf(*tensor));
    }
    tensors_.push_back(std::move(made));
    return tensors_.back().get();
  }

  std::vector<ArgValue> values_;
  std::vector<std::unique_ptr<aclTensor>> tensors_;
  std::vector<std::unique_ptr<aclTensorList>> lists_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory_;
  uint64_t bytes_ = 0;
  bool too_large_ = false;
};

// Runs the kernel of these arguments. The error's text, empty where the run went well or the
// arguments were refused while the kernel was bound.
std::string ErrorOf(const OperatorInfo& op, const KernelRow& row, int merged_out,
                    ZeroArguments& zeros) {
  try {
    c10::InferenceMode inference;
    const std::unique_ptr<Kernel> kernel =
        row.bind(Call(op, zeros.values(), row.widen, merged_out));
    if (const uint64_t bytes = kernel->workspace_size(); bytes > 0) {
      void* workspace = zeros.Memory(bytes);
      if (workspace == nullptr) return "";
      kernel->Attach(workspace);
    }
    return kernel->run()(kernel.get()) == ACL_SUCCESS ? "" : SoftErrorMessage();
  } catch (...) {
    return "";
  }
}

}  // namespace

void TryKernel(const Call& call, const KernelRow& row, const ArgValue* args, int merged_out,
               const Kernel& kernel) {
  const OperatorInfo& op = call.op();
  const Kind kind = KindOf(op, args);
  if (KnownKinds().Has(kind)) [[likely]]
    return;
  if (!TrialsAreWanted()) return;
  if (dynamic_cast<const WaitingKernel*>(&kernel) != nullptr) return;
  ZeroArguments zeros(op, args);
  if (zeros.too_large()) return;
  std::string error;
  try {
    // A thread of its own: the caller's keeps its settings of libtorch and has no team of threads,
    // which would not outlive a fork.
    std::thread([&] { error = ErrorOf(op, row, merged_out, zeros); }).join();
  } catch (const std::system_error&) {
    return;  // no thread is left
  }
  if (IsOfDtypesOrShapes(error, ReadsWholeNumbers(op, args)))
    call.RejectCall(error.substr(0, error.find('\n')));
  KnownKinds().Add(kind);
}

}  // namespace acltape::opapi
