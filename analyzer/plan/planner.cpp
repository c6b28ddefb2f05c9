#include "analyzer/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analyzer/calls/byte_set.h"
#include "analyzer/lowering/lowering.h"
#include "analyzer/plan/plan_dag.h"
#include "analyzer/plan/validate.h"
#include "analyzer/prediction/resource.h"
#include "analyzer/program/regions.h"
#include "analyzer/steps/steps.h"
#include "meaning/options.h"
#include "storage/database.h"
#include "storage/error.h"

namespace acltape::analyzer::plan {
namespace {

// Says what to change so that a region could be captured, by the beginning of its reason.
struct Edit {
  std::string_view reason;
  std::string_view edit;
};
constexpr Edit kEdits[] = {
    {"host read", "read the value after the step, or decide on the device (torch.where)"},
    {"data-dependent shape", "use a form of fixed size: a mask, padding, or a given output size"},
    {"mask", "use torch.where or masked_fill in place of indexing by a mask"},
    {"copy between devices", "copy before the step, from pinned memory"},
    {"no device operator", "write the call with operators that the device has"},
    {"its argument", "pass the value as a tensor"},
    {"argument updates cost", "pass the value as a tensor"},
    {"input copies cost", "keep the input at a fixed place and fill it there"},
    {"no other of the", "pad its inputs to a few sizes; gears chooses them"},
    {"too short", "lower @minimum-region, or remove a barrier beside it"_cli},
    {"no graph or stream", "raise @captures or @budget-streams"_cli},
    {"no memory is left", "raise @budget-memory"_cli},
    {"launching and capturing", "raise @expected-replays, if the graph serves that many steps"_cli},
};

std::string_view EditFor(std::string_view reason) {
  for (const Edit& row : kEdits) {
    if (reason.starts_with(row.reason)) return row.edit;
  }
  return "";
}

// Steps of the class whose recorded times are looked at.
constexpr size_t kMostTimedSteps = 64;

// Matrix products this many places around a softmax belong to its attention.
constexpr size_t kAttentionReach = 12;

// Marks the attention calls that a serving framework would split off: operators with that name, and
// all calls between the matrix products around a softmax.
std::vector<bool> MarkAttention(const Work& work, const std::vector<size_t>& calls) {
  std::vector<bool> marks(calls.size(), false);
  const auto is_product = [&](size_t place) {
    const std::string& name = work.op(calls[place]).name;
    return name == "aten::bmm" || name == "aten::baddbmm" || name == "aten::matmul";
  };
  for (size_t place = 0; place < calls.size(); ++place) {
    const std::string& name = work.op(calls[place]).name;
    if (name.find("attention") != std::string::npos) marks[place] = true;
    if (name != "aten::_softmax" && name != "aten::softmax") continue;
    size_t first = place;
    size_t last = place;
    while (first > 0 && place - first < kAttentionReach && !is_product(first)) --first;
    while (last + 1 < calls.size() && last - place < kAttentionReach && !is_product(last)) ++last;
    if (!is_product(first) || !is_product(last)) continue;
    std::fill(marks.begin() + static_cast<std::ptrdiff_t>(first),
              marks.begin() + static_cast<std::ptrdiff_t>(last + 1), true);
  }
  return marks;
}

class Planner {
 public:
  Planner(const Work& work, const PlanOptions& options) : work_(work), options_(options) {}

  PlannedStep Run() {
    ChooseStep();
    FindTasks();
    BarUselessGraphs();
    FindInputs();
    const CutProblem problem = MakeProblem();
    Cuts cuts = CutBest(problem);
    FillRegions(cuts);
    if (NumbersTaken() > problem.most_stream_numbers) {
      // Waits and forks filled a queue that the calls alone did not fill.
      streams_ = 1;
      FillRegions(cuts);
    }
    KeepToMemory(cuts);
    ComparePolicies(problem, cuts);
    FillCopies();
    FillUpdates();
    Predict();
    planned_.guards = SimulateGuards(work_, classes_);
    ValidatePlan(planned_.plan, work_);
    return std::move(planned_);
  }

