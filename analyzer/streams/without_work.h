// The nodes of a Dag that put no task on a stream, such as values that are uploaded before the
// region. They take no time, so a planner of streams would put them wherever it likes, and could
// call a side stream that holds nothing else a second stream. They are taken out of the Dag before
// it is planned, and then each joins the stream of the first node that needs it.
#pragma once

#include <vector>

#include "analyzer/streams/dag.h"

namespace acltape::analyzer::streams {

class WithoutWork {
 public:
  explicit WithoutWork(const Dag& dag);

  // True if each node has tasks, or if none has.
  bool none() const { return number_.empty(); }
  // The nodes with tasks, in the same order. Edges lead through the others.
  const Dag& rest() const { return rest_; }
  // Adds the other nodes to an assignment of the rest. The order of the rest stays. Waits are
  // placed again, so that every edge of the whole Dag holds.
  StreamAssignment Extend(const StreamAssignment& rest) const;

 private:
  const Dag& dag_;
  Dag rest_;
  std::vector<int32_t> number_;  // in the rest, by node; -1: it has no tasks
};

}  // namespace acltape::analyzer::streams
