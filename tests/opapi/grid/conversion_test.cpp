// Outputs of another dtype than the operator's own: it refuses them in phase one, or writes into
// them what it writes otherwise, converted. What it writes otherwise is held by the grid.
#include <algorithm>
#include <map>

#include "tests/opapi/grid/check.h"

namespace acltape::opapi::grid {
namespace {

using acl::Direction;

// The dtype that callers give in place of an output's own; the same where there is none.
at::ScalarType Other(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return at::kHalf;
    case at::kLong:
      return at::kInt;
    case at::kBool:
      return at::kByte;
    default:
      return dtype;
  }
}

// A new tensor of the same layout for an output, of this dtype.
Tensor Anew(const Tensor& tensor, at::ScalarType dtype) {
  return Unwritten(at::empty_strided(tensor.sizes(), tensor.strides(), dtype));
}

// The first valid call whose outputs have several elements, else the first one.
Args SomeCall(const acl::OperatorInfo& op, const Row& row) {
  const std::vector<Args> calls = ValidCalls(row);
  const auto several = [&op](const Args& args) {
    for (uint32_t i = 0; i < op.arg_count; ++i) {
      const auto* tensor = std::get_if<Tensor>(&args[i]);
      if (tensor == nullptr || op.args[i].direction != Direction::kOut) continue;
      if (tensor->numel() < 2) return false;
    }
    return true;
  };
  const auto found = std::find_if(calls.begin(), calls.end(), several);
  return found != calls.end() ? *found : calls.at(0);
}

struct Tried {
  int accepted = 0, refused = 0;
};

// False of operators without inputs that are tensors: they compute in the dtype of their output.
bool ReadsTensors(const acl::OperatorInfo& op) {
  return std::any_of(op.args, op.args + op.arg_count, [](const acl::ArgInfo& arg) {
    return arg.direction != Direction::kOut && arg.kind <= acl::ArgKind::kTensorList;
  });
}

// Tries each output of the call with another dtype.
void Try(const acl::OperatorInfo& op, const Args& valid, Tried* tried) {
  const std::string name(op.name);
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    const auto* output = std::get_if<Tensor>(&valid[i]);
    if (output == nullptr || op.args[i].direction != Direction::kOut) continue;
    const at::ScalarType dtype = output->scalar_type(), other = Other(dtype);
    if (other == dtype) continue;
    Args own = valid, converted = valid;
    for (uint32_t k = 0; k < op.arg_count; ++k) {
      const auto* tensor = std::get_if<Tensor>(&valid[k]);
      if (tensor == nullptr || op.args[k].direction == Direction::kIn) continue;
      const bool written = op.args[k].direction == Direction::kOut;
      own[k] = written ? Anew(*tensor, tensor->scalar_type()) : tensor->clone();
      converted[k] =
          written ? Anew(*tensor, k == i ? other : tensor->scalar_type()) : tensor->clone();
    }
    ASSERT_EQ(RunOperator(name.c_str(), own), 0) << name << ": " << LastMessage();
    const int status = RunOperator(name.c_str(), converted);
    if (status != 0) {
      EXPECT_EQ(status, kReject) << name << ": " << op.args[i].name;
      ++tried->refused;
      continue;
    }
    ++tried->accepted;
    EXPECT_TRUE(SameBits(std::get<Tensor>(converted[i]), std::get<Tensor>(own[i]).to(other)))
        << name << ": " << op.args[i].name << " as " << other;
  }
}

TEST(GridConversions, AnOutputOfAnotherDtypeIsRefusedOrHoldsTheConvertedResult) {
  std::map<std::string, Tried> families;
  int accepted = 0;
  for (const Row& row : AllRows()) {
    const acl::OperatorInfo& op = *acl::FindOperator(row.op);
    if (!ReadsTensors(op)) continue;
    Tried tried;
    Try(op, SomeCall(op, row), &tried);
    Tried& sum = families[FamilyOfOperator().at(row.op)];
    sum.accepted += tried.accepted;
    sum.refused += tried.refused;
    accepted += tried.accepted;
  }
  for (const auto& [name, sum] : families) {
    std::printf("%s: %d outputs of another dtype accepted, %d refused\n", name.c_str(),
                sum.accepted, sum.refused);
  }
  EXPECT_GT(accepted, 480);
  EXPECT_EQ(families["element by element"].refused, 0);
}

}  // namespace
}  // namespace acltape::opapi::grid
