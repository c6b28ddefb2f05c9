// What is bisected: groups of calls of one step. A group is altered as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/program.h"
#include "analyzer/step_template.h"
#include "replayer/bisect/experiment.h"

namespace acltape::replayer {

struct CallGroup {
  std::string description;  // "call 812 aten::mm"
  ElementSet members;       // indices in the list of capturable places
};

// `capturable` are places in the step class, in order.
//
// Each for itself.
std::vector<CallGroup> GroupsOfCalls(const analyzer::Program& program,
                                     const analyzer::StepTemplate& step_class,
                                     const ElementSet& capturable);

// The captured regions of the plan; without one, runs of capturable places.
std::vector<CallGroup> GroupsOfRegions(const analyzer::Program& program,
                                       const analyzer::StepTemplate& step_class,
                                       const ElementSet& capturable, const analyzer::Plan* plan);

// Calls whose host arguments vary between the steps and are updated in the graph: all of them, or
// those that the plan names.
std::vector<CallGroup> GroupsOfUpdates(const analyzer::Program& program,
                                       const analyzer::StepTemplate& step_class,
                                       const ElementSet& capturable, const analyzer::Plan* plan);

// What is altered one by one.
enum class Elements {
  kCalls,
  kRegions,
  kUpdates,  // all other calls are captured throughout
  kStreams,  // side streams of the plan; all calls are captured throughout (plan_elements.h)
  kBuffers,  // memory that is used again; likewise
};
// "calls", "regions", "updates", "streams", "buffers".
std::string_view ElementsName(Elements elements);
// Whether the elements are liberties of a plan and no calls.
bool AreLiberties(Elements elements);

struct Groups {
  std::vector<CallGroup> groups;
  ElementSet always;  // altered throughout
};
// Throws Error kUsage when the elements are no groups of calls.
Groups GroupsOf(Elements elements, const analyzer::Program& program,
                const analyzer::StepTemplate& step_class, const ElementSet& capturable,
                const analyzer::Plan* plan);

// Places of a class at which no barrier keeps a leaf out of a graph.
ElementSet CapturablePlaces(const analyzer::Program& program,
                            const analyzer::StepTemplate& step_class);

// An experiment over groups of another one's elements. `always` are altered in every experiment,
// also when no group is.
class GroupedExperiment final : public Experiment {
 public:
  GroupedExperiment(std::shared_ptr<Experiment> base, std::vector<CallGroup> groups,
                    ElementSet always = {});

  size_t size() const override { return groups_.size(); }
  std::string Describe(size_t element) const override { return groups_.at(element).description; }
  Outcome Try(const ElementSet& altered) override { return base_->Try(Members(altered)); }
  void Recall(const ElementSet& altered, const Outcome& outcome) override {
    base_->Recall(Members(altered), outcome);
  }
  std::string Command(const ElementSet& altered) const override {
    return base_->Command(Members(altered));
  }

  // All elements of the other experiment that a set of groups alters.
  ElementSet Members(const ElementSet& altered) const;

 private:
  const std::shared_ptr<Experiment> base_;
  const std::vector<CallGroup> groups_;
  const ElementSet always_;
};

}  // namespace acltape::replayer
