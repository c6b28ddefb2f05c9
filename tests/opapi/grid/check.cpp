#include "tests/opapi/grid/check.h"

#include <ATen/MemoryOverlap.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "runtime/kernel_launch.h"

extern "C" int SoftOperatorHasKernel(const char* name);

namespace acltape::opapi::grid {
namespace {

using acl::ArgKind;
using acl::Direction;
using acl::OperatorInfo;

constexpr int kParamInvalid = 161002;

uint64_t SeedOf(const std::string& op) {
  uint64_t seed = 20240611;
  for (char c : op) seed = seed * 1099511628211u + static_cast<unsigned char>(c);
  return seed & 0x7fffffff;
}

// --- The library's answer.

// The inputs with all tensors of half or bfloat16 in float32; whether there were any.
struct Widened {
  Args inputs;
  at::ScalarType narrow = at::kFloat;
};

Widened Widen(const Args& inputs) {
  Widened result{inputs};
  bool wide = false;
  const auto widen = [&](Tensor& tensor) {
    const at::ScalarType dtype = tensor.scalar_type();
    wide = wide || dtype == at::kFloat || dtype == at::kDouble;
    if (dtype != at::kHalf && dtype != at::kBFloat16) return;
    result.narrow = dtype;
    tensor = tensor.to(at::kFloat);
  };
  for (Arg& input : result.inputs) {
    if (auto* tensor = std::get_if<Tensor>(&input)) widen(*tensor);
    if (auto* list = std::get_if<Tensors>(&input)) {
      for (Tensor& tensor : *list) widen(tensor);
    }
  }
  for (Arg& input : result.inputs) {  // a dtype to compute in
    auto* dtype = std::get_if<at::ScalarType>(&input);
    if (dtype != nullptr && *dtype == result.narrow) *dtype = at::kFloat;
  }
  if (wide) result.narrow = at::kFloat;
  return result;
}

void Narrow(Args& results, at::ScalarType dtype) {
  const auto narrow = [dtype](Tensor& tensor) {
    if (tensor.defined() && tensor.scalar_type() == at::kFloat) tensor = tensor.to(dtype);
  };
  for (Arg& result : results) {
    if (auto* tensor = std::get_if<Tensor>(&result)) narrow(*tensor);
    if (auto* list = std::get_if<Tensors>(&result)) {
      for (Tensor& tensor : *list) narrow(tensor);
    }
  }
}

struct Expected {
  bool refused = false;
  std::string why;
  Args results;
};

// Where the library lacks a kernel for half or bfloat16 the operator computes in float32 and rounds
// once at the end; so does this.
Expected AskLibrary(const Row& row, const Args& inputs) {
  std::string why;
  try {
    return {false, "", row.reference(inputs)};
  } catch (const std::exception& error) {
    why = error.what();
  }
  Widened widened = Widen(inputs);
  const bool lacks = why.find("not implemented for 'Half'") != std::string::npos ||
                     why.find("not implemented for 'BFloat16'") != std::string::npos ||
                     why.find("not support") != std::string::npos;
  why = why.substr(0, why.find('\n'));
  if (widened.narrow == at::kFloat || !lacks) return {true, why, {}};
  try {
    Args results = row.reference(widened.inputs);
    Narrow(results, widened.narrow);
    return {false, "", results};
  } catch (const std::exception&) {
    return {true, why, {}};
  }
}

// --- The operator's call.

// True when the storages of both have the same bytes. Their sizes must be equal.
bool SameBytes(const Tensor& a, const Tensor& b) {
  const size_t bytes = a.storage().nbytes();
  return bytes == 0 || std::memcmp(a.storage().data(), b.storage().data(), bytes) == 0;
}

// A copy of the view in a copy of its whole storage.
Tensor CloneStorage(const Tensor& view) {
  const auto bytes = static_cast<int64_t>(view.storage().nbytes());
  const Tensor copy = at::empty({bytes}, at::kByte);
  if (bytes != 0) std::memcpy(copy.data_ptr(), view.storage().data(), bytes);
  // The storage now counts in elements of the view's dtype.
  return at::empty({0}, view.options())
      .set_(copy.storage(), view.storage_offset(), view.sizes(), view.strides());
}

enum class Placement { kNatural, kStrided, kTransposed };

// A view of the model's sizes and dtype over memory with a pattern around it.
Tensor Place(const Tensor& model, Placement placement) {
  if (placement == Placement::kNatural) {
    const bool dense = at::infer_dense_strides(model.sizes(), model.strides()) == model.strides();
    return Unwritten(dense ? model : model.contiguous());
  }
  std::vector<int64_t> sizes = model.sizes().vec();
  if (placement == Placement::kTransposed && sizes.size() >= 2) {
    std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
    return Unwritten(at::empty(sizes, model.options())).transpose(-1, -2);
  }
  if (sizes.empty()) return Unwritten(at::empty({3}, model.options())).select(0, 1);
  sizes.back() = 2 * sizes.back() + 3;
  return Unwritten(at::empty(sizes, model.options()))
      .slice(-1, 2, 2 + 2 * model.size(-1), 2)
      .view(model.sizes());
}

std::string Describe(const Arg& arg) {
  std::ostringstream text;
  if (const auto* tensor = std::get_if<Tensor>(&arg)) {
    if (!tensor->defined()) return "undefined";
    text << tensor->scalar_type() << tensor->sizes() << " strides " << tensor->strides()
         << " offset " << tensor->storage_offset();
  } else if (const auto* list = std::get_if<Tensors>(&arg)) {
    text << "(";
    for (const Tensor& member : *list) text << Describe(member) << "; ";
    text << ")";
  } else if (const auto* number = std::get_if<at::Scalar>(&arg)) {
    text << *number;
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&arg)) {
    text << at::IntArrayRef(*ints);
  } else if (const auto* value = std::get_if<int>(&arg)) {
    text << *value;
  } else if (const auto* value = std::get_if<int64_t>(&arg)) {
    text << *value;
  } else if (const auto* value = std::get_if<double>(&arg)) {
    text << *value;
  } else if (const auto* value = std::get_if<bool>(&arg)) {
    text << (*value ? "true" : "false");
  } else if (const auto* dtype = std::get_if<at::ScalarType>(&arg)) {
    text << *dtype;
  } else if (const auto* characters = std::get_if<const char*>(&arg)) {
    text << *characters;
  } else {
    text << "NULL";
  }
  return text.str();
}

// A tensor that the operator writes: what it must hold afterwards, bytes around it included.
struct Written {
  uint32_t position;
  Tensor actual, expected;
};

// A tensor that it only reads, and a copy of its bytes.
struct Kept {
  uint32_t position;
  Tensor tensor, copy;
};

class Call {
 public:
  // Failures go to `outcome`.
  Call(const Row& row, const OperatorInfo& op, int number, const Args& inputs, Outcome& outcome)
      : row_(row), op_(op), number_(number), inputs_(inputs), outcome_(outcome) {}

