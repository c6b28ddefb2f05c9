// What of a step an experiment alters, one element at a time: what the elements are, and how a set
// of them becomes options of a mixed step.
#pragma once

#include <string>

#include "replayer/bisect/experiment.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer {

class Alterations {
 public:
  virtual ~Alterations() = default;
  virtual size_t size() const = 0;
  virtual std::string Describe(size_t element) const = 0;
  // Alters these elements and no others; `options` are those of the suspected way.
  virtual void Apply(const ElementSet& altered, MixedStepOptions& options) const = 0;
  // The same as arguments of `acltape experiment`: "--captured 812,815".
  virtual std::string Arguments(const ElementSet& altered) const = 0;
  // Whether the step with nothing altered is the eager one, which everything is compared with.
  virtual bool NothingIsEager() const { return false; }
};

// Capturable calls: altered ones run in graphs, others eagerly.
class CapturedCalls final : public Alterations {
 public:
  // The mixed step must outlive it.
  explicit CapturedCalls(const MixedStep& step) : step_(step) {}

  size_t size() const override { return step_.capturable().size(); }
  std::string Describe(size_t element) const override;
  void Apply(const ElementSet& altered, MixedStepOptions& options) const override;
  std::string Arguments(const ElementSet& altered) const override;
  bool NothingIsEager() const override { return true; }

 private:
  const MixedStep& step_;
};

}  // namespace acltape::replayer
