// Wrong calls of every operator of the grid: each argument of right calls is replaced by a wrong
// one, such as an index outside of its tensor or an empty list. The operator has to refuse the call
// or to compute something; it must not end by a signal, and not write where it should not (the
// build with AddressSanitizer sees that). tests/opapi/wrong_calls_test.py starts this program.
//
//   opapi_wrong_calls FROM    writes a line for each operator and each wrong call before it is made
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/grid/check.h"

namespace acltape::opapi::grid {
namespace {

using acl::Direction;
using at::Tensor;

constexpr size_t kMostCalls = 3;  // right calls of each operator

struct Wrong {
  const char* what;
  std::function<bool(Arg&)> apply;  // false where it does not fit the argument
};

// Changes a copy of a tensor.
Wrong OfTensor(const char* what, std::function<Tensor(const Tensor&)> change) {
  return {what, [change](Arg& arg) {
            auto* tensor = std::get_if<Tensor>(&arg);
            if (tensor == nullptr || !tensor->defined()) return false;
            Tensor changed = change(*tensor);
            if (!changed.defined()) return false;
            arg = changed;
            return true;
          }};
}

// Changes the last element of a copy of an integral tensor.
Wrong OfIndices(const char* what, int64_t value) {
  return OfTensor(what, [value](const Tensor& tensor) {
    const bool wide = tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt;
    if (!wide || tensor.numel() == 0) return Tensor();
    Tensor copy = tensor.contiguous().clone();
    copy.view({-1})[-1].fill_(tensor.scalar_type() == at::kInt
                                  ? std::clamp<int64_t>(value, std::numeric_limits<int>::min(),
                                                        std::numeric_limits<int>::max())
                                  : value);
    return copy;
  });
}

Wrong OfNumber(const char* what, int64_t value) {
  return {what, [value](Arg& arg) {
            if (std::holds_alternative<int>(arg)) {
              arg = static_cast<int>(value);
            } else if (std::holds_alternative<int64_t>(arg)) {
              arg = value;
            } else if (auto* number = std::get_if<at::Scalar>(&arg);
                       number != nullptr && number->isIntegral(false)) {
              arg = at::Scalar(value);
            } else {
              return false;
            }
            return true;
          }};
}

Wrong OfNumbers(const char* what, std::function<void(std::vector<int64_t>&)> change) {
  return {what, [change](Arg& arg) {
            auto* values = std::get_if<std::vector<int64_t>>(&arg);
            if (values == nullptr) return false;
            change(*values);
            return values->size() <= 8;
          }};
}

const std::vector<Wrong>& AllWrong() {
  static constexpr int64_t kFar = int64_t{1} << 40;
  static const std::vector<Wrong>& all = *new std::vector<Wrong>{
      OfIndices("an index far away", kFar),
      OfIndices("an index a little after its tensor", 4096),
      OfIndices("an index far before", -kFar),
      OfIndices("a negative index", -1000),
      OfTensor("one dim more", [](const Tensor& t) { return t.contiguous().unsqueeze(0); }),
      OfTensor("no dim", [](const Tensor& t) { return at::ones({}, t.options()); }),
      OfTensor("one dim", [](const Tensor& t) { return t.contiguous().view({-1}); }),
      OfTensor("no element",
               [](const Tensor& t) {
                 std::vector<int64_t> sizes = t.sizes().vec();
                 if (sizes.empty()) return Tensor();
                 sizes.back() = 0;
                 return at::ones(sizes, t.options());
               }),
      OfTensor("half as many",
               [](const Tensor& t) {
                 std::vector<int64_t> sizes = t.sizes().vec();
                 if (sizes.empty() || sizes[0] < 2) return Tensor();
                 sizes[0] /= 2;
                 return at::ones(sizes, t.options());
               }),
      OfTensor("one more at the end",
               [](const Tensor& t) {
                 std::vector<int64_t> sizes = t.sizes().vec();
                 if (sizes.empty()) return Tensor();
                 ++sizes.back();
                 return at::ones(sizes, t.options());
               }),
      {"an empty list",
       [](Arg& arg) {
         if (auto* list = std::get_if<Tensors>(&arg)) return list->clear(), true;
         return false;
       }},
      {"NULL",
       [](Arg& arg) {
         const bool pointer =
             !std::holds_alternative<int64_t>(arg) && !std::holds_alternative<int>(arg) &&
             !std::holds_alternative<bool>(arg) && !std::holds_alternative<double>(arg) &&
             !std::holds_alternative<at::ScalarType>(arg) &&
             !std::holds_alternative<at::Scalar>(arg);
         if (pointer) arg = Null{};
         return pointer;
       }},
      OfNumber("-1", -1),
      OfNumber("0", 0),
      OfNumber("2^40", kFar),
      OfNumber("the least", std::numeric_limits<int64_t>::min()),
      OfNumbers("no numbers", [](auto& values) { values.clear(); }),
      OfNumbers("one number more", [](auto& values) { values.push_back(1); }),
      OfNumbers("zeros", [](auto& values) { std::fill(values.begin(), values.end(), 0); }),
      OfNumbers("negative numbers",
                [](auto& values) { std::fill(values.begin(), values.end(), -3); }),
      OfNumbers("large numbers",
                [](auto& values) { std::fill(values.begin(), values.end(), kFar); }),
  };
  return all;
}

// Outputs of their own for each call, so that one wrong call leaves the next one alone.
Args Copied(const acl::OperatorInfo& op, const Args& args) {
  Args copy = args;
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (op.args[i].direction == Direction::kIn) continue;
    if (auto* tensor = std::get_if<Tensor>(&copy[i]); tensor != nullptr && tensor->defined()) {
      *tensor = tensor->contiguous().clone();
    }
    if (auto* list = std::get_if<Tensors>(&copy[i])) {
      for (Tensor& member : *list) member = member.contiguous().clone();
    }
  }
  return copy;
}

// Both phases on a stream of the program's own: a task that fails stops its stream, so the next
// call gets another one.
void Call(const std::string& op, const Args& args) {
  static aclrtStream stream = [] {
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtStream made = nullptr;
    aclrtCreateStream(&made);
    return made;
  }();
  PackedCall call(op.c_str(), args);
  if (call.Prepare() != OK) return;
  if (call.Launch(stream) == OK && aclrtSynchronizeStream(stream) == ACL_SUCCESS) return;
  aclrtDestroyStreamForce(stream);
  aclrtCreateStream(&stream);
}

void Try(const Row& row) {
  const acl::OperatorInfo& op = *acl::FindOperator(row.op);
  const std::vector<Args> calls = ValidCalls(row);
  for (size_t c = 0; c < std::min(kMostCalls, calls.size()); ++c) {
    const Args& args = calls[c * calls.size() / std::min(kMostCalls, calls.size())];
    for (uint32_t i = 0; i < op.arg_count; ++i) {
      for (const Wrong& wrong : AllWrong()) {
        Args tried = Copied(op, args);
        if (!wrong.apply(tried[i])) continue;
        std::printf("call %s %zu %s: %s\n", row.op.c_str(), c, std::string(op.args[i].name).c_str(),
                    wrong.what);
        std::fflush(stdout);
        Call(row.op, tried);
      }
    }
  }
}

}  // namespace

int Main(int argc, char** argv) {
  const size_t from = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
  const Rows& rows = AllRows();
  for (size_t i = from; i < rows.size(); ++i) {
    std::printf("operator %zu of %zu %s\n", i, rows.size(), rows[i].op.c_str());
    std::fflush(stdout);
    Try(rows[i]);
  }
  std::printf("end\n");
  return 0;
}

}  // namespace acltape::opapi::grid

int main(int argc, char** argv) { return acltape::opapi::grid::Main(argc, argv); }
