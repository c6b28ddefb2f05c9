#include "runtime/opapi/engine/blocked.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/opapi/base/dtype.h"
#include "runtime/opapi/engine/tensor_blocks.h"

namespace acltape::opapi {

// Memory of a stand-in. Large blocks take pages only as they are used, so a call that is bound and
// never run costs none.
struct BlockedStandIn {
  acl::BlockedLayout layout;
  at::ScalarType bits;
  char* storage;
  std::unique_ptr<void, decltype(&std::free)> memory{nullptr, &std::free};
  aclTensor tensor;
  acl::Direction direction;

  // Fills the memory from the blocks, and the blocks from the memory.
  void TakeBlocks() const;
  void GiveBlocks() const;

 private:
  at::Tensor Dense(void* matrix) const {
    return at::from_blob(matrix, {layout.batch, layout.rows, layout.columns},
                         at::TensorOptions(bits));
  }
  bool of_four_bits() const { return tensor.dtype == ACL_INT4; }
};

namespace {

using acl::BlockedLayout;
using at::Tensor;

// Two integers of 4 bits lie in a byte, the first in the lower half. Each gets a byte of its own to
// be moved, and two of them become one byte again.
Tensor OneInAByte(const void* packed, int64_t count) {
  const auto* from = static_cast<const uint8_t*>(packed);
  Tensor bytes = at::empty({count}, at::TensorOptions(at::kByte));
  auto* to = bytes.data_ptr<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<uint8_t>(from[i / 2] >> (4 * (i % 2)) & 15);
  }
  return bytes;
}

void TwoInAByte(const Tensor& bytes, void* packed) {
  const auto* from = bytes.data_ptr<uint8_t>();
  auto* to = static_cast<uint8_t*>(packed);
  const int64_t count = bytes.numel();
  for (int64_t i = 0; i < count; i += 2) {
    const int upper = i + 1 < count ? from[i + 1] : 0;
    to[i / 2] = static_cast<uint8_t>(from[i] | upper << 4);
  }
}

// Integers of the element's size: blocks are moved whatever their dtype is.
at::ScalarType BitsOf(size_t bytes) {
  switch (bytes) {
    case 1:
      return at::kByte;
    case 2:
      return at::kShort;
    case 4:
      return at::kInt;
    case 8:
      return at::kLong;
    default:
      return at::kComplexDouble;
  }
}

Tensor ViewOf(void* memory, at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::from_blob(memory, sizes, at::TensorOptions(dtype));
}

// The storage as rows and columns of padded matrices: [batch, row blocks, rows of a block, column
// blocks, columns of a block].
Tensor PaddedRows(void* storage, const BlockedLayout& layout, at::ScalarType dtype) {
  return ViewOf(storage,
                {layout.batch, layout.column_blocks, layout.row_blocks, layout.block_rows,
                 layout.block_columns},
                dtype)
      .permute({0, 2, 3, 1, 4});
}

// A weight that comes with the dims of its storage does not say how much of its last blocks is
// padding. The other arguments of the product do.
struct Weight {
  const char* op;
  int weight;
  int x;                      // its last dim is the inner one
  int out;                    // its last dim is the outer one
  int transpose_x = -1;       // a flag: the inner dim is the last but one
  int transpose_weight = -1;  // a flag: the weight's rows are the outer dim
};
constexpr Weight kWeights[] = {
    {"aclnnMatmulWeightNz", 1, 0, 2},
    {"aclnnBatchMatMulWeightNz", 1, 0, 2},
    {"aclnnAddmmWeightNz", 2, 1, 5},
    {"aclnnMm", 1, 0, 2},
    {"aclnnMatmul", 1, 0, 2},
    {"aclnnBatchMatMul", 1, 0, 2},
    {"aclnnQuantMatmulV3", 1, 0, 7, 5, 6},
    {"aclnnQuantMatmulV4", 1, 0, 8, 6, 7},
    {"aclnnQuantMatmulV5", 1, 0, 12, 9, 10},
    {"aclnnQuantMatmulWeightNz", 1, 0, 12, 9, 10},
    {"aclnnWeightQuantBatchMatmulV2", 1, 0, 8},
    {"aclnnWeightQuantBatchMatmulV3", 1, 0, 9},
    {"aclnnWeightQuantBatchMatmulNz", 1, 0, 8},
    {"aclnnGroupedMatmulV4", 1, 0, 16},
    {"aclnnGroupedMatmulV5", 1, 0, 17},
    {"aclnnGroupedMatmulWeightNz", 1, 0, 18},
    {"aclnnMoeGroupedMatmul", 1, 0, 4, -1, 3},
    {"aclnnMoeGroupedMatmulWeightNz", 1, 0, 4, -1, 3},
    // The factors of the columns have the outer dim; results have half of it.
    {"aclnnGroupedMatmulSwigluQuant", 1, 0, 4},
    {"aclnnGroupedMatmulSwigluQuantWeightNZ", 1, 0, 4},
    {"aclnnGroupedMatmulSwigluQuantV2", 1, 0, 2},
    {"aclnnGroupedMatmulSwigluQuantWeightNzV2", 1, 0, 2},
    {"aclnnGroupedMatmulFinalizeRouting", 1, 0, 15},
    {"aclnnGroupedMatmulFinalizeRoutingV2", 1, 0, 18},
    {"aclnnGroupedMatmulFinalizeRoutingV3", 1, 0, 19},
    {"aclnnGroupedMatmulFinalizeRoutingWeightNz", 1, 0, 15},
    {"aclnnGroupedMatmulFinalizeRoutingWeightNzV2", 1, 0, 19},
    {"aclnnQuantMatmulReduceSumWeightNz", 1, 0, 14},
};

// Operators between two tensors of one shape: there the other one says it.
constexpr std::string_view kCasts[] = {"aclnnNpuFormatCast", "aclnnInplaceCopy"};

const aclTensor* FirstTensor(const acl::OperatorInfo& op, const acl::ArgValue* args, int i) {
  if (args[i].pointer == nullptr) return nullptr;
  if (op.args[i].kind == acl::ArgKind::kTensor) return acl::Unpack<const aclTensor*>(args[i]);
  const auto& members = acl::Unpack<const aclTensorList*>(args[i])->tensors;
  return members.empty() ? nullptr : members[0];
}

// The size of dim `from_end` of a tensor, -1 when it has none.
int64_t SizeOf(const aclTensor* tensor, size_t from_end) {
  return tensor == nullptr || tensor->sizes.size() < from_end
             ? -1
             : tensor->sizes[tensor->sizes.size() - from_end];
}

// Integers of 4 bits that lie packed in int32 share one with seven others of their row.
int64_t Packed(int64_t columns, aclDataType dtype) {
  return dtype == ACL_INT32 && columns > 0 ? columns / 8 : columns;
}

// Takes the padding off a matrix that has it in its dims.
void TrimTo(int64_t rows, int64_t columns, BlockedLayout* layout) {
  if (acl::BlocksFor(rows, layout->block_rows) == layout->row_blocks) layout->rows = rows;
  if (acl::BlocksFor(columns, layout->block_columns) == layout->column_blocks) {
    layout->columns = columns;
  }
}

void TrimStorage(const acl::OperatorInfo& op, const acl::ArgValue* args, uint32_t argument,
                 aclDataType dtype, BlockedLayout* layout) {
  if (argument < 2 &&
      std::find(std::begin(kCasts), std::end(kCasts), op.name) != std::end(kCasts)) {
    const aclTensor* other = FirstTensor(op, args, 1 - static_cast<int>(argument));
    TrimTo(SizeOf(other, 2), SizeOf(other, 1), layout);
    return;
  }
  for (const Weight& row : kWeights) {
    if (op.name != row.op || argument != static_cast<uint32_t>(row.weight)) continue;
    const auto set = [&](int flag) { return flag >= 0 && args[flag].integer != 0; };
    const int64_t inner = SizeOf(FirstTensor(op, args, row.x), set(row.transpose_x) ? 2 : 1);
    const int64_t outer = SizeOf(FirstTensor(op, args, row.out), 1);
    set(row.transpose_weight) ? TrimTo(outer, Packed(inner, dtype), layout)
                              : TrimTo(inner, Packed(outer, dtype), layout);
    return;
  }
}

std::vector<int64_t> DenseStrides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

class BlockedKernel final : public Kernel {
 public:
  BlockedKernel(std::unique_ptr<Kernel> kernel,
                std::vector<std::unique_ptr<BlockedStandIn>> stand_ins)
      : Kernel(&Run), kernel_(std::move(kernel)), stand_ins_(std::move(stand_ins)) {
    workspace_size_ = kernel_->workspace_size();
  }