  // Builds all arguments; outputs in `placement`, or where `alias` is set in the first input.
  void Build(const Args& results, Placement placement, bool alias) {
    placement_ = placement;
    aliased_ = alias;
    size_t next_input = 0, next_result = 0;
    for (uint32_t i = 0; i < op_.arg_count; ++i) {
      const acl::ArgInfo& info = op_.args[i];
      if (info.direction == Direction::kIn) {
        args_.push_back(next_input < inputs_.size() ? inputs_[next_input++] : Arg(0));
        Keep(i);
      } else if (info.direction == Direction::kInOut) {
        args_.push_back(Own(inputs_.at(next_input++)));
        if (next_result < results.size()) Expect(i, results[next_result++]);
      } else if (next_result < results.size()) {
        args_.push_back(alias ? args_[0] : Out(results[next_result]));
        if (alias) kept_.erase(kept_.begin());
        Expect(i, results[next_result++]);
      } else {
        args_.push_back(Null{});
      }
    }
  }

  const Args& args() const { return args_; }

  void RunAndCompare() {
    for (const auto& [i, result] : results_) ExpectResult(i, result);
    const int status = RunOperator(row_.op.c_str(), args_);
    if (status != 0) {
      Fail("returned " + std::to_string(status) + ": " + LastMessage());
      return;
    }
    for (const Written& written : written_) Compare(written);
    for (const Kept& kept : kept_) {
      if (!SameBytes(kept.tensor, kept.copy)) {
        Fail("changed its input " + std::string(op_.args[kept.position].name));
      }
    }
  }

