// Results that an operator leaves alone where a flag does not ask for them: the kernels of the grid
// and the table meaning/acl_operators.h say the same.
#include <set>
#include <string>

#include "meaning/acl_operators.h"
#include "tests/opapi/grid/check.h"

namespace acltape::opapi {
namespace {

using acl::ArgKind;
using acl::Direction;
using acl::OperatorInfo;
using at::Tensor;

// True for a number of the call that is 0 or 1.
bool IsFlag(const OperatorInfo& op, const Args& args, uint32_t i) {
  const ArgKind kind = op.args[i].kind;
  if (kind != ArgKind::kBool && kind != ArgKind::kInt64) return false;
  if (std::holds_alternative<bool>(args[i])) return true;
  const auto* number = std::get_if<at::Scalar>(&args[i]);
  const auto* small = std::get_if<int>(&args[i]);
  const auto* large = std::get_if<int64_t>(&args[i]);
  const int64_t value = number != nullptr  ? number->toLong()
                        : small != nullptr ? *small
                        : large != nullptr ? *large
                                           : -1;
  return value == 0 || value == 1;
}

std::vector<Tensor> TensorsOf(const Arg& arg) {
  if (const auto* tensor = std::get_if<Tensor>(&arg)) return {*tensor};
  if (const auto* list = std::get_if<std::vector<Tensor>>(&arg)) return *list;
  return {};
}

// Copies of all that the operator may write: the row's arguments are used again.
Args WithOwnOutputs(const OperatorInfo& op, const Args& args) {
  Args own = args;
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (op.args[i].direction == Direction::kIn) continue;
    const bool fresh = op.args[i].direction == Direction::kOut;
    const auto copy = [&](const Tensor& tensor) {
      return fresh ? Unwritten(tensor) : tensor.clone();
    };
    if (auto* tensor = std::get_if<Tensor>(&own[i])) *tensor = copy(*tensor);
    if (auto* list = std::get_if<std::vector<Tensor>>(&own[i])) {
      for (Tensor& tensor : *list) tensor = copy(tensor);
    }
  }
  return own;
}

// The arguments that the call changes. Empty when the operator refuses it.
std::set<std::string> Changed(const OperatorInfo& op, const Args& args) {
  const Args own = WithOwnOutputs(op, args), before = WithOwnOutputs(op, own);
  std::set<std::string> changed;
  if (RunOperator(std::string(op.name).c_str(), own) != 0) return changed;
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (op.args[i].direction == Direction::kIn) continue;
    const std::vector<Tensor> now = TensorsOf(own[i]), then = TensorsOf(before[i]);
    for (size_t t = 0; t < now.size(); ++t) {
      if (!SameBits(now[t], then[t])) changed.insert(std::string(op.args[i].name));
    }
  }
  return changed;
}

// "aclnnSvd u computeUV" for each result that a number of the row's calls asks for.
std::set<std::string> AskedFor(const grid::Row& row) {
  const OperatorInfo& op = *acl::FindOperator(row.op);
  std::set<std::string> found;
  for (const Args& args : grid::ValidCalls(row)) {
    for (uint32_t flag = 0; flag < op.arg_count; ++flag) {
      if (!IsFlag(op, args, flag)) continue;
      Args with = args, without = args;
      with[flag] = 1;
      without[flag] = 0;
      const std::set<std::string> all = Changed(op, with), some = Changed(op, without);
      if (some.empty()) continue;
      for (const std::string& result : all) {
        if (some.count(result) == 0) {
          found.insert(row.op + " " + result + " " + std::string(op.args[flag].name));
        }
      }
    }
  }
  return found;
}

// True if a call of the row hands over memory for the result.
bool HandsOver(const grid::Row& row, std::string_view result) {
  const OperatorInfo& op = *acl::FindOperator(row.op);
  for (const Args& args : grid::ValidCalls(row)) {
    for (uint32_t i = 0; i < op.arg_count; ++i) {
      if (op.args[i].name == result && !TensorsOf(args[i]).empty()) return true;
    }
  }
  return false;
}

TEST(ConditionalOutputs, AreThoseOfTheTable) {
  std::set<std::string> found, told;
  for (const grid::Row& row : grid::AllRows()) {
    const std::set<std::string> asked = AskedFor(row);
    found.insert(asked.begin(), asked.end());
    for (const meaning::ConditionalOutput& line : meaning::kConditionalOutputs) {
      if (!meaning::FitsPattern(line.name, row.op) || !HandsOver(row, line.argument)) continue;
      told.insert(row.op + " " + std::string(line.argument) + " " + std::string(line.flag));
    }
  }
  EXPECT_EQ(found, told);
}

}  // namespace
}  // namespace acltape::opapi
