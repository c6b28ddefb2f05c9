// Tasks that decide which other tasks run: conditional tasks of captures, jumps and activations of
// built models.
#pragma once

#include "runtime/device/replay.h"

namespace acltape::device {

class Control {
 public:
  virtual ~Control() = default;

  // Acts on the pass that has reached the task in `lane`. The lane goes on after the task, unless
  // this moved it.
  virtual aclError Act(GraphRun& run, uint32_t lane) = 0;

  // A conditional task answers with the sub-graph to run now, or null for none. `rounds` says how
  // many have run.
  virtual Model* Choose(uint32_t /*rounds*/) { return nullptr; }
  virtual bool conditional() const { return false; }
  // Sub-graphs that live and die with the task.
  virtual std::vector<Model*> SubGraphs() const { return {}; }
};

}  // namespace acltape::device