  // Adds a failure of this call, with all its arguments.
  void Fail(const std::string& what) {
    std::ostringstream text;
    text << row_.op << " " << what << "\n  case " << number_ << " of seed " << SeedOf(row_.op);
    for (uint32_t i = 0; i < args_.size(); ++i) {
      text << "\n  " << op_.args[i].name << ": " << Describe(args_[i]);
    }
    text << "\n  repeat with --gtest_filter='*Grid*/" << row_.op << "'";
    outcome_.failures.push_back(text.str());
  }

  // Phase one must refuse what the library refuses.
  void ExpectRefusal(const std::string& why) {
    TestStream();
    PackedCall call(row_.op.c_str(), args_);
    const aclnnStatus status = call.Prepare();
    if (status == OK) aclDestroyAclOpExecutor(call.executor());
    if (status != kParamInvalid) {
      Fail("phase one returned " + std::to_string(status) + ", expected " +
           std::to_string(kParamInvalid) + ": the library refuses it (" + why + ")");
    } else if (std::string(aclGetRecentErrMsg()).find(row_.op) == std::string::npos) {
      Fail("refuses without naming itself");
    }
  }

 private:
  void Keep(uint32_t i) {
    if (const auto* tensor = std::get_if<Tensor>(&args_[i])) {
      kept_.push_back({i, *tensor, CloneStorage(*tensor)});
    }
    if (const auto* list = std::get_if<Tensors>(&args_[i])) {
      for (const Tensor& tensor : *list) kept_.push_back({i, tensor, CloneStorage(tensor)});
    }
  }

  static Arg Own(const Arg& input) {
    if (const auto* tensor = std::get_if<Tensor>(&input)) return CloneStorage(*tensor);
    if (const auto* list = std::get_if<Tensors>(&input)) {
      Tensors copies;
      for (const Tensor& tensor : *list) copies.push_back(CloneStorage(tensor));
      return copies;
    }
    return input;
  }

  Arg Out(const Arg& result) const {
    if (const auto* list = std::get_if<Tensors>(&result)) {
      Tensors outs;
      for (const Tensor& tensor : *list) outs.push_back(Place(tensor, placement_));
      return outs;
    }
    const auto& tensor = std::get<Tensor>(result);
    return tensor.defined() ? Arg(Place(tensor, placement_)) : Arg(Null{});
  }

  void Expect(uint32_t i, const Arg& result) { results_.emplace_back(i, result); }

  void ExpectResult(uint32_t i, const Arg& result) {
    const Arg& arg = args_[i];
    if (const auto* list = std::get_if<Tensors>(&result)) {
      const auto& outs = std::get<Tensors>(arg);
      for (size_t k = 0; k < list->size(); ++k) ExpectTensor(i, (*list)[k], outs[k]);
    } else if (std::get<Tensor>(result).defined()) {
      ExpectTensor(i, std::get<Tensor>(result), std::get<Tensor>(arg));
    }
  }

  void ExpectTensor(uint32_t i, const Tensor& result, const Tensor& actual) {
    const Tensor expected = CloneStorage(actual);
    expected.copy_(result);
    written_.push_back({i, actual, expected});
  }

  bool Tolerated() const {
    const Tolerance& tolerance = row_.tolerance;
    return (tolerance.ulps > 0 || tolerance.absolute > 0) && (!tolerance.strided_only || Strided());
  }

  // True when the output has other strides than the library would give it.
  bool Strided() const { return placement_ != Placement::kNatural || aliased_; }

  void Compare(const Written& written) {
    const bool floating = at::isFloatingType(written.actual.scalar_type());
    Measure(written, floating);
    if (floating && Tolerated()) {
      if (!Near(written)) return;
      written.expected.copy_(written.actual);
    } else if (floating && Strided()) {
      // Vector code and scalar code of libtorch make NaNs of different signs.
      const Tensor both = written.actual.isnan().logical_and(written.expected.isnan());
      written.expected.copy_(at::where(both, written.actual, written.expected));
    }
    if (SameBytes(written.actual, written.expected)) {
      return;
    }
    const testing::AssertionResult same = SameBits(written.actual, written.expected);
    Fail(std::string(op_.args[written.position].name) + ": " +
         (same ? "bytes outside of the view were written" : same.message()));
  }

