// Compares the steps of a program call by call: which of them one captured graph can serve, and
// what must change between its executions.
//
// Two steps are of one class when their active leaves (kernels, sources, host reads) pair up with
// equal operators, scalars and layouts, and their buffers correspond. On request scalars of kernels
// may vary inside a class: a captured graph then needs its arguments updated. Buffers are
//   internal   first written inside the step; pairs with an internal buffer at equal offsets
//   external   existed before or is read first (parameters, state, inputs). Uses of overlapping
//   bytes
//              form one operand; in another step all of them must be displaced alike.
// An operand at the same place in every step of the class is stable: the graph uses it in place.
// One that moves is given a fixed place, which is filled before each execution (and copied back
// after it when the step writes the operand).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/program.h"

namespace acltape::analyzer {

// The first thing that keeps one graph from serving two steps.
struct StepDifference {
  int64_t leaf_a = -1;  // -1: the step has ended
  int64_t leaf_b = -1;
  std::string argument;  // empty: the operators differ
  std::string aspect;    // "operator", "shape", "value", "element type", "strides", "place" ...
  std::string a;
  std::string b;
};

// Bytes [first_byte, end_byte) of an external buffer as the template step uses them.
struct Operand {
  int64_t buffer_id = 0;
  int64_t first_byte = 0;
  int64_t end_byte = 0;
  bool written = false;
  bool moving = false;
  int64_t bytes() const { return end_byte - first_byte; }
};

// A host argument (a number or a list of numbers) of a kernel whose value differs between the steps
// of a class.
struct VaryingArgument {
  size_t at = 0;     // place in StepTemplate::leaves
  int argument = 0;  // index in Leaf::arguments
  auto operator<=>(const VaryingArgument&) const = default;
};

// Where an operand of the template lies in another step.
struct OperandPlace {
  int64_t buffer_id = 0;
  int64_t first_byte = 0;
};

// How a step corresponds to the template.
struct StepMatch {
  int64_t step = 0;                               // index in Program::steps
  std::vector<int64_t> leaves;                    // active leaves, paired with StepTemplate::leaves
  std::vector<OperandPlace> operands;             // paired with StepTemplate::operands
  std::unordered_map<int64_t, int64_t> internal;  // template buffer to this step's buffer
};

struct StepTemplate {
  int64_t step = 0;                // index in Program::steps
  std::vector<int64_t> leaves;     // active leaves in order
  std::vector<Operand> operands;   // by buffer, then by first byte
  std::vector<int64_t> internal;   // internal buffers in order of first use
  std::vector<StepMatch> matches;  // the steps of the class in order, the template's own first
  std::vector<VaryingArgument> varying;  // in order; empty unless asked for
  // The operand that holds these bytes of an external buffer; -1 when there is none.
  int FindOperand(int64_t buffer_id, int64_t first_byte) const;
};

struct StepClasses {
  std::vector<StepTemplate> classes;  // in order of their first steps
  // By step index: why it is not of the class of the step before it (none for the first step).
  std::map<int64_t, StepDifference> differences;
  // The class with most steps; among equals the first. Precondition: there are steps.
  const StepTemplate& Largest() const;
  // The class of a step by its index; null when there is no such step.
  const StepTemplate* OfStep(int64_t step) const;
};

// Whether steps of one class may differ in host arguments of kernels.
enum class HostArguments { kEqual, kVary };

StepClasses ClassifySteps(const Program& program,
                          HostArguments host_arguments = HostArguments::kEqual);

// Active leaves of a step in order.
std::vector<int64_t> ActiveLeaves(const Program& program, const StepRange& range);

// "call 812 aten::cat: argument tensors[0] has shape [4, 1, 32] in step 1 and [4, 2, 32] in step 2
// (call 1014)"
std::string DescribeDifference(const Program& program, const StepDifference& difference);

}  // namespace acltape::analyzer