  void Attach(void* workspace) override { kernel_->Attach(workspace); }

 private:
  static aclError Run(void* bound) {
    auto* self = static_cast<BlockedKernel*>(static_cast<Kernel*>(bound));
    // Stand-ins belong to the task, which may run in several threads.
    const std::lock_guard<std::mutex> lock(self->running_);
    try {
      WorkerThread::Enter();
      for (const auto& each : self->stand_ins_) {
        if (each->direction != acl::Direction::kOut) each->TakeBlocks();
      }
      if (const aclError error = self->kernel_->run()(self->kernel_.get())) return error;
      for (const auto& each : self->stand_ins_) {
        if (each->direction != acl::Direction::kIn) each->GiveBlocks();
      }
      return ACL_SUCCESS;
    } catch (...) {
      return ReportKernelException();
    }
  }

  std::unique_ptr<Kernel> kernel_;
  std::vector<std::unique_ptr<BlockedStandIn>> stand_ins_;
  std::mutex running_;
};

}  // namespace

void BlockedStandIn::TakeBlocks() const {
  if (!of_four_bits()) return ReadBlocks(storage, layout, Dense(memory.get()));
  const Tensor blocks = OneInAByte(storage, layout.elements());
  const Tensor dense = at::empty({layout.batch, layout.rows, layout.columns}, at::kByte);
  ReadBlocks(blocks.data_ptr(), layout, dense);
  TwoInAByte(dense, memory.get());
}

