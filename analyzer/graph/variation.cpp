#include "analyzer/graph/variation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/acl/acl_program.h"
#include "analyzer/calls/byte_set.h"
#include "analyzer/calls/value_text.h"
#include "base/hash.h"
#include "storage/scalar_list.h"

namespace acltape::analyzer::graph {
namespace {

using storage::Direction;
using storage::SignatureArgument;
using storage::ValueKind;

bool IsPlace(const WorkForm& form, Dialect dialect) {
  return dialect == Dialect::kAcl ? RepeatsWithTheStep(form.acl_kind()) : form.active();
}

// True if a capture of the call would bake the value of the argument.
bool IsHostArgument(const WorkForm& form, const SignatureArgument& argument, int index) {
  if (argument.HoldsTensors() || argument.kind == ValueKind::kNone ||
      argument.direction == Direction::kOut || IsIncidental(argument)) {
    return false;
  }
  const AclFunction* function = form.function;
  if (function == nullptr || function->kind == AclCallKind::kOperator) return true;
  // The object of an interface call is a handle, unless the call works on memory.
  if (index == function->stream || !IsDeviceWork(function->kind)) return false;
  return true;
}

std::optional<double> Number(const SignatureArgument& argument) {
  switch (argument.kind) {
    case ValueKind::kInt:
    case ValueKind::kBool:
      return static_cast<double>(argument.integer);
    case ValueKind::kReal:
      return argument.real;
    case ValueKind::kScalar:
      if (!argument.reals.empty()) return std::nullopt;
      if (storage::IsRealDtype(argument.text)) return argument.real;
      return static_cast<double>(argument.integer);
    default:
      return std::nullopt;
  }
}

std::string TensorsText(const SignatureArgument& argument, const storage::Reader& trace) {
  std::string text = std::to_string(argument.tensors.size()) + ":";
  for (const storage::SlotRef& tensor : argument.tensors) {
    if (!tensor.defined()) {
      text += " none";
      continue;
    }
    const storage::Layout& layout = trace.GetLayout(tensor.layout_id);
    text += " " + std::string(DTypeName(layout.dtype)) + " of " +
            std::to_string(layout.shape.size()) + " dimensions";
  }
  return text;
}

// Expresses whole numbers over the steps of a family by the first such numbers that differed: v =
// factor * symbol + offset.
class Symbols {
 public:
  explicit Symbols(std::vector<ShapeSymbol>& symbols) : symbols_(symbols) {}

  struct Expression {
    int symbol = 0;
    int64_t factor = 1;
    int64_t offset = 0;
  };

  // Finds a symbol that expresses the values. Returns null if there is none. Precondition: the
  // values are not all equal.
  const Expression* Find(const std::vector<int64_t>& values) {
    const int64_t unit = Unit(values);
    for (const size_t candidate : by_direction_[Direction(values, unit)]) {
      const ShapeSymbol& symbol = symbols_[candidate];
      const int64_t base = Unit(symbol.sizes);
      if (unit % base != 0) continue;
      const int64_t factor = unit / base;
      // Any two values fit any symbol with some factor. With fewer than three values only an offset
      // counts.
      if (factor != 1 && symbol.values < 3) continue;
      const int64_t offset = values[0] - factor * symbol.sizes[0];
      const bool fits =
          std::equal(values.begin(), values.end(), symbol.sizes.begin(),
                     [&](int64_t value, int64_t size) { return value == factor * size + offset; });
      if (!fits) continue;
      expression_ = {static_cast<int>(candidate), factor, offset};
      return &expression_;
    }
    return nullptr;
  }

  // Finds a symbol that expresses the values, or adds a new one.
  Expression FindOrAdd(const std::vector<int64_t>& values) {
    if (const Expression* found = Find(values)) return *found;
    by_direction_[Direction(values, Unit(values))].push_back(symbols_.size());
    const std::unordered_set<int64_t> different(values.begin(), values.end());
    symbols_.push_back({values, different.size(), 0});
    return {static_cast<int>(symbols_.size() - 1), 1, 0};
  }

 private:
  // The greatest number that divides all differences to the first value. It has the sign of the
  // first difference.
  static int64_t Unit(const std::vector<int64_t>& values) {
    int64_t unit = 0;
    int64_t sign = 0;
    for (const int64_t value : values) {
      unit = std::gcd(unit, value - values[0]);
      if (sign == 0 && value != values[0]) sign = value > values[0] ? 1 : -1;
    }
    return unit * sign;
  }
  // Hashes the values so that two lists which differ only by a factor and an offset have equal
  // hashes.
  static uint64_t Direction(const std::vector<int64_t>& values, int64_t unit) {
    uint64_t hash = values.size();
    for (const int64_t value : values) {
      hash = base::HashWith(hash, static_cast<uint64_t>((value - values[0]) / unit));
    }
    return hash;
  }

