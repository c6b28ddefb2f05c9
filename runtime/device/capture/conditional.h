// Conditional tasks and their sub-graphs (COND-01 to COND-15).
#pragma once

#include "runtime/device/control.h"

namespace acltape::device {

class Conditional : public Control {
 public:
  Conditional(aclmdlRICondTaskType type, const uint64_t* cell, std::vector<Model*> sub_graphs)
      : type_(type), cell_(cell), sub_graphs_(std::move(sub_graphs)) {}

  aclError Act(GraphRun& run, uint32_t lane) override;
  Model* Choose(uint32_t rounds) override;
  bool conditional() const override { return true; }
  std::vector<Model*> SubGraphs() const override { return sub_graphs_; }

 private:
  const aclmdlRICondTaskType type_;
  const uint64_t* cell_;
  const std::vector<Model*> sub_graphs_;
};

aclError CreateCondition(Model& model, uint64_t default_value, bool assign_default,
                         Model::Condition** condition);

// COND-06, COND-07: stores the task and makes its sub-graphs, as many as `sub_graphs` has places.
aclError AddConditionalTask(Stream& stream, Model::Condition& condition, aclmdlRICondTaskType type,
                            std::vector<Model*>* sub_graphs);

}  // namespace acltape::device