 private:
  void ChooseStep() {
    if (work_.steps.empty()) {
      throw Error(ErrorKind::kTrace, work_.trace->path() + " has no steps: " + WhyNoSteps(work_) +
                                         "; mark them in the program and record with "
                                         "@steps-from NAME"_cli);
    }
    soc_ = streams::FindSoc(options_.soc);
    if (soc_ == nullptr) {
      throw Error(ErrorKind::kUsage,
                  "the limits of '" + options_.soc +
                      "' are not known; name a SoC such as Ascend910B1 or Ascend310P3");
    }
    streams_ = options_.streams;
    const std::vector<graph::StepFamily> families = graph::FindFamilies(work_);
    classes_ = FindShapeClasses(work_, families);
    const ShapeClass& chosen = LargestClass(classes_);
    const graph::StepFamily& members = chosen.members;
    calls_.assign(members.calls.begin(),
                  members.calls.begin() + static_cast<std::ptrdiff_t>(members.places));
    if (calls_.empty()) {
      throw Error(ErrorKind::kTrace, work_.trace->path() + " has steps without any work in them");
    }
    variation_ = graph::FindVariation(work_, members);
    const graph::Variation shapes = graph::FindVariation(work_, families[chosen.family]);
    for (const graph::DimensionVariation& row : shapes.dimensions) ++shapes_of_place_[row.place];
    costs_ = options_.costs != nullptr ? *options_.costs : CostsOfSteps(members);

    const StepRange& step = work_.steps[members.steps.front()];
    Plan& plan = planned_.plan;
    plan.trace_calls = work_.trace->CallCount(/*leaves_only=*/false);
    plan.step = step.step;
    plan.first_call = step.first_call;
    plan.last_call = step.last_call;
    for (const storage::Step& stored : StoredSteps(work_)) {
      if (stored.step != step.step) continue;
      plan.first_call = stored.first_call;  // an enclosing call may begin before its first leaf
      plan.last_call = stored.last_call;
    }
    plan.capture_mode = options_.capture_mode;
    plan.soc = options_.soc;
    planned_.measured = costs_.measured();
    planned_.signatures = static_cast<int64_t>(costs_.by_signature.size());
    planned_.timed_signatures = costs_.timed_signatures;
    planned_.launching_signatures = costs_.launching_signatures;
    planned_.steps = work_.steps.size();
    planned_.families = families.size();
    planned_.classes = classes_.size();
    planned_.class_steps = members.steps.size();
    planned_.varying_arguments = variation_.arguments.size();
    planned_.calls = calls_.size();
    planned_.served_once =
        !options_.expected_replays && planned_.steps > 1 && planned_.class_steps == 1;
    std::set<int64_t> executed;
    for (const size_t call : calls_) {
      planned_.host_ns += CostOf(call).host_ns;
      const GraphExecution* execution = work_.ExecutionOf(call);
      if (execution == nullptr) continue;
      ++planned_.calls_held;
      executed.insert(execution->call_id);
    }
    planned_.graphs_executed = executed.size();
  }

  prediction::DeviceCosts CostsOfSteps(const graph::StepFamily& members) const {
    std::vector<StepRange> steps;
    for (const size_t step : members.steps) {
      if (steps.size() == kMostTimedSteps) break;
      steps.push_back(work_.steps[step]);
    }
    return prediction::RecordedCosts(work_, steps);
  }

  prediction::CallCost CostOf(size_t call) const {
    if (work_.ExecutionOf(call) != nullptr) return prediction::CostOf(costs_, work_, call);
    const auto found = costs_.by_signature.find(work_.form(call).signature_id);
    return found == costs_.by_signature.end() ? prediction::CallCost() : found->second;
  }

  // Finds the number of device tasks of each call, or the reason why it has none.
  void FindTasks() {
    barrier_.resize(calls_.size());
    tasks_.assign(calls_.size(), 0);
    const Program program = ProgramOf(work_, calls_);
    Barriers barriers(work_);
    for (size_t place = 0; place < calls_.size(); ++place) {
      barrier_[place] = barriers.ReasonOf(calls_[place]);
      if (!barrier_[place].empty() || work_.form(calls_[place]).kind != LeafKind::kKernel) continue;
      std::string why;
      const std::optional<lowering::Lowering> lowering =
          lowering::Lower(program, program.leaves[place], &why);
      if (!lowering) {
        barrier_[place] = "no device operator: " + why;
        continue;
      }
      tasks_[place] = static_cast<int32_t>(lowering->invocations.size());
    }
    for (const graph::ArgumentVariation& row : variation_.arguments) {
      if (work_.form(calls_[row.place]).kind != LeafKind::kKernel) continue;
      if (row.kind == graph::VariationKind::kLayout) continue;  // one class has one shape
      varying_[row.place].push_back(&row);
      const streams::Resource resource =
          prediction::ResourceOf(work_.op(calls_[row.place]).FullName());
      const bool kernel =
          resource == streams::Resource::kCube || resource == streams::Resource::kVector;
      if (!kernel && barrier_[row.place].empty()) {
        barrier_[row.place] =
            fmt::format("its argument {} varies and a task group takes no {} task", row.name,
                        streams::ResourceName(resource));
      }
    }
  }