  // Complex numbers have a last dim of their two parts.
  static Tensor InDoubles(const Tensor& tensor) {
    return (tensor.is_complex() ? at::view_as_real(tensor) : tensor).to(at::kDouble);
  }

  // Numbers that are finite on both sides; others are compared one by one.
  void Measure(const Written& written, bool floating) {
    const Tensor a = InDoubles(written.actual), b = InDoubles(written.expected);
    const Tensor finite = a.isfinite().logical_and(b.isfinite());
    const bool alike = at::equal(a.isnan(), b.isnan()) && at::equal(a.isinf(), b.isinf());
    outcome_.distance = std::max(outcome_.distance, alike ? 0 : HUGE_VAL);
    if (!finite.any().item<bool>()) return;
    const Tensor distance = (a - b).abs().masked_fill(finite.logical_not(), 0);
    const double magnitude = b.abs().masked_fill(finite.logical_not(), 0).max().item<double>();
    const double error = distance.max().item<double>() / std::max(magnitude, 1e-30);
    outcome_.distance = std::max(outcome_.distance, error);
    if (!floating) return;
    double& greatest = outcome_.errors[written.actual.scalar_type()];
    greatest = std::max(greatest, error);
  }

  bool Near(const Written& written) {
    const Tensor a = written.actual.to(at::kDouble).flatten();
    const Tensor b = written.expected.to(at::kDouble).flatten();
    const at::ScalarType dtype = written.actual.scalar_type();
    const double epsilon = dtype == at::kDouble  ? 2.3e-16
                           : dtype == at::kFloat ? 1.2e-7
                           : dtype == at::kHalf  ? 9.8e-4
                                                 : 7.9e-3;
    const auto* x = a.data_ptr<double>();
    const auto* y = b.data_ptr<double>();
    for (int64_t i = 0; i < a.numel(); ++i) {
      if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
      const double distance = std::fabs(x[i] - y[i]);
      const double magnitude = std::max(std::fabs(x[i]), std::fabs(y[i]));
      const Tolerance& tolerance = row_.tolerance;
      if (distance <= tolerance.absolute) continue;
      if (distance <= tolerance.ulps * epsilon * magnitude) continue;
      std::ostringstream text;
      text.precision(17);
      text << op_.args[written.position].name << ": element " << i << " of " << a.numel() << " is "
           << x[i] << ", expected " << y[i] << " (tolerance: " << tolerance.ulps << " ulp, "
           << tolerance.absolute << ")";
      Fail(text.str());
      return false;
    }
    return true;
  }

  const Row& row_;
  const OperatorInfo& op_;
  int number_;
  const Args& inputs_;
  Outcome& outcome_;
  Args args_;
  std::vector<std::pair<uint32_t, Arg>> results_;
  std::vector<Written> written_;
  std::vector<Kept> kept_;
  Placement placement_ = Placement::kNatural;
  bool aliased_ = false;
};

// Results for a call that the library refuses: of the first tensor's shape.
Args RefusedResults(const OperatorInfo& op, const Args& inputs) {
  Args results;
  Tensor model = at::empty({2});
  for (const Arg& input : inputs) {
    if (const auto* tensor = std::get_if<Tensor>(&input)) {
      model = *tensor;
      break;
    }
  }
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    if (op.args[i].direction == Direction::kIn) continue;
    results.push_back(op.args[i].kind == ArgKind::kTensorList ? Arg(Tensors{model}) : Arg(model));
  }
  return results;
}

bool SameLayout(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
}

// True when the first input may be the output as well.
bool MayAlias(const Row& row, const OperatorInfo& op, const Args& inputs, const Args& results) {
  if (!row.inplace || results.size() != 1 || inputs.empty()) return false;
  const auto* input = std::get_if<Tensor>(&inputs[0]);
  const auto* result = std::get_if<Tensor>(&results[0]);
  if (input == nullptr || result == nullptr || op.args[0].direction != Direction::kIn) return false;
  return SameLayout(*input, *result) && at::has_internal_overlap(*input) != at::MemOverlap::Yes;
}

