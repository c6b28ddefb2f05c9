// First phases see no device memory: it may not be computed yet, and on a device it cannot be read.
#include "tests/opapi/device_memory.h"
#include "tests/opapi/grid/check.h"

namespace acltape::opapi {
namespace {

using acl::Direction;
using at::Tensor;

// Other views of the same sizes: each must be read where it lies, not copied while binding.
Tensor Expanded(const Tensor& tensor) {
  std::vector<int64_t> strides = tensor.strides().vec();
  if (!strides.empty()) strides[0] = 0;
  return tensor.as_strided(tensor.sizes(), strides, tensor.storage_offset());
}

Tensor WithGaps(const Tensor& tensor) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  if (sizes.empty()) return at::empty({3}, tensor.options()).select(0, 1);
  sizes.back() = 2 * sizes.back() + 3;
  return at::empty(sizes, tensor.options()).slice(-1, 2, 2 + 2 * tensor.size(-1), 2);
}

Tensor Turned(const Tensor& tensor) {
  if (tensor.dim() < 2) return WithGaps(tensor);
  std::vector<int64_t> sizes = tensor.sizes().vec();
  std::swap(sizes.front(), sizes.back());
  return at::empty(sizes, tensor.options()).transpose(0, -1);
}

using Remake = Tensor (*)(const Tensor&);

// `args` with all tensors that the operator only reads (or, of views that may be written, with all)
// made anew.
Args Remade(const acl::OperatorInfo& op, const Args& args, Remake remake, bool inputs_only) {
  Args remade = args;
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (inputs_only && op.args[i].direction != Direction::kIn) continue;
    if (auto* tensor = std::get_if<Tensor>(&remade[i])) *tensor = remake(*tensor);
    if (auto* list = std::get_if<std::vector<Tensor>>(&remade[i])) {
      for (Tensor& member : *list) member = remake(member);
    }
  }
  return remade;
}

struct Variant {
  const char* name;
  Remake remake;
  bool inputs_only;
};
constexpr Variant kVariants[] = {{"as the grid has them", nullptr, false},
                                 {"expanded along the first dim", Expanded, true},
                                 {"with gaps", WithGaps, false},
                                 {"with the first and the last dim exchanged", Turned, false}};

TEST(PhaseOne, OfNoOperatorTouchesDeviceMemory) {
  int calls = 0, accepted = 0;
  for (const grid::Row& row : grid::AllRows()) {
    const acl::OperatorInfo& op = *acl::FindOperator(row.op);
    for (const Args& args : grid::ValidCalls(row)) {
      for (const Variant& variant : kVariants) {
        const Args tried = variant.remake == nullptr
                               ? args
                               : Remade(op, args, variant.remake, variant.inputs_only);
        const HostAccess host = PrepareOverUnreadableMemory(row.op.c_str(), tried);
        ++calls;
        accepted += host.status == OK ? 1 : 0;
        EXPECT_EQ(host.accesses, 0)
            << row.op << " with tensors " << variant.name << ", status " << host.status;
      }
    }
  }
  std::printf("first phases over unreadable memory: %d, accepted: %d\n", calls, accepted);
  EXPECT_GT(accepted, 5000);
}

TEST(PhaseOne, AnExpandedIndexIsReadByTheTaskOnly) {
  const Tensor table = Random({5, 3});
  const Tensor index = at::zeros({1, 4}, at::kLong).expand({2, 4}), out = at::empty({2, 4, 3});
  const aclrtStream stream = TestStream();
  PackedCall call("aclnnEmbedding", {table, index, out});
  ASSERT_EQ(call.Prepare(), OK);
  index.select(0, 0).fill_(4);  // as a task in front of it would have done meanwhile
  ASSERT_EQ(call.Launch(stream), OK);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(SameBits(out, at::embedding(table, index)));
}

}  // namespace
}  // namespace acltape::opapi
