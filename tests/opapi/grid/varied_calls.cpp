// Calls of every operator of the grid with other dtypes and ranks: each is refused by the first
// phase, or its task succeeds. A task that fails stops its stream, and with it the program, so what
// a first phase can see it has to refuse. Where the row's reference takes the varied inputs too,
// the results are those of the reference.
//
//   opapi_varied_calls           one right call of each operator, chosen by a fixed seed, is varied
//   opapi_varied_calls --all     all right calls of each operator are varied (about ten minutes)
//   opapi_varied_calls aclnnAdd  all right calls of one operator are varied
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/grid/check.h"

namespace acltape::opapi::grid {
namespace {

using acl::Direction;
using at::Tensor;

constexpr int kMostRank = 8;  // the interface allows no more

const Dtypes kVariedDtypes = {at::kFloat, at::kHalf, at::kBFloat16,     at::kDouble,
                              at::kLong,  at::kInt,  at::kShort,        at::kChar,
                              at::kByte,  at::kBool, at::kComplexFloat, at::kComplexDouble};

// --- The variations of one tensor.

// The same values as far as the dtype holds them: an index stays within its tensor.
Tensor OfDtype(const Tensor& tensor, at::ScalarType dtype) {
  Tensor values = tensor.contiguous();
  if (values.is_complex()) values = at::real(values);
  if (at::isIntegralType(dtype, /*includeBool=*/false)) {
    const int bits = static_cast<int>(8 * c10::elementSize(dtype));
    const bool sign = dtype != at::kByte;
    const double most = std::ldexp(1.0, std::min(sign ? bits - 1 : bits, 53)) - 1;
    values = values.to(at::kDouble).nan_to_num(0, most, sign ? -most : 0);
    values = values.clamp(sign ? -most : 0, most);
  }
  return values.to(dtype).clone();
}

// The same elements in another number of dims: dims of size 1 in front, or the first dims as one.
std::optional<Tensor> OfRank(const Tensor& tensor, int rank) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  while (static_cast<int>(sizes.size()) < rank) sizes.insert(sizes.begin(), 1);
  while (static_cast<int>(sizes.size()) > std::max(rank, 1)) {
    sizes[1] *= sizes[0];
    sizes.erase(sizes.begin());
  }
  if (rank == 0) {
    if (tensor.numel() != 1)
      return tensor.numel() == 0 ? std::nullopt
                                 : std::optional(tensor.contiguous().flatten()[0].clone());
    sizes.clear();
  }
  return tensor.contiguous().clone().view(sizes);
}

// --- The variations of one call.

struct Variation {
  std::string what;
  bool of_reals, of_integers;  // false of ranks
  // Results may be as far from the reference as this, in parts of the greatest magnitude. The
  // tolerance of a row holds for the dtypes of the row alone.
  double precision;
  std::function<std::optional<Tensor>(const Tensor&)> change;
  // True for the tensors that change when all are varied together.
  std::function<bool(const Tensor&)> concerns = [](const Tensor&) { return true; };
};

// The dtype that most tensors of the call have.
at::ScalarType MainDtype(const Args& args) {
  std::map<at::ScalarType, int> counts;
  for (const Arg& arg : args) {
    if (const auto* tensor = std::get_if<Tensor>(&arg); tensor != nullptr && tensor->defined()) {
      counts[tensor->scalar_type()] += at::isFloatingType(tensor->scalar_type()) ? 100 : 1;
    }
    if (const auto* list = std::get_if<Tensors>(&arg)) {
      for (const Tensor& member : *list) counts[member.scalar_type()] += 100;
    }
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? at::kFloat : most->first;
}

// Some of the library's operators compute in bfloat16 throughout.
constexpr double kPrecision = 1e-4, kHalfPrecision = 1e-1;

double PrecisionOf(at::ScalarType dtype) {
  return dtype == at::kHalf || dtype == at::kBFloat16 ? kHalfPrecision : kPrecision;
}

std::vector<Variation> VariationsOf(const Args& args) {
  std::vector<Variation> all;
  const at::ScalarType main = MainDtype(args);
  for (const at::ScalarType dtype : kVariedDtypes) {
    all.push_back({std::string("dtype ") + at::toString(dtype), !at::isComplexType(dtype),
                   at::isIntegralType(dtype, true), PrecisionOf(dtype),
                   [dtype](const Tensor& tensor) { return OfDtype(tensor, dtype); },
                   [main](const Tensor& tensor) { return tensor.scalar_type() == main; }});
  }
  for (int rank = 0; rank <= kMostRank; ++rank) {
    all.push_back({"rank " + std::to_string(rank), false, false, kPrecision,
                   [rank](const Tensor& tensor) { return OfRank(tensor, rank); }});
  }
  return all;
}

bool HasTensors(const Arg& arg) {
  return std::holds_alternative<Tensor>(arg) || std::holds_alternative<Tensors>(arg);
}

// False where the argument has no tensor or cannot be varied so.
bool Vary(const Variation& variation, bool all, Arg& arg) {
  const auto change = [&](Tensor& tensor) {
    if (!tensor.defined() || (all && !variation.concerns(tensor))) return true;
    const std::optional<Tensor> changed = variation.change(tensor);
    if (changed) tensor = *changed;
    return changed.has_value();
  };
  if (auto* tensor = std::get_if<Tensor>(&arg)) return change(*tensor);
  if (auto* list = std::get_if<Tensors>(&arg)) {
    return std::all_of(list->begin(), list->end(), change);
  }
  return false;
}

// --- One call.

std::string Described(const acl::OperatorInfo& op, const Args& args) {
  std::ostringstream text;
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (const auto* tensor = std::get_if<Tensor>(&args[i]); tensor != nullptr) {
      if (!tensor->defined()) continue;
      text << " " << op.args[i].name << " " << tensor->scalar_type() << tensor->sizes();
    }
    if (const auto* list = std::get_if<Tensors>(&args[i]); list != nullptr && !list->empty()) {
      text << " " << op.args[i].name << " list of " << (*list)[0].scalar_type()
           << (*list)[0].sizes();
    }
  }
  return text.str();
}

enum class End { kRefused, kSucceeded, kFailed };

// Both phases on a stream of the program's own. A task that fails stops its stream, so the next
// call gets another one.
End Call(const std::string& op, const Args& args, std::string* why) {
  static aclrtStream stream = [] {
    TestStream();
    aclrtStream made = nullptr;
    aclrtCreateStream(&made);
    return made;
  }();
  PackedCall call(op.c_str(), args);
  if (call.Prepare() != OK) {
    *why = TakeMessage();
    return End::kRefused;
  }
  if (call.Launch(stream) == OK && aclrtSynchronizeStream(stream) == ACL_SUCCESS) {
    return End::kSucceeded;
  }
  *why = TakeMessage();
  aclrtDestroyStreamForce(stream);
  aclrtCreateStream(&stream);
  return End::kFailed;
}

// True for the errors of a task that are about values, which the first phase does not see: a tensor
// with fewer elements, or another number of dims, makes indices and counts too large.
bool IsOfValues(const std::string& why) {
  for (const char* text : {"out of bounds", "out of range", "exceeds dimension size",
                           "repeats ask for", "Number of elements of source", "the mask selects"}) {
    if (why.find(text) != std::string::npos) return true;
  }
  return false;
}

// --- All calls.

// The work that a process has done so far, in memory that outlives it.
struct Progress {
  size_t row = 0;
  int calls = 0, refused = 0, succeeded = 0, of_values = 0, failed = 0, compared = 0, wrong = 0;
  char call[256] = "";  // the one that it makes
};

class Sweep {
 public:
  Sweep(bool all, Progress* progress) : all_(all), progress_(*progress) {}

