// Finds what a graph reads though no leaf names it: an operator that an extension compiled is one
// leaf, and its calls of the device may read tensors that are no arguments of it, such as a mask or
// a cache. So may an operator written in Python in a recording without composite calls; in others
// the operators that it calls are the leaves, and name what they read.
#pragma once

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

// Fills in Footprint::hidden_reads of the graphs that are executed. Operators of PyTorch and of its
// adapter have none: what their calls read besides is the state of random generators, whose memory
// is no tensor that a trace knows. A read counts if a tensor that PyTorch had then holds all its
// bytes, and the graph had not written them. Where updates replace the launch, one of them has to
// read the same bytes. Graphs of a program without leaves have none.
void FindHiddenReads(OwnGraphs& graphs);

}  // namespace acltape::analyzer::executions
