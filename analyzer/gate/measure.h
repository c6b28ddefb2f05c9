// The measures of a gate: counts, shares and bytes of a program that stay equal as long as the
// program stays what it is.
//
// None of them depends on times, addresses, the order in which threads took turns, or the workers
// of a data loader. Most belong to a step, so that a program that ran for eight steps and the same
// one after ten steps have equal measures. They are those of the first step of the steady steps:
// the largest group of steps with equal operators in equal order.
//
//   const storage::Reader trace("t.db", MainProcessOf("t.db", {}));
//   const Measured measured = Measure(trace);
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/reader.h"

namespace acltape::analyzer::gate {

// Says which way a measure becomes better.
enum class Better : uint8_t { kLess, kMore, kNeither };

struct MeasureKind {
  std::string_view name;  // "step.host_reads": the part before the dot is what it belongs to
  std::string_view unit;  // "", "bytes", "%"
  Better better = Better::kLess;
  std::string_view meaning;
};

// All measures, by name.
std::span<const MeasureKind> MeasureKinds();
// Null if no measure has this name.
const MeasureKind* FindMeasure(std::string_view name);

// Findings of lint with one cause: rule, operator and place in the source.
struct Cause {
  std::string key;  // "LINT-22 | aten::mul.Tensor | train.py (main)"
  int64_t count = 0;
  std::string rule;
  std::string message;  // the first finding's
  std::string edit;
  std::string place;  // "train.py:41 (main)"; empty: not known
  std::string file;   // as the program named it
  int64_t line = 0;
  storage::Severity severity = storage::Severity::kNotice;
};

struct Measured {
  // A measure that the trace cannot give is missing.
  std::map<std::string, double> values;
  std::map<std::string, Cause> causes;  // by key
  // "step", or "program" if the program does not repeat and the measures of a step are those of
  // the whole program.
  std::string basis;
  int64_t steps = 0;         // steps of the trace
  int64_t steady_steps = 0;  // steps of the group that was measured
  std::string process;       // "1 (python3)"; empty: the trace has only one
  std::string left_out;      // a clause on measures that are missing; empty: none are
};

// The part of a trace that is measured if nothing was chosen: of several processes the one with
// the device's operators, or without any the one that began first, which started the others. The
// part stays as it is if the trace holds several ranks.
storage::TracePart MainProcessOf(const std::string& path, storage::TracePart part);

// Throws Error kTrace if the trace has no calls, kUsage if it holds the work of several processes.
Measured Measure(const storage::Reader& trace);

}  // namespace acltape::analyzer::gate