  // Bars calls from capture whose graphs no other step could execute.
  void BarUselessGraphs() {
    if (!planned_.served_once) return;
    for (size_t place = 0; place < calls_.size(); ++place) {
      if (!barrier_[place].empty() || work_.ExecutionOf(calls_[place]) != nullptr) continue;
      barrier_[place] =
          fmt::format("no other of the {} steps has these operators and shapes", planned_.steps);
    }
  }

  // True of a number of the program's source that has the same value in each step. Each use makes a
  // new tensor of it, but a graph that was captured with one reads the right bytes for ever; a
  // replay puts it there once. Only recorded contents tell.
  bool IsOneNumber(const graph::StepInput& input) const {
    if (!input.number || input.written) return false;
    const graph::StepFamily& members = LargestClass(classes_).members;
    storage::Statement contents(work_.trace->database(),
                                "SELECT digest FROM snapshot WHERE call_id = ? AND "
                                "moment = 'before' AND tensor_id >> 24 = ?");
    std::string first;
    for (size_t s = 0; s < members.steps.size(); ++s) {
      const size_t call = members.Call(s, input.place);
      int64_t buffer = 0;
      work_.VisitAccesses(call, [&](const ByteAccess& access) {
        if (access.form->argument == input.argument && access.form->element == input.element) {
          buffer = access.buffer;
        }
      });
      contents.Bind(1, work_.calls[call].call_id);
      contents.Bind(2, buffer);
      const std::string digest = contents.Next() ? std::string(contents.Text(0)) : "";
      contents.Reset();
      if (digest.empty() || (s > 0 && digest != first)) return false;
      first = digest;
    }
    return true;
  }

  // Lists, for each place, the moving inputs that it reads.
  void FindInputs() {
    std::map<int64_t, std::vector<std::pair<ByteAccess, int32_t>>> moving;  // by buffer
    for (const graph::StepInput& input : variation_.inputs) {
      if (!input.moves || IsOneNumber(input)) continue;
      const auto index = static_cast<int32_t>(inputs_.size());
      inputs_.push_back(&input);
      work_.VisitAccesses(calls_[input.place], [&](const ByteAccess& access) {
        if (access.form->argument == input.argument && access.form->element == input.element) {
          moving[access.buffer].emplace_back(access, index);
        }
      });
    }
    inputs_of_.resize(calls_.size());
    for (size_t place = 0; place < calls_.size(); ++place) {
      std::vector<int32_t>& inputs = inputs_of_[place];
      work_.VisitAccesses(calls_[place], [&](const ByteAccess& access) {
        const auto found = moving.find(access.buffer);
        if (found == moving.end()) return;
        for (const auto& [input, index] : found->second) {
          if (access.first < input.end && input.first < access.end) inputs.push_back(index);
        }
      });
      std::sort(inputs.begin(), inputs.end());
      inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    }
  }