// Gives all elements the same value, so that it is no matter whether they share memory.
bool IsFill(const OperatorInfo& op) {
  for (const char* name : {"aclnnInplaceZero", "aclnnInplaceOne", "aclnnInplaceFillScalar",
                           "aclnnInplaceFillTensor"}) {
    if (op.name == name) return true;
  }
  return false;
}

bool OverlapsItself(const OperatorInfo& op, const Args& inputs) {
  const auto* tensor = inputs.empty() ? nullptr : std::get_if<Tensor>(&inputs[0]);
  return tensor != nullptr && op.args[0].direction == Direction::kInOut &&
         at::has_internal_overlap(*tensor) == at::MemOverlap::Yes;
}

// The quotient of integers and a number is cut off for integers.
bool CutsOff(const OperatorInfo& op, const Tensor& tensor) {
  return op.name == "aclnnInplaceDivs" && at::isIntegralType(tensor.scalar_type(), false);
}

// An in-place operator keeps the shape and the dtype of what it overwrites: a result that is
// broadcast or of a wider kind does not fit.
bool DoesNotFit(const OperatorInfo& op, const Args& inputs, const Args& results) {
  if (op.arg_count == 0 || op.args[0].direction != Direction::kInOut) return false;
  const auto* tensor = std::get_if<Tensor>(&inputs[0]);
  const auto* result = std::get_if<Tensor>(&results[0]);
  return tensor != nullptr && result != nullptr && result->defined() &&
         (result->sizes() != tensor->sizes() ||
          (!at::canCast(result->scalar_type(), tensor->scalar_type()) && !CutsOff(op, *tensor)));
}

Source SourceOf(const Row& row) { return Source(SeedOf(row.op), row.low, row.high); }

Row InplaceForm(const Row& row, const std::string& name) {
  Row form = row;
  form.op = name;
  return form;
}

}  // namespace

Outcome Run(const Row& row) {
  const OperatorInfo* op = acl::FindOperator(row.op);
  Outcome outcome;
  if (op == nullptr) {
    outcome.failures.push_back(row.op + " is not in the operator table");
    return outcome;
  }
  Source source = SourceOf(row);
  constexpr Placement kPlacements[] = {Placement::kNatural, Placement::kStrided,
                                       Placement::kNatural, Placement::kTransposed};
  int number = 0;
  for (at::ScalarType dtype : row.dtypes) {
    for (const Args& inputs : row.inputs(source, dtype)) {
      if (IsFill(*op) && OverlapsItself(*op, inputs)) continue;  // has a test of its own
      const Expected expected = AskLibrary(row, inputs);
      const Placement placement = kPlacements[number++ % 4];
      Call call(row, *op, number, inputs, outcome);
      if (expected.refused && !row.may_refuse) {
        call.Fail("has no result to compare: its reference fails (" + expected.why + ")");
        continue;
      }
      if (expected.refused || OverlapsItself(*op, inputs) ||
          DoesNotFit(*op, inputs, expected.results)) {
        call.Build(RefusedResults(*op, inputs), Placement::kNatural, false);
        call.ExpectRefusal(expected.refused ? expected.why : "cannot be written in place");
        ++outcome.refusals;
        continue;
      }
      call.Build(expected.results, placement, false);
      call.RunAndCompare();
      ++outcome.cases;
      if (!MayAlias(row, *op, inputs, expected.results)) continue;
      Args owned = inputs;
      owned[0] = CloneStorage(std::get<Tensor>(inputs[0]));
      Call aliased(row, *op, number, owned, outcome);
      aliased.Build(expected.results, Placement::kNatural, true);
      aliased.RunAndCompare();
      ++outcome.cases;
    }
  }
  return outcome;
}

namespace {

// Builds the call of these inputs; false where the library refuses them.
bool BuildOn(const Row& row, const OperatorInfo& op, const Args& inputs, Call& call) {
  const Expected expected = AskLibrary(row, inputs);
  if (expected.refused || OverlapsItself(op, inputs) || DoesNotFit(op, inputs, expected.results)) {
    return false;
  }
  const auto half_complex = [](const Arg& result) {  // not one of the interface's dtypes
    const auto* tensor = std::get_if<Tensor>(&result);
    return tensor != nullptr && tensor->defined() && tensor->scalar_type() == at::kComplexHalf;
  };
  if (std::any_of(expected.results.begin(), expected.results.end(), half_complex)) return false;
  call.Build(expected.results, Placement::kNatural, false);
  return true;
}

}  // namespace