  std::vector<ShapeSymbol>& symbols_;
  std::unordered_map<uint64_t, std::vector<size_t>> by_direction_;
  Expression expression_;
};

class Comparison {
 public:
  Comparison(const Work& work, const StepFamily& family)
      : work_(work), family_(family), symbols_(result_.symbols) {}

  Variation Compare() {
    FindInputs();
    CompareArguments();
    return std::move(result_);
  }

  std::vector<ArgumentVariation> Arguments() {
    CompareArguments();
    return std::move(result_.arguments);
  }

 private:
  void CompareArguments() {
    for (place_ = 0; place_ < family_.places; ++place_) {
      const WorkForm& form = Form(0);
      for (size_t a = 0; a < form.arguments->size(); ++a) {
        if (IsHostArgument(form, (*form.arguments)[a], static_cast<int>(a))) {
          ++result_.host_arguments;
        }
      }
      GatherVersions();
      if (versions_.size() > 1) ComparePlace();
      if (form.kind == LeafKind::kHostRead) NoteHostRead();
    }
    // These two need results of later places: sizes name dimensions that a later place may define,
    // and a value of the step before may have been read at a later place.
    for (ArgumentVariation& row : result_.arguments) {
      if (row.kind != VariationKind::kVarying) continue;
      place_ = row.place;
      argument_ = row.argument;
      GatherVersions();
      SetCarried(row);
      SetSymbols(row);
    }
  }

  const WorkForm& Form(size_t step) const { return work_.form(family_.Call(step, place_)); }
  size_t step_count() const { return family_.steps.size(); }

  // Gathers the different argument lists at this place, and the list that each step has.
  void GatherVersions() {
    versions_.clear();
    version_of_step_.resize(step_count());
    std::unordered_map<const std::vector<SignatureArgument>*, int32_t> known;
    const std::vector<SignatureArgument>* last = nullptr;
    int32_t version = 0;
    for (size_t step = 0; step < step_count(); ++step) {
      const std::vector<SignatureArgument>* arguments = Form(step).arguments;
      if (arguments != last) {
        last = arguments;
        const auto [entry, created] =
            known.try_emplace(arguments, static_cast<int32_t>(versions_.size()));
        if (created) versions_.push_back(arguments);
        version = entry->second;
      }
      version_of_step_[step] = version;
    }
  }

  void ComparePlace() {
    const std::vector<SignatureArgument>& first = *versions_[0];
    const bool equal_count = std::all_of(versions_.begin(), versions_.end(), [&](const auto* list) {
      return list->size() == first.size();
    });
    if (!equal_count) return;  // operators with a variable number of arguments do not exist
    for (size_t a = 0; a < first.size(); ++a) {
      argument_ = static_cast<int>(a);
      // An optional argument may be none in some steps.
      const auto any = [&](auto&& holds) {
        for (size_t version = 0; version < versions_.size(); ++version) {
          if (holds(At(version))) return true;
        }
        return false;
      };
      if (any([&](const SignatureArgument& x) { return IsHostArgument(Form(0), x, argument_); })) {
        CompareValues();
      } else if (!IsIncidental(first[a]) &&
                 any([](const SignatureArgument& argument) { return argument.HoldsTensors(); })) {
        CompareTensors();
      }
    }
  }

  const SignatureArgument& At(size_t version) const { return (*versions_[version])[argument_]; }

  // Numbers the different texts of the versions. If there are several, adds a row and returns true.
  template <typename Text>
  bool AddVariation(VariationKind kind, Text&& text) {
    std::unordered_map<std::string, size_t> values;
    size_t other = 0;  // the first version whose value differs from that of version 0
    for (size_t version = 0; version < versions_.size(); ++version) {
      const bool created = values.try_emplace(text(At(version)), version).second;
      if (created && version != 0 && other == 0) other = version;
    }
    if (other == 0) return false;
    ArgumentVariation row;
    row.place = place_;
    row.argument = argument_;
    row.name = At(0).name;
    row.kind = kind;
    row.values = values.size();
    row.first_value = text(At(0));
    row.second_value = text(At(other));
    row.first_call = family_.Call(0, place_);
    const auto step =
        std::find(version_of_step_.begin(), version_of_step_.end(), static_cast<int32_t>(other)) -
        version_of_step_.begin();
    row.second_call = family_.Call(static_cast<size_t>(step), place_);
    result_.arguments.push_back(std::move(row));
    return true;
  }