  CutProblem MakeProblem() const {
    CutProblem problem;
    const std::vector<bool> late = LateSources(work_, calls_);
    for (size_t place = 0; place < calls_.size(); ++place) {
      CutCall& call = problem.calls.emplace_back();
      call.host_ns = CostOf(calls_[place]).host_ns;
      if (tasks_[place] > 0)
        call.capture_ns = call.host_ns + tasks_[place] * costs_.capture_task_ns;
      call.barrier = barrier_[place];
      if (call.barrier.empty() && work_.ExecutionOf(calls_[place]) != nullptr) {
        call.execution = work_.held[calls_[place]].execution;
      }
      call.begins_region = late[place];
      call.entries = tasks_[place];
      call.inputs = inputs_of_[place];
      if (varying_.count(place) != 0) {
        // The call is launched again, between the start and the end of its update.
        call.update_ns = call.host_ns + costs_.record_host_ns + costs_.wait_host_ns;
      }
    }
    for (const graph::StepInput* input : inputs_) {
      problem.input_ns.push_back(costs_.copy_host_ns * (input->written ? 2 : 1));
    }
    problem.launch_ns = costs_.graph_host_ns;
    problem.expected_replays = options_.expected_replays.value_or(kExpectedReplays);
    problem.minimum_region = options_.minimum_region;
    problem.most_captures = std::min(options_.most_captures, soc_->models);
    problem.most_stream_numbers =
        options_.budget_streams > 0 ? options_.budget_streams : soc_->usable_streams();
    problem.streams = std::max(1, options_.streams);
    return problem;
  }

  void ComparePolicies(const CutProblem& problem, const Cuts& cuts) {
    const auto add = [&](const char* name, const Cuts& by) {
      planned_.policies.push_back({name, by.captures(), by.captured_calls(), by.saving_ns});
    };
    add("this plan", cuts);
    add("split at attention",
        CutAround(problem, MarkAttention(work_, calls_), "attention stays eager"));
    add("one full graph with updates",
        CutAround(problem, std::vector<bool>(calls_.size(), false), ""));
  }

  void FillRegions(const Cuts& cuts) {
    planned_.regions.clear();
    Plan& plan = planned_.plan;
    plan.regions.clear();
    plan.streams = 1;
    for (const CutRegion& cut : cuts.regions) {
      RegionFigures& figures = planned_.regions.emplace_back();
      figures.cut = cut;
      figures.calls.assign(calls_.begin() + static_cast<std::ptrdiff_t>(cut.first),
                           calls_.begin() + static_cast<std::ptrdiff_t>(cut.end));
      for (const size_t call : figures.calls) figures.host_ns += CostOf(call).host_ns;
      PlanRegion& region = plan.regions.emplace_back();
      region.region = static_cast<int32_t>(plan.regions.size()) - 1;
      region.captured = cut.captured;
      region.first_call = work_.calls[figures.calls.front()].call_id;
      region.last_call = work_.calls[figures.calls.back()].call_id;
      region.reason = cut.reason;
      region.gain_ns = cut.gain_ns;
      if (!cut.captured) {
        figures.edit = EditFor(cut.reason);
        continue;
      }
      const streams::StreamAssignment assignment = AssignStreams(figures);
      SetAssignment(assignment, work_, figures.calls, region);
      plan.streams = std::max(plan.streams, assignment.streams);
      CountGuards(figures);
    }
  }

  streams::StreamAssignment AssignStreams(RegionFigures& figures) const {
    streams::Dag dag;
    const std::vector<int32_t> tasks(
        tasks_.begin() + static_cast<std::ptrdiff_t>(figures.cut.first),
        tasks_.begin() + static_cast<std::ptrdiff_t>(figures.cut.end));
    for (size_t i = 0; i < figures.calls.size(); ++i) {
      const size_t call = figures.calls[i];
      streams::DagNode& node = dag.nodes.emplace_back();
      node.tasks = tasks[i];
      if (tasks[i] == 0) continue;  // its values are uploaded before the region
      node.duration_ns = CostOf(call).device_ns;
      node.resource = prediction::ResourceOf(work_.op(call).FullName());
    }
    dag.edges = EdgesOf(work_, figures.calls);
    streams::StreamOptions options;
    options.streams = streams_;
    options.costs = costs_.streams;
    options.several_if_slower = options_.spread;
    streams::StreamAssignment assignment = streams::PlanStreams(dag, options, &figures.certificate);
    figures.load = streams::LoadOf(assignment, tasks);
    return assignment;
  }

