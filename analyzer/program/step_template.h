// Compares the steps of a program call by call. It finds the steps that one captured graph can
// serve, and what must change between its executions.
//
// Two steps are of one class if their active leaves (kernels, sources, host reads) pair up with
// equal operators, scalars and layouts, and if their buffers correspond. On request scalars of
// kernels may vary inside a class. A captured graph then needs its arguments updated. Buffers are
//   internal   first written inside the step (at the ACL level also used in no other step). They
//              pair with an internal buffer at equal offsets.
//   external   existed before or are read first (parameters, state, inputs). Uses of bytes that
//              overlap form one operand. In another step all of them must be displaced alike.
// An operand at the same place in every step of the class is stable: the graph uses it there. An
// operand that moves gets a fixed place, which is filled before each execution. It is copied back
// afterwards if the step writes the operand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/program/program.h"

namespace acltape::analyzer {

// The first difference that prevents one graph from serving two steps.
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
  size_t place = 0;  // place in StepTemplate::leaves
  int argument = 0;  // index in Leaf::arguments
  auto operator<=>(const VaryingArgument&) const = default;
};

// The place of an operand of the template in another step.
struct OperandPlace {
  int64_t buffer_id = 0;
  int64_t first_byte = 0;
};

// The correspondence of a step with the template.
struct StepMatch {
  int64_t step_index = 0;                         // in the steps of Program::work
  std::vector<int64_t> leaves;                    // active leaves, paired with StepTemplate::leaves
  std::vector<OperandPlace> operands;             // paired with StepTemplate::operands
  std::unordered_map<int64_t, int64_t> internal;  // template buffer to this step's buffer
};

// The step that stands for its class: the one that is planned and captured.
struct StepTemplate {
  int64_t step_index = 0;          // in the steps of Program::work
  std::vector<int64_t> leaves;     // active leaves in order
  std::vector<Operand> operands;   // by buffer, then by first byte
  std::vector<int64_t> internal;   // internal buffers in order of first use
  std::vector<StepMatch> matches;  // the steps of the class in order, the template's own first
  std::vector<VaryingArgument> varying;  // in order; empty unless HostArguments::kVary
  // The operand that holds these bytes of an external buffer; -1 when there is none.
  int FindOperand(int64_t buffer_id, int64_t first_byte) const;
};

struct StepClasses {
  std::vector<StepTemplate> classes;  // in order of their first steps
  // The reason why a step is not in the class of the previous step, by step index. The first step
  // has none.
  std::map<int64_t, StepDifference> differences;
  // The class with most steps. Among equals it is the first. Precondition: there are steps.
  const StepTemplate& Largest() const;
  // The class of a step by its index; null when there is no such step.
  const StepTemplate* OfStep(int64_t step) const;
};

// Says if steps of one class may differ in host arguments of kernels.
enum class HostArguments { kEqual, kVary };

StepClasses ClassifySteps(const Program& program,
                          HostArguments host_arguments = HostArguments::kEqual);

// The active leaves of a step in order.
std::vector<int64_t> ActiveLeaves(const Program& program, const StepRange& range);

// Describes a difference: "call 812 aten::cat: argument tensors[0] has shape [4, 1, 32] in step 1
// and [4, 2, 32] in step 2 (call 1014)".
std::string DescribeDifference(const Program& program, const StepDifference& difference);

}  // namespace acltape::analyzer