  void CompareValues() {
    const auto text = [](const SignatureArgument& argument) {
      return argument.HoldsTensors() ? "a tensor" : ValueText(argument);
    };
    if (!AddVariation(VariationKind::kVarying, text)) return;
    const std::optional<uint64_t> numbers = NumbersHash(Steps::kAll);
    const auto read = numbers ? host_reads_.find(*numbers) : host_reads_.end();
    if (read == host_reads_.end()) return;
    result_.arguments.back().kind = VariationKind::kDerived;
    result_.arguments.back().read_place = static_cast<int64_t>(read->second);
  }

  void SetCarried(ArgumentVariation& row) {
    const std::optional<uint64_t> numbers = NumbersHash(Steps::kWithOneBefore);
    const auto read = numbers ? carried_reads_.find(*numbers) : carried_reads_.end();
    if (read == carried_reads_.end()) return;
    row.kind = VariationKind::kCarried;
    row.read_place = static_cast<int64_t>(read->second);
  }

  void CompareTensors() {
    const auto text = [&](const SignatureArgument& argument) {
      return TensorsText(argument, *work_.trace);
    };
    if (AddVariation(VariationKind::kLayout, text)) return;
    if (At(0).direction == Direction::kOut) return;
    for (size_t element = 0; element < At(0).tensors.size(); ++element) {
      if (!At(0).tensors[element].defined()) continue;
      const auto shape = [&](size_t version) -> const std::vector<int64_t>& {
        return work_.trace->GetLayout(At(version).tensors[element].layout_id).shape;
      };
      for (size_t d = 0; d < shape(0).size(); ++d) {
        bool varies = false;
        std::vector<int64_t> sizes(versions_.size());
        for (size_t version = 0; version < versions_.size(); ++version) {
          sizes[version] = shape(version)[d];
          varies = varies || sizes[version] != sizes[0];
        }
        if (!varies) continue;
        const auto expression = symbols_.FindOrAdd(BySteps(sizes));
        ++result_.symbols[expression.symbol].dimensions;
        result_.dimensions.push_back({place_, argument_, static_cast<int>(element), At(0).name,
                                      static_cast<int>(d), expression.symbol, expression.factor,
                                      expression.offset});
      }
    }
  }

  std::vector<int64_t> BySteps(const std::vector<int64_t>& by_version) const {
    std::vector<int64_t> values(step_count());
    for (size_t step = 0; step < step_count(); ++step) {
      values[step] = by_version[version_of_step_[step]];
    }
    return values;
  }

  // Selects the steps of the family whose numbers count: all steps, those whose previous step is of
  // the family too, or those previous steps.
  enum class Steps { kAll, kWithOneBefore, kBefore };

  // Hashes the argument's numbers over the steps. Returns nothing if it is not a number or if all
  // are equal.
  std::optional<uint64_t> NumbersHash(Steps steps) const {
    std::vector<double> numbers;
    for (size_t version = 0; version < versions_.size(); ++version) {
      const std::optional<double> number = Number(At(version));
      if (!number) return std::nullopt;
      numbers.push_back(*number);
    }
    uint64_t hash = 0;
    std::optional<double> first;
    bool varies = false;
    for (size_t step = steps == Steps::kAll ? 0 : 1; step < step_count(); ++step) {
      if (steps != Steps::kAll && family_.steps[step] != family_.steps[step - 1] + 1) continue;
      const double number = numbers[version_of_step_[step - (steps == Steps::kBefore ? 1 : 0)]];
      hash = base::HashWith(hash, std::hash<double>()(number));
      varies = varies || (first && *first != number);
      if (!first) first = number;
    }
    if (!varies) return std::nullopt;
    return hash;
  }

  void NoteHostRead() {
    const std::vector<SignatureArgument>& first = *versions_[0];
    for (size_t a = 0; a < first.size(); ++a) {
      if (first[a].direction != Direction::kOut || first[a].HoldsTensors()) continue;
      argument_ = static_cast<int>(a);
      if (const auto hash = NumbersHash(Steps::kAll)) host_reads_[*hash] = place_;
      if (const auto hash = NumbersHash(Steps::kBefore)) carried_reads_[*hash] = place_;
    }
  }

