// What differs between the iterations of a program, at the same place of the step: host arguments
// that a capture would bake, inputs that lie elsewhere, dimensions that change.
//
// Steps whose places hold equal operators in equal order form a family. The places of a step are
// the calls that do something: of an aten program its kernels, sources and host reads, of an ACL
// program device work, events, graphs and host waits.
//
//   const Work work = LoadWork(trace);             // with steps, or AssignSteps(work, ...)
//   for (const StepFamily& family : FindFamilies(work)) {
//     const Variation variation = FindVariation(work, family);
//   }
//
// Near-linear in the number of calls: arguments are compared once per form, not per call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/work/work.h"

namespace acltape::analyzer {

struct StepFamily {
  std::vector<size_t> steps;    // indices in Work::steps, in order
  size_t places = 0;            // of each step
  std::vector<uint32_t> calls;  // indices in Work::calls, step by step: steps.size() * places
  // Where its first step parts from the step before it: the first two calls at one place with
  // different operators; -1: that step has no call there. Both -1 in the family of the first step.
  int64_t before = -1;
  int64_t here = -1;

  uint32_t Call(size_t step, size_t place) const { return calls[step * places + place]; }
};

// In order of their first steps. None when the work has no steps.
std::vector<StepFamily> FindFamilies(const Work& work);

enum class VariationKind : uint8_t {
  kVarying,  // its value differs between steps
  kDerived,  // it differs and equals, in every step, what a host read before it in the step gave
  kCarried,  // the same, of a host read in the step before
  kLayout,   // a tensor argument whose element type, number of dimensions or tensors differ
};
std::string_view VariationKindName(VariationKind kind);  // "varying", "derived" ...

// A host argument, or (kLayout) a tensor argument, that is not the same in all steps. Outputs and
// what only identifies objects (executors, workspaces, streams, events) do not count.
struct ArgumentVariation {
  size_t place = 0;
  int argument = 0;  // index in WorkForm::arguments
  std::string name;
  VariationKind kind = VariationKind::kVarying;
  size_t values = 0;         // different ones
  std::string first_value;   // of the family's first step
  std::string second_value;  // the first that differs from it
  uint32_t first_call = 0;   // indices in Work::calls of the calls with these two values
  uint32_t second_call = 0;
  int64_t read_place = -1;  // kDerived, kCarried: the host read's place
  std::string symbols;      // as an expression of shape symbols, "[1, s0 + 1]"; empty: it is none
};

// Bytes that a step reads before it wrote them, or writes without having made them: what exists
// before the step. Named by the first place that uses them.
struct StepInput {
  size_t place = 0;
  int argument = 0;
  int element = 0;  // of a tensor list
  std::string name;
  int64_t bytes = 0;     // the most over the steps
  bool read = false;     // the step reads them before it wrote them
  bool written = false;  // the step writes some of them
  bool number = false;   // a number that the program passed as a tensor: x * 0.5
  // They lie in another buffer or at another byte in some step: a captured graph needs them copied
  // to a fixed place.
  bool moves = false;
  // Its address differs in some step. A reused address is another buffer at an equal address: it
  // moves by identity, but a graph that was captured with it would read the right bytes.
  bool moves_by_address = false;
  size_t buffers = 1;       // different ones over the steps
  uint32_t moved_call = 0;  // moves: the first call where it lies elsewhere
};

// A dimension that differs between steps. Dimensions whose sizes over the steps are equal, or equal
// but for a whole factor and an offset, share a symbol.
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
  size_t values = 0;           // different ones
  size_t dimensions = 0;       // that are expressed by it
};

struct Variation {
  size_t host_arguments = 0;  // of all places; those without a row in `arguments` are constant
  std::vector<ArgumentVariation> arguments;  // in order of places
  std::vector<StepInput> inputs;             // in order of places
  std::vector<DimensionVariation> dimensions;
  std::vector<ShapeSymbol> symbols;
};

// Compares all steps of a family. Of a family of one step only the inputs are known. Host reads of
// ACL programs are copies, whose values are no arguments: nothing is derived there.
Variation FindVariation(const Work& work, const StepFamily& family);

// The arguments alone, of any runs of the same calls: `runs.calls` has them run by run, and
// `runs.steps` a number for each run.
std::vector<ArgumentVariation> FindVaryingArguments(const Work& work, const StepFamily& runs);

// "s0", "s0 + 1", "4 * s0 - 2".
std::string SymbolText(int symbol, int64_t factor, int64_t offset);

}  // namespace acltape::analyzer
