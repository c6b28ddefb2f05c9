// Finds the differences between the iterations of a program, at the same place of the step: host
// arguments that a capture would bake, inputs that lie elsewhere, and dimensions that change.
//
// Steps whose places hold equal operators in equal order form a family. The places of a step are
// its calls that do something. In an aten program these are kernels, sources and host reads. In an
// ACL program these are device work, events, graphs and host waits.
//
//   const Work work = LoadWork(trace);             // with steps, or AssignSteps(work, ...)
//   for (const StepFamily& family : FindFamilies(work)) {
//     const Variation variation = FindVariation(work, family);
//   }
//
// The time is near-linear in the number of calls, because arguments are compared once per form and
// not per call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::graph {

struct StepFamily {
  std::vector<size_t> steps;    // indices in Work::steps, in order
  size_t places = 0;            // number of places of each step
  std::vector<uint32_t> calls;  // indices in Work::calls, step by step: steps.size() * places
  // The point at which the first step of the family differs from the step before it: the first two
  // calls at one place with different operators. An index is -1 if its step has no call there. Both
  // are -1 in the family of the first step.
  int64_t before = -1;
  int64_t here = -1;

  uint32_t Call(size_t step, size_t place) const { return calls[step * places + place]; }
};

// Finds the families, in order of their first steps. The result is empty if the work has no steps.
std::vector<StepFamily> FindFamilies(const Work& work);

enum class VariationKind : uint8_t {
  kVarying,  // its value differs between steps
  // Its value differs, and in every step it equals the result of an earlier host read of that step.
  kDerived,
  kCarried,  // as kDerived, but the host read is in the step before
  // The tensor's element type or number of dimensions, or the number of tensors, differs.
  kLayout,
};
std::string_view VariationKindName(VariationKind kind);  // "varying", "derived" ...

// A host argument, or for kLayout a tensor argument, that differs between steps. Outputs do not
// count, and neither do arguments that only identify objects (executors, workspaces, streams,
// events).
struct ArgumentVariation {
  size_t place = 0;
  int argument = 0;  // index in WorkForm::arguments
  std::string name;
  VariationKind kind = VariationKind::kVarying;
  size_t values = 0;         // number of different values
  std::string first_value;   // in the first step of the family
  std::string second_value;  // the first value that differs from it
  uint32_t first_call = 0;   // indices in Work::calls of the calls with these two values
  uint32_t second_call = 0;
  int64_t read_place = -1;  // place of the host read for kDerived and kCarried
  // The value as an expression of shape symbols, such as "[1, s0 + 1]". Empty if there is none.
  std::string symbols;
};

// Bytes that exist before the step: the step reads them before it writes them, or it writes them
// without having made them. They are named by the first place that uses them.
struct StepInput {
  size_t place = 0;
  int argument = 0;
  int element = 0;  // index in a tensor list
  std::string name;
  int64_t bytes = 0;     // the most over the steps
  bool read = false;     // the step reads them before it writes them
  bool written = false;  // the step writes some of them
  bool number = false;   // a number that the program used as a tensor: x * 0.5
  // True if the bytes lie in another buffer or at another byte in some step. A captured graph needs
  // them copied to a fixed place.
  bool moves = false;
  // True if the address differs in some step. A reused address is another buffer at an equal
  // address. Such an input moves by identity, but a graph that was captured with it would read the
  // right bytes.
  bool moves_by_address = false;
  size_t buffers = 1;       // number of different buffers over the steps
  uint32_t moved_call = 0;  // the first call where a moving input lies elsewhere
};

// A dimension that differs between steps. Two dimensions share a symbol if their sizes over the
// steps are equal, or equal except for a whole factor and an offset.
struct DimensionVariation {
  size_t place = 0;
  int argument = 0;
  int element = 0;
  std::string name;
  int dimension = 0;
  int symbol = 0;      // index in Variation::symbols
  int64_t factor = 1;  // size = factor * symbol + offset
  int64_t offset = 0;
};

struct ShapeSymbol {
  std::vector<int64_t> sizes;  // by step of the family
  size_t values = 0;           // number of different sizes
  size_t dimensions = 0;       // number of dimensions that it expresses
};

struct Variation {
  // Host arguments of all places. Those without a row in `arguments` are constant.
  size_t host_arguments = 0;
  std::vector<ArgumentVariation> arguments;  // in order of places
  std::vector<StepInput> inputs;             // in order of places
  std::vector<DimensionVariation> dimensions;
  std::vector<ShapeSymbol> symbols;
};

// Compares all steps of a family. If the family has one step, only the inputs are known. Host reads
// of ACL programs are copies, whose values are not arguments. Nothing is therefore derived there.
Variation FindVariation(const Work& work, const StepFamily& family);

// Compares only the arguments, of any runs of the same calls. `runs.calls` has the calls run by
// run, and `runs.steps` has a number for each run.
std::vector<ArgumentVariation> FindVaryingArguments(const Work& work, const StepFamily& runs);

// The two values of an argument for people: of a long list the first values and how many it has.
std::pair<std::string, std::string> ShortValues(const Work& work,
                                                const ArgumentVariation& argument);

// "s0", "s0 + 1", "4 * s0 - 2".
std::string SymbolText(int symbol, int64_t factor, int64_t offset);

}  // namespace acltape::analyzer::graph