  // Expresses whole numbers by the symbols of dimensions.
  void SetSymbols(ArgumentVariation& row) {
    if (result_.symbols.empty()) return;
    const ValueKind kind = At(0).kind;
    const bool list = kind == ValueKind::kIntList;
    if (!list && kind != ValueKind::kInt) return;
    const size_t length = list ? At(0).integers.size() : 1;
    std::string text;
    for (size_t i = 0; i < length; ++i) {
      std::vector<int64_t> numbers(versions_.size());
      bool varies = false;
      for (size_t version = 0; version < versions_.size(); ++version) {
        const SignatureArgument& argument = At(version);
        if (argument.kind != kind || (list && argument.integers.size() != length)) return;
        numbers[version] = list ? argument.integers[i] : argument.integer;
        varies = varies || numbers[version] != numbers[0];
      }
      if (i != 0) text += ", ";
      if (!varies) {
        text += std::to_string(numbers[0]);
        continue;
      }
      const Symbols::Expression* found = symbols_.Find(BySteps(numbers));
      if (found == nullptr) return;
      text += SymbolText(found->symbol, found->factor, found->offset);
    }
    row.symbols = list ? "[" + text + "]" : text;
  }

  // Finds the inputs of the last step and their places in the other steps. The last step is safe to
  // use, because only first iterations set up state.
  void FindInputs() {
    struct Place {
      size_t place;
      size_t access;  // index in WorkForm::accesses
    };
    const size_t last = step_count() - 1;
    const std::unordered_set<int64_t> before = BuffersFromBefore(work_.steps[family_.steps[last]]);
    std::unordered_map<int64_t, ByteSet> written;
    std::map<std::tuple<int64_t, int64_t, int64_t>, size_t> known;  // bytes to index in inputs
    std::vector<Place> uses;
    for (size_t place = 0; place < family_.places; ++place) {
      const uint32_t call = family_.Call(last, place);
      const WorkForm& form = work_.form(call);
      work_.VisitAccesses(call, [&](const ByteAccess& access) {
        ByteSet& own = written[access.buffer];
        const bool outside = (!access.write || before.contains(access.buffer)) &&
                             !own.Covers(access.first, access.end);
        if (access.write) own.Add(access.first, access.end);
        const auto [input, created] =
            known.try_emplace({access.buffer, access.first, access.end}, uses.size());
        if (!created) {
          if (input->second < uses.size() && access.write) {
            result_.inputs[input->second].written = true;
          }
          return;
        }
        if (!outside) {
          input->second = SIZE_MAX;  // the step itself made it
          return;
        }
        uses.push_back({place, static_cast<size_t>(access.form - form.accesses.data())});
        StepInput& row = result_.inputs.emplace_back();
        row.place = place;
        row.argument = access.form->argument;
        row.element = access.form->element;
        row.name = (*form.arguments)[row.argument].name;
        row.read = !access.write;
        row.written = access.write;
        row.number = (access.form->layout->flags & meaning::kTensorWrapped) != 0;
      });
    }
    for (size_t i = 0; i < uses.size(); ++i) {
      FollowInput(result_.inputs[i], uses[i].place, uses[i].access);
    }
  }

  // The buffers of a step that some earlier call also used.
  std::unordered_set<int64_t> BuffersFromBefore(const StepRange& step) const {
    const auto first_buffer_of = [&](size_t call) {
      return call < work_.size() ? work_.calls[call].first_buffer : work_.all_buffers.size();
    };
    const size_t first = first_buffer_of(step.first);
    const size_t end = first_buffer_of(step.end);
    const std::unordered_set<int64_t> own(work_.all_buffers.begin() + first,
                                          work_.all_buffers.begin() + end);
    std::unordered_set<int64_t> before;
    for (size_t i = 0; i < first; ++i) {
      if (own.contains(work_.all_buffers[i])) before.insert(work_.all_buffers[i]);
    }
    return before;
  }

