// How the steps of an inference engine used the graphs that it captured, by size of batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/lint/recaptures.h"

namespace acltape::analyzer::lint {

// The steps of one kind that ran the model on as many rows in one way.
struct EngineSteps {
  std::string kind;   // "prefill", "decode" ...
  int64_t rows = -1;  // the model's rows, with padding; -1: not known
  std::string mode;   // the engine's mode of graphs for these steps; empty: not known
  int64_t steps = 0;
  int64_t eager = 0;       // steps among them that executed no graph
  int64_t executions = 0;  // executions of graphs in these steps
  // Tokens of all these steps, and rows that no token filled; -1: not known.
  int64_t tokens = 0;
  int64_t padding = 0;
  int64_t first_step = -1;  // as numbered in the trace; -1: it is no step of the trace
};

// A size of batch for which the engine captured graphs.
struct EngineBatch {
  int64_t rows = -1;
  std::string mode;
  int64_t graphs = 0;
  int64_t steps = 0;  // steps that executed one of its graphs
  int64_t executions = 0;
  int64_t executions_outside = 0;  // executions in no step, such as those of a warm-up
  int64_t tokens = 0;
  int64_t padding = 0;
};

struct EngineUse {
  std::vector<EngineSteps> steps;    // in order of their first step
  std::vector<EngineBatch> batches;  // in order of rows, then of the mode's name
};

// Nothing for a program whose trace has no steps of an engine.
EngineUse FindEngineUse(const Work& work, const CaptureList& captures);

}  // namespace acltape::analyzer::lint
