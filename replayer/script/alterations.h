// The parts of a step that an experiment alters one at a time: the elements, and the options of a
// mixed step that belong to a set of elements.
#pragma once

#include <string>

#include "meaning/command_change.h"
#include "replayer/script/experiment.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer::script {

class Alterations {
 public:
  virtual ~Alterations() = default;
  virtual size_t size() const = 0;
  virtual std::string Describe(size_t element) const = 0;
  // Sets the options so that exactly these elements are altered. `options` describe the suspected
  // step.
  virtual void Apply(const ElementSet& altered, MixedStepOptions& options) const = 0;
  // Returns the option of `acltape experiment` for these elements, such as --captured with 812,815.
  virtual meaning::OptionChange Change(const ElementSet& altered) const = 0;
  // True if the step with nothing altered is the eager step, with which everything is compared.
  virtual bool NothingIsEager() const { return false; }
};

// The elements are capturable calls. Altered calls run in graphs, the others eagerly.
class CapturedCalls final : public Alterations {
 public:
  // The mixed step must outlive it.
  explicit CapturedCalls(const MixedStep& step) : step_(step) {}

  size_t size() const override { return step_.capturable().size(); }
  std::string Describe(size_t element) const override;
  void Apply(const ElementSet& altered, MixedStepOptions& options) const override;
  meaning::OptionChange Change(const ElementSet& altered) const override;
  bool NothingIsEager() const override { return true; }

 private:
  const MixedStep& step_;
};

}  // namespace acltape::replayer::script