void BlockedStandIn::GiveBlocks() const {
  if (!of_four_bits()) return WriteBlocks(storage, layout, Dense(memory.get()));
  const Tensor dense = OneInAByte(memory.get(), layout.batch * layout.rows * layout.columns);
  const Tensor blocks = at::empty({layout.elements()}, at::kByte);
  WriteBlocks(blocks.data_ptr(), layout, dense.view({layout.batch, layout.rows, layout.columns}));
  TwoInAByte(blocks, storage);
}

void WriteBlocks(void* storage, const BlockedLayout& layout, const Tensor& dense) {
  const int64_t height = layout.row_blocks * layout.block_rows;
  const int64_t width = layout.column_blocks * layout.block_columns;
  Tensor padded = dense;
  if (height != layout.rows || width != layout.columns) {
    padded = at::zeros({layout.batch, height, width}, dense.options());
    padded.narrow(1, 0, layout.rows).narrow(2, 0, layout.columns).copy_(dense);
  }
  PaddedRows(storage, layout, dense.scalar_type())
      .copy_(padded.view({layout.batch, layout.row_blocks, layout.block_rows, layout.column_blocks,
                          layout.block_columns}));
}

void ReadBlocks(const void* storage, const BlockedLayout& layout, const Tensor& dense) {
  const Tensor padded = PaddedRows(const_cast<void*>(storage), layout, dense.scalar_type())
                            .reshape({layout.batch, layout.row_blocks * layout.block_rows,
                                      layout.column_blocks * layout.block_columns});
  dense.copy_(padded.narrow(1, 0, layout.rows).narrow(2, 0, layout.columns));
}

struct BlockedArguments::Found {
  std::vector<acl::ArgValue> values;
  std::vector<std::unique_ptr<BlockedStandIn>> stand_ins;
  std::vector<std::unique_ptr<aclTensorList>> lists;  // with stand-ins among their members