  void Try(const Row& row) {
    row_ = &row;
    op_ = acl::FindOperator(row.op);
    const std::vector<Args> calls = ValidCalls(row);
    for (const size_t number : Chosen(calls.size())) {
      for (const Variation& variation : VariationsOf(calls[number])) {
        TryAll(calls[number], variation);
        for (uint32_t i = 0; i < op_->arg_count; ++i) TryOne(calls[number], variation, i);
      }
    }
  }

 private:
  std::vector<size_t> Chosen(size_t count) const {
    std::vector<size_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    if (all_ || count < 2) return numbers;
    std::minstd_rand random(20240611);
    return {std::uniform_int_distribution<size_t>(0, count - 1)(random)};
  }

  void TryAll(const Args& valid, const Variation& variation) {
    Args varied = valid;
    bool any = false;
    for (Arg& arg : varied) {
      if (!HasTensors(arg)) continue;
      if (!Vary(variation, true, arg)) return;
      any = true;
    }
    if (!any) return;
    Args own_outputs = valid, inputs;
    for (uint32_t i = 0; i < op_->arg_count; ++i) {
      if (op_->args[i].direction == Direction::kOut) continue;
      own_outputs[i] = varied[i];
      inputs.push_back(varied[i]);
    }
    const bool taken = Make(Owned(varied), "all tensors of " + variation.what) == End::kSucceeded;
    const bool also =
        Make(Owned(own_outputs), "all inputs of " + variation.what) == End::kSucceeded;
    if ((taken || also) && IsComparable(variation)) Compare(inputs, variation);
  }

