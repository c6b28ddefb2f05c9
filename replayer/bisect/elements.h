// The elements of a bisection: groups of calls of one step. A group is altered as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/program/program.h"
#include "analyzer/program/step_template.h"
#include "replayer/script/experiment.h"

namespace acltape::replayer::bisect {

struct CallGroup {
  std::string description;     // "call 812 aten::mm"
  script::ElementSet members;  // indices in the list of capturable places
};

// In the functions below, `capturable` holds places in the step class, in order.
//
// Returns a group for each call.
std::vector<CallGroup> GroupsOfCalls(const analyzer::Program& program,
                                     const analyzer::StepTemplate& step_class,
                                     const script::ElementSet& capturable);

// Returns a group for each captured region of the plan. Without a plan, a group is a run of
// neighbouring capturable places.
std::vector<CallGroup> GroupsOfRegions(const analyzer::Program& program,
                                       const analyzer::StepTemplate& step_class,
                                       const script::ElementSet& capturable,
                                       const analyzer::plan::Plan* plan);

// Returns a group for each call whose host arguments vary between the steps and are updated in the
// graph. With a plan, only the calls that it names for an update.
std::vector<CallGroup> GroupsOfUpdates(const analyzer::Program& program,
                                       const analyzer::StepTemplate& step_class,
                                       const script::ElementSet& capturable,
                                       const analyzer::plan::Plan* plan);

// The kind of element that is altered one by one.
enum class Elements {
  kCalls,
  kRegions,
  kUpdates,  // all other calls are always captured
  kStreams,  // side streams of the plan; all calls are captured (plan_elements.h)
  kBuffers,  // memory that is used again; all calls are captured
};
// Returns "calls", "regions", "updates", "streams" or "buffers".
std::string_view ElementsName(Elements elements);
// True if the elements are liberties of a plan (plan_elements.h) and not calls.
bool AreLiberties(Elements elements);

struct Groups {
  std::vector<CallGroup> groups;
  script::ElementSet always;  // altered in every experiment
};
// Throws Error kUsage if the elements are liberties.
Groups GroupsOf(Elements elements, const analyzer::Program& program,
                const analyzer::StepTemplate& step_class, const script::ElementSet& capturable,
                const analyzer::plan::Plan* plan);

// Returns the places of the calls that a graph can hold.
script::ElementSet CapturablePlaces(const analyzer::Program& program,
                                    const analyzer::StepTemplate& step_class);

// An experiment whose elements are groups of another experiment's elements. The elements in
// `always` are altered in every experiment, also if no group is.
class GroupedExperiment final : public script::Experiment {
 public:
  GroupedExperiment(std::shared_ptr<script::Experiment> base, std::vector<CallGroup> groups,
                    script::ElementSet always = {});

  size_t size() const override { return groups_.size(); }
  std::string Describe(size_t element) const override { return groups_.at(element).description; }
  script::Outcome Try(const script::ElementSet& altered) override {
    return base_->Try(Members(altered));
  }
  void Recall(const script::ElementSet& altered, const script::Outcome& outcome) override {
    base_->Recall(Members(altered), outcome);
  }
  std::string Command(const script::ElementSet& altered) const override {
    return base_->Command(Members(altered));
  }

  // Returns the elements of the other experiment that a set of groups alters, with those in
  // `always`.
  script::ElementSet Members(const script::ElementSet& altered) const;

 private:
  const std::shared_ptr<script::Experiment> base_;
  const std::vector<CallGroup> groups_;
  const script::ElementSet always_;
};

}  // namespace acltape::replayer::bisect