  void CountGuards(RegionFigures& figures) const {
    std::set<int32_t> copied;
    std::set<const graph::StepInput*> in_place;
    for (size_t place = figures.cut.first; place < figures.cut.end; ++place) {
      copied.insert(inputs_of_[place].begin(), inputs_of_[place].end());
      if (const auto found = varying_.find(place); found != varying_.end()) {
        figures.updated_arguments += static_cast<int64_t>(found->second.size());
      }
      if (const auto found = shapes_of_place_.find(place); found != shapes_of_place_.end()) {
        figures.guarded_shapes += found->second;
      }
    }
    for (const graph::StepInput& input : variation_.inputs) {
      const bool inside = input.place >= figures.cut.first && input.place < figures.cut.end;
      if (inside && !input.moves) in_place.insert(&input);
    }
    figures.copied_inputs = static_cast<int64_t>(copied.size());
    figures.guarded_addresses = static_cast<int64_t>(in_place.size());
  }

  int64_t NumbersTaken() const {
    int64_t numbers = 0;
    for (const RegionFigures& region : planned_.regions) {
      if (region.cut.captured) numbers += region.load.stream_numbers();
    }
    return numbers;
  }

  bool IsCaptured(size_t place) const {
    for (const RegionFigures& region : planned_.regions) {
      if (place >= region.cut.first && place < region.cut.end) return region.cut.captured;
    }
    return false;
  }

  // Lists each moving input that a graph reads. It is named by its first use in the step.
  void FillCopies() {
    std::set<int32_t> read;
    for (const RegionFigures& region : planned_.regions) {
      if (!region.cut.captured) continue;
      for (size_t place = region.cut.first; place < region.cut.end; ++place) {
        read.insert(inputs_of_[place].begin(), inputs_of_[place].end());
      }
    }
    const std::set<int32_t> brought = BroughtFromOutside(read);
    for (const int32_t index : read) {
      if (!brought.contains(index)) continue;
      const graph::StepInput& input = *inputs_[index];
      const size_t call = calls_[input.place];
      const storage::ArgumentValue& argument = (*work_.form(call).arguments)[input.argument];
      std::string name = argument.name;
      if (argument.kind == storage::ValueKind::kTensorList) {
        name += fmt::format("[{}]", input.element);
      }
      planned_.plan.copies.push_back({work_.calls[call].call_id, name, input.bytes});
    }
  }

  // Returns the inputs whose bytes the planned step reads and has not written itself before. In
  // memory that is used again a call such as a fill in place seems to read old bytes: in one step
  // bytes from before the step, in another bytes that the step wrote.
  std::set<int32_t> BroughtFromOutside(const std::set<int32_t>& inputs) const {
    std::map<size_t, std::vector<int32_t>> by_place;
    for (const int32_t index : inputs) by_place[inputs_[index]->place].push_back(index);
    std::set<int32_t> brought;
    std::unordered_map<int64_t, ByteSet> written;
    for (size_t place = 0; place < calls_.size(); ++place) {
      const auto here = by_place.find(place);
      if (here != by_place.end()) {
        work_.VisitAccesses(calls_[place], [&](const ByteAccess& access) {
          if (access.write || written[access.buffer].Covers(access.first, access.end)) return;
          for (const int32_t index : here->second) {
            const graph::StepInput& input = *inputs_[index];
            const bool same =
                access.form->argument == input.argument && access.form->element == input.element;
            if (same) brought.insert(index);
          }
        });
      }
      work_.VisitAccesses(calls_[place], [&](const ByteAccess& access) {
        if (access.write) written[access.buffer].Add(access.first, access.end);
      });
    }
    return brought;
  }

  void FillUpdates() {
    for (const auto& [place, rows] : varying_) {
      if (!IsCaptured(place)) continue;
      for (const graph::ArgumentVariation* row : rows) {
        planned_.plan.updates.push_back({work_.calls[calls_[place]].call_id, row->name});
      }
    }
  }