  // `access` is an index in WorkForm::accesses.
  void FollowInput(StepInput& input, size_t place, size_t access) {
    std::unordered_set<int64_t> buffers;
    int64_t first_buffer = 0;
    int64_t first_byte = 0;
    int64_t last_buffer = 0;
    for (size_t step = 0; step < step_count(); ++step) {
      const uint32_t call = family_.Call(step, place);
      const WorkForm& form = work_.form(call);
      if (access >= form.accesses.size()) continue;  // here its arguments alias in another way
      const FormAccess& use = form.accesses[access];
      if (use.argument != input.argument || use.element != input.element) continue;
      const int64_t buffer = work_.buffers(call)[use.slot];
      input.bytes = std::max(input.bytes, use.end_byte - use.first_byte);
      if (buffer != last_buffer) buffers.insert(buffer);
      last_buffer = buffer;
      if (first_buffer == 0) {
        first_buffer = buffer;
        first_byte = use.first_byte;
        continue;
      }
      if (buffer == first_buffer && use.first_byte == first_byte) continue;
      if (!input.moves) input.moved_call = call;
      input.moves = true;
      if (input.moves_by_address) continue;
      input.moves_by_address = work_.trace->GetBuffer(first_buffer).address + first_byte !=
                               work_.trace->GetBuffer(buffer).address + use.first_byte;
    }
    input.buffers = std::max<size_t>(buffers.size(), 1);
  }

  const Work& work_;
  const StepFamily& family_;
  Variation result_;
  Symbols symbols_;
  size_t place_ = 0;
  int argument_ = 0;
  std::vector<const std::vector<SignatureArgument>*> versions_;
  std::vector<int32_t> version_of_step_;
  // Hashes of the numbers that host reads gave, with the latest place of each.
  std::unordered_map<uint64_t, size_t> host_reads_;
  std::unordered_map<uint64_t, size_t> carried_reads_;  // from the step before
};

}  // namespace

std::string_view VariationKindName(VariationKind kind) {
  constexpr std::string_view kNames[] = {"varying", "derived", "carried", "layout"};
  return kNames[static_cast<size_t>(kind)];
}

std::string SymbolText(int symbol, int64_t factor, int64_t offset) {
  std::string text = "s" + std::to_string(symbol);
  if (factor != 1) text = std::to_string(factor) + " * " + text;
  if (offset != 0) text += (offset > 0 ? " + " : " - ") + std::to_string(std::abs(offset));
  return text;
}

std::vector<StepFamily> FindFamilies(const Work& work) {
  std::vector<StepFamily> families;
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash;
  std::vector<uint32_t> calls;  // calls of the previous step, then of this one
  std::vector<uint32_t> previous;
  const auto op_of = [&](uint32_t call) { return work.op(call).op_id; };
  for (size_t step = 0; step < work.steps.size(); ++step) {
    std::swap(calls, previous);
    calls.clear();
    uint64_t hash = 0;
    for (int64_t call = work.steps[step].first; call < work.steps[step].end; ++call) {
      if (!IsPlace(work.form(call), work.dialect)) continue;
      calls.push_back(static_cast<uint32_t>(call));
      hash = base::HashWith(hash, static_cast<uint64_t>(op_of(calls.back())));
    }
    std::vector<size_t>& candidates = by_hash[hash];
    const auto found = std::find_if(candidates.begin(), candidates.end(), [&](size_t candidate) {
      const StepFamily& family = families[candidate];
      return std::equal(calls.begin(), calls.end(), family.calls.begin(),
                        family.calls.begin() + static_cast<std::ptrdiff_t>(family.places),
                        [&](uint32_t a, uint32_t b) { return op_of(a) == op_of(b); });
    });
    const size_t same = found == candidates.end() ? families.size() : *found;
    if (same == families.size()) {
      StepFamily& family = families.emplace_back();
      family.places = calls.size();
      if (step > 0) {
        const auto [before, here] =
            std::mismatch(previous.begin(), previous.end(), calls.begin(), calls.end(),
                          [&](uint32_t a, uint32_t b) { return op_of(a) == op_of(b); });
        if (before != previous.end()) family.before = *before;
        if (here != calls.end()) family.here = *here;
      }
      candidates.push_back(same);
    }
    StepFamily& family = families[same];
    family.steps.push_back(step);
    family.calls.insert(family.calls.end(), calls.begin(), calls.end());
  }
  return families;
}

Variation FindVariation(const Work& work, const StepFamily& family) {
  return Comparison(work, family).Compare();
}

std::vector<ArgumentVariation> FindVaryingArguments(const Work& work, const StepFamily& runs) {
  return Comparison(work, runs).Arguments();
}

std::pair<std::string, std::string> ShortValues(const Work& work,
                                                const ArgumentVariation& argument) {
  const auto text = [&](uint32_t call, const std::string& whole) {
    const SignatureArgument& value = (*work.form(call).arguments)[argument.argument];
    return value.HoldsTensors() ? whole : ShortValueText(value);
  };
  return {text(argument.first_call, argument.first_value),
          text(argument.second_call, argument.second_value)};
}

}  // namespace acltape::analyzer::graph
