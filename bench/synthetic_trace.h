// Writes traces of any length for programs that measure the analyzer. One like that of a training
// loop: a multi-layer perceptron with views, in-place updates, saved activations, inputs at new
// places in every step, a learning rate that changes, a last batch of each epoch that is smaller,
// and one host read per step. Others of ACL programs: one that serves requests, and one that
// executes graphs.
#pragma once

#include <cstdint>
#include <string>

namespace acltape::bench {

struct SyntheticTraining {
  int64_t calls = 100000;  // calls of the whole trace, up to the end of the last step
  uint64_t seed = 1;
  int64_t layers = 24;  // a step has some 17 calls per layer
};

// Replaces the file. Returns the number of calls.
int64_t WriteSyntheticTraining(const std::string& path, const SyntheticTraining& training);

// Writes the trace of an ACL program that serves requests, with `calls` calls in all. It has two
// streams with events between them, temporaries in one block of memory, a workspace per stream,
// copies and a host wait per step. Replaces the file and returns the number of calls, too.
int64_t WriteSyntheticServing(const std::string& path, int64_t calls, uint64_t seed);

struct SyntheticGraphs {
  int64_t graphs = 1000;
  int64_t calls = 500;       // launches in each graph
  int64_t executions = 20;   // the graphs in turn, so often
  bool both_levels = false;  // leaves of PyTorch make the launches
};

// Writes the trace of a program that captures graphs and then executes them. The graphs share
// weights, and each has tensors of its own. Replaces the file and returns the number of calls.
int64_t WriteSyntheticGraphs(const std::string& path, const SyntheticGraphs& graphs);

}  // namespace acltape::bench