  void Predict() {
    std::vector<prediction::PredictedCall> calls;
    for (const size_t call : calls_) {
      calls.push_back({CostOf(call), work_.form(call).kind == LeafKind::kHostRead});
    }
    std::vector<prediction::PredictedRegion> regions;
    for (const RegionFigures& figures : planned_.regions) {
      prediction::PredictedRegion& region = regions.emplace_back();
      region.first = figures.cut.first;
      region.end = figures.cut.end;
      region.captured = figures.cut.captured;
      region.already = figures.cut.already;
      region.makespan_ns = figures.certificate.makespan_ns;
      for (size_t place = region.first; place < region.end && region.captured; ++place) {
        region.updates += varying_.count(place) != 0 ? 1 : 0;
      }
    }
    prediction::StepCopies copies;
    for (const PlanCopy& copy : planned_.plan.copies) {
      ++copies.copies;
      copies.bytes += copy.bytes;
    }
    planned_.prediction =
        prediction::PredictStep(calls, regions, prediction::StepCopies(), copies, costs_);
    const prediction::Prediction& from = planned_.prediction;
    PlanPrediction& to = planned_.plan.predicted;
    to.eager_ns = from.eager.latency_ns;
    to.captured_one_stream_ns = from.captured_one_stream.latency_ns;
    to.captured_ns = from.captured.latency_ns;
    to.capture_cost_ns = from.capture_cost_ns;
    to.break_even_steps = from.break_even_steps;
    to.stay_eager = from.stay_eager;
    to.reason = from.reason;
    to.calibrated = costs_.measured();
  }

  void KeepToMemory(Cuts& cuts) {
    PlanMemory();
    const auto over = [&] {
      return options_.budget_bytes > 0 && planned_.graph_bytes > options_.budget_bytes;
    };
    while (over()) {
      if (streams_ != 1) {
        streams_ = 1;
      } else {
        CutRegion* least = nullptr;
        for (CutRegion& region : cuts.regions) {
          if (!region.captured || region.already) continue;
          if (least == nullptr || region.saving_ns < least->saving_ns) least = &region;
        }
        if (least == nullptr) break;  // the program captured the rest itself
        least->captured = false;
        least->gain_ns = least->saving_ns;
        least->reason = "no memory is left in the budget";
        cuts.saving_ns -= least->saving_ns;
      }
      FillRegions(cuts);
      PlanMemory();
    }
  }

  void PlanMemory() {
    planned_.graph_bytes = 0;
    std::vector<std::vector<uint32_t>> graphs;
    std::vector<bool> several;  // true for graphs with several streams
    for (const RegionFigures& region : planned_.regions) {
      if (!region.cut.captured) continue;
      graphs.emplace_back(region.calls.begin(), region.calls.end());
      several.push_back(region.load.streams.size() > 1);
    }
    planned_.pools = memory::PlanPools(work_, memory::BufferLives(work_), graphs);
    for (size_t g = 0; g < graphs.size(); ++g) {
      const memory::GraphPool& pool = planned_.pools.graphs[g];
      if (!several[g]) planned_.graph_bytes += pool.pool_bytes;
      for (const memory::PoolBlock& block : pool.blocks) {
        const int64_t units = (block.bytes + memory::kPoolAlignment - 1) / memory::kPoolAlignment;
        if (several[g]) planned_.graph_bytes += units * memory::kPoolAlignment;
      }
    }
  }

  const Work& work_;
  const PlanOptions& options_;
  const streams::SocLimits* soc_ = nullptr;
  int32_t streams_ = 1;
  prediction::DeviceCosts costs_;
  std::vector<ShapeClass> classes_;
  std::vector<size_t> calls_;                  // active calls of the template step
  graph::Variation variation_;                 // over the steps of its class
  std::map<size_t, int64_t> shapes_of_place_;  // dimensions that vary over the family, by place
  std::vector<std::string> barrier_;           // by place, as all below
  std::vector<int32_t> tasks_;
  std::map<size_t, std::vector<const graph::ArgumentVariation*>> varying_;
  std::vector<const graph::StepInput*> inputs_;  // only those that move
  std::vector<std::vector<int32_t>> inputs_of_;
  PlannedStep planned_;
};

}  // namespace

size_t PlannedStep::captured_calls() const {
  size_t count = 0;
  for (const RegionFigures& region : regions) {
    if (region.cut.captured && !region.cut.already) count += region.calls.size();
  }
  return count;
}

double PlannedStep::captured_host_ns() const {
  double ns = 0;
  for (const RegionFigures& region : regions) {
    if (region.cut.captured && !region.cut.already) ns += region.host_ns;
  }
  return ns;
}

size_t PlannedStep::captures() const {
  return static_cast<size_t>(std::count_if(
      regions.begin(), regions.end(),
      [](const RegionFigures& region) { return region.cut.captured && !region.cut.already; }));
}

PlannedStep MakePlan(const Work& work, const PlanOptions& options) {
  return Planner(work, options).Run();
}

}  // namespace acltape::analyzer::plan