  void TryOne(const Args& valid, const Variation& variation, uint32_t i) {
    Args args = Owned(valid);
    if (!Vary(variation, false, args[i])) return;
    Make(args, std::string(op_->args[i].name) + " of " + variation.what);
  }

  // A formula of the tests may read past tensors of another rank, and is one of real numbers. The
  // library looks at ranks. How a mean of integers is rounded is not documented.
  bool IsComparable(const Variation& variation) const {
    const bool means = row_->op.find("ScatterReduce") != std::string::npos;
    if (variation.of_integers && means) return false;
    return row_->may_refuse || variation.of_reals;
  }

  // With the outputs that the reference gives.
  void Compare(const Args& inputs, const Variation& variation) {
    Note("the reference for " + variation.what);
    const Args args = CallOf(*row_, inputs);
    const std::string what = "what the reference takes of " + variation.what;
    if (args.empty() || Make(args, what) != End::kSucceeded) return;
    ++progress_.compared;
    const Outcome outcome = RunOn(*row_, inputs);
    if (outcome.failures.empty()) return;
    if (outcome.distance >= 0 && outcome.distance < variation.precision) return;
    ++progress_.wrong;
    std::printf("wrong: %s: %s\n", what.c_str(), outcome.failures[0].c_str());
  }

  End Make(const Args& args, const std::string& what) {
    std::string why;
    ++progress_.calls;
    Note(what);
    const End end = Call(row_->op, args, &why);
    if (end == End::kRefused) ++progress_.refused;
    if (end == End::kSucceeded) ++progress_.succeeded;
    if (end == End::kFailed && IsOfValues(why)) {
      ++progress_.of_values;
    } else if (end == End::kFailed) {
      ++progress_.failed;
      std::printf("failed: %s, %s:%s: %s\n", row_->op.c_str(), what.c_str(),
                  Described(*op_, args).c_str(), why.c_str());
    }
    return end;
  }

  void Note(const std::string& what) {
    std::snprintf(progress_.call, sizeof progress_.call, "%s, %s", row_->op.c_str(), what.c_str());
  }

  // Outputs of their own for each call.
  Args Owned(const Args& args) const {
    Args copy = args;
    for (uint32_t i = 0; i < op_->arg_count; ++i) {
      if (op_->args[i].direction == Direction::kIn) continue;
      if (auto* tensor = std::get_if<Tensor>(&copy[i]); tensor != nullptr && tensor->defined()) {
        *tensor = tensor->contiguous().clone();
      }
      if (auto* list = std::get_if<Tensors>(&copy[i])) {
        for (Tensor& member : *list) member = member.contiguous().clone();
      }
    }
    return copy;
  }

  bool all_;
  const Row* row_ = nullptr;
  const acl::OperatorInfo* op_ = nullptr;
  Progress& progress_;
};

}  // namespace

namespace {

// Goes through the rows from progress->row on.
void Go(const std::string& only, Progress* progress) {
  Sweep sweep(!only.empty(), progress);
  const Rows& rows = AllRows();
  for (; progress->row < rows.size(); ++progress->row) {
    const Row& row = rows[progress->row];
    if (only.empty() || only == "--all" || only == row.op) sweep.Try(row);
  }
}

}  // namespace

int Main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string only = argc > 1 ? argv[1] : "";
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* progress = new (shared) Progress;
  int ended = 0;
  // A call that ends its process ends the sweep of its operator alone.
  while (true) {
    const pid_t child = fork();
    if (child == 0) {
      Go(only, progress);
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    std::printf("ended: %s: status %d\n", progress->call, status);
    ++ended;
    ++progress->row;
  }
  const Progress& all = *progress;
  std::printf(
      "varied calls: %d, refused by the first phase: %d, succeeded: %d, failed for their "
      "values: %d, failed otherwise: %d; compared with a reference: %d, wrong: %d; ended the "
      "process: %d\n",
      all.calls, all.refused, all.succeeded, all.of_values, all.failed, all.compared, all.wrong,
      ended);
  return all.failed + all.wrong + ended == 0 ? 0 : 1;
}

}  // namespace acltape::opapi::grid

int main(int argc, char** argv) { return acltape::opapi::grid::Main(argc, argv); }