Args CallOf(const Row& row, const Args& inputs) {
  const OperatorInfo& op = *acl::FindOperator(row.op);
  Outcome unused;
  Call call(row, op, 0, inputs, unused);
  return BuildOn(row, op, inputs, call) ? call.args() : Args();
}

Outcome RunOn(const Row& row, const Args& inputs) {
  const OperatorInfo& op = *acl::FindOperator(row.op);
  Outcome outcome;
  Call call(row, op, 0, inputs, outcome);
  if (BuildOn(row, op, inputs, call)) call.RunAndCompare();
  return outcome;
}

namespace {

struct Family {
  const char* name;
  Rows (*rows)();
  // True: its references refuse some of the inputs, and phase one has to. In the others a reference
  // that fails is a mistake of the row, which would compare less than it says.
  bool refuses = false;
};
constexpr Family kFamilies[] = {
    {"element by element", ElementwiseRows, true},
    {"element by element", ElementFormulaRows},
    {"activations", ActivationRows, true},
    {"activations", ActivationFormulaRows},
    {"reductions", ReduceRows, true},
    {"matrices", MatrixRows, true},
    {"matrices", LinalgRows},
    {"layers and losses", LayerRows},
    {"attention", AttentionRows},
    {"attention", InferenceRows},
    {"indices", IndexRows},
    {"indices", IndexFormulaRows},
    {"shapes and fills", ShapeRows, true},
    {"lists of tensors", ForeachRows},
    {"vision", VisionRows},
    {"vision", ResampleRows, true},
    {"search and sort", SearchRows, true},
    {"gradients", GradientRows},
    {"layers and losses", NetworkRows},
    {"volumes", VolumeRows},
    {"positions and caches", PositionRows},
    {"quantisation", QuantizedRows},
    {"fused norms", FusedNormRows},
    {"what adapters call", AdapterRows, true},
    {"compressed keys and states", StateRows},
    {"attention over blocks", BlockSparseRows},
    {"positions", RopeCacheRows},
    {"rings", RingRows},
    {"what libatb.so calls", BoostRows},
    {"positions and caches", BlockCacheRows},
    {"what vLLM's plug-in brings", PluginRows},
    {"what vLLM's plug-in brings", SharedKvRows},
    {"activations", SplitRows},
    {"what sample programs call", SampleRows},
    {"what sample programs call", TrainingRows},
    {"experts", RoutingRows},
    {"experts", ExpertProductRows},
    {"what servers call", ServingRows},
    {"quantisation", TurnedRows},
    {"vision", RegionRows},
    {"quantisation", GroupQuantisedRows},
};

struct Table {
  Rows rows;
  std::map<std::string, std::string> families;
};

const Table& WholeTable() {
  static const Table* table = [] {
    auto* all = new Table;
    for (const Family& family : kFamilies) {
      for (Row& row : family.rows()) {
        row.may_refuse = family.refuses;
        const std::string inplace = "aclnnInplace" + row.op.substr(5);
        const bool derived = row.inplace && SoftOperatorHasKernel(inplace.c_str()) != 0;
        if (derived) {
          all->families.emplace(inplace, family.name);
          all->rows.push_back(InplaceForm(row, inplace));
        }
        all->families.emplace(row.op, family.name);
        all->rows.push_back(std::move(row));
      }
    }
    return all;
  }();
  return *table;
}

}  // namespace

const Rows& AllRows() { return WholeTable().rows; }

const std::map<std::string, std::string>& FamilyOfOperator() { return WholeTable().families; }

std::vector<Args> ValidCalls(const Row& row) {
  Source source = SourceOf(row);
  std::vector<Args> calls;
  for (at::ScalarType dtype : row.dtypes) {
    for (const Args& inputs : row.inputs(source, dtype)) {
      Args call = CallOf(row, inputs);
      if (!call.empty()) calls.push_back(std::move(call));
    }
    if (!calls.empty()) break;
  }
  return calls;
}

Args ValidCall(const Row& row) {
  const std::vector<Args> calls = ValidCalls(row);
  return calls.empty() ? Args() : calls.front();
}

}  // namespace acltape::opapi::grid