  aclTensor* Replace(const acl::OperatorInfo& op, const acl::ArgValue* args, uint32_t i,
                     const aclTensor& tensor) {
    auto made = std::make_unique<BlockedStandIn>();
    if (!BlocksOf(tensor, &made->layout)) {
      const bool empty = std::count(tensor.sizes.begin(), tensor.sizes.end(), 0) > 0;
      if (tensor.format != ACL_FORMAT_FRACTAL_NZ || tensor.sizes.size() < 2 || empty ||
          BlockColumns(tensor.dtype) == 0 || tensor.address == nullptr) {
        return nullptr;
      }
      throw RejectedCall{kParamInvalid,
                         std::string(op.name) + ": " + std::string(op.args[i].name) +
                             " is in FRACTAL_NZ, but its view is no matrix that lies in blocks."};
    }
    if (tensor.address == nullptr) return nullptr;
    BlockedLayout& layout = made->layout;
    if (layout.of_storage) TrimStorage(op, args, i, tensor.dtype, &layout);
    int64_t first = 0, size = 0;
    BytesOfElements(tensor.dtype, tensor.offset, &first);
    BytesOfElements(tensor.dtype, layout.batch * layout.rows * layout.columns, &size);
    if (tensor.dtype == ACL_INT4 && tensor.offset % 2 != 0) {
      throw RejectedCall{kParamInvalid, std::string(op.name) + ": " + std::string(op.args[i].name) +
                                            " is in FRACTAL_NZ, but begins within a byte."};
    }
    made->bits = BitsOf(ItemSize(tensor.dtype));
    made->direction = op.args[i].direction;
    made->storage = static_cast<char*>(tensor.address) + first;
    made->memory.reset(std::malloc(static_cast<size_t>(std::max<int64_t>(size, 1))));
    if (made->memory == nullptr) {
      throw RejectedCall{kInner, std::string(op.name) + ": no memory is left for a plain copy of " +
                                     std::string(op.args[i].name) + "."};
    }
    aclTensor& plain = made->tensor;
    plain = tensor;
    if (layout.of_storage) {
      plain.sizes.assign(layout.dims, layout.dims + layout.rank - 4);
      plain.sizes.insert(plain.sizes.end(), {layout.rows, layout.columns});
      plain.strides = DenseStrides(plain.sizes);
    }
    plain.format = ACL_FORMAT_ND;
    plain.storage_dims = plain.sizes;
    plain.offset = 0;
    plain.address = made->memory.get();
    stand_ins.push_back(std::move(made));
    return &stand_ins.back()->tensor;
  }
};

BlockedArguments::BlockedArguments(const acl::OperatorInfo& op, const acl::ArgValue* args) {
  const auto blocked = [](const aclTensor* tensor) {
    return tensor != nullptr && tensor->format == ACL_FORMAT_FRACTAL_NZ;
  };
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    const bool list = op.args[i].kind == acl::ArgKind::kTensorList;
    if ((!list && op.args[i].kind != acl::ArgKind::kTensor) || args[i].pointer == nullptr) continue;
    if (!list && !blocked(acl::Unpack<const aclTensor*>(args[i]))) continue;
    if (list) {
      const auto& members = acl::Unpack<const aclTensorList*>(args[i])->tensors;
      if (std::none_of(members.begin(), members.end(), blocked)) continue;
    }
    // It makes blocks of a plain tensor itself.
    if (op.name == "aclnnTransMatmulWeight") return;
    if (found_ == nullptr) {
      found_ = std::make_unique<Found>();
      found_->values.assign(args, args + op.arg_count);
    }
    if (!list) {
      aclTensor* made = found_->Replace(op, args, i, *acl::Unpack<const aclTensor*>(args[i]));
      if (made != nullptr) found_->values[i] = acl::Pack(made);
      continue;
    }
    aclTensorList replaced = *acl::Unpack<const aclTensorList*>(args[i]);
    for (aclTensor*& member : replaced.tensors) {
      if (!blocked(member)) continue;
      if (aclTensor* made = found_->Replace(op, args, i, *member)) member = made;
    }
    found_->lists.push_back(std::make_unique<aclTensorList>(std::move(replaced)));
    found_->values[i] = acl::Pack(found_->lists.back().get());
  }
}

BlockedArguments::~BlockedArguments() = default;

bool BlockedArguments::any() const { return found_ != nullptr && !found_->stand_ins.empty(); }

const acl::ArgValue* BlockedArguments::values() const { return found_->values.data(); }

std::unique_ptr<Kernel> BlockedArguments::Around(std::unique_ptr<Kernel> kernel) {
  return std::make_unique<BlockedKernel>(std::move(kernel), std::move(found_->stand_ins));
}

}  // namespace acltape::opapi
