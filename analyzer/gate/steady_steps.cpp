#include "analyzer/gate/steady_steps.h"

#include <algorithm>
#include <map>

namespace acltape::analyzer::gate {
namespace {

using Calls = std::vector<uint32_t>;

// Numbers that are equal for steps with equal operators, or with equal shapes.
using Key = std::vector<int64_t>;

// The types, shapes and strides of all tensors of the calls.
Key ShapesOf(const Work& work, const Calls& calls) {
  Key key;
  for (const uint32_t call : calls) {
    for (const FormAccess& access : work.form(call).accesses) {
      const storage::Layout& layout = *access.layout;
      key.push_back(static_cast<int64_t>(layout.dtype));
      key.push_back(static_cast<int64_t>(layout.shape.size()));
      key.insert(key.end(), layout.shape.begin(), layout.shape.end());
      key.insert(key.end(), layout.strides.begin(), layout.strides.end());
    }
  }
  return key;
}

template <typename Group>
size_t CountRepeated(const std::map<Key, Group>& groups) {
  return static_cast<size_t>(std::count_if(
      groups.begin(), groups.end(), [](const auto& group) { return group.second.size() > 1; }));
}

}  // namespace

SteadySteps FindSteadySteps(const Work& work, const std::function<bool(size_t call)>& counts) {
  SteadySteps steady;
  std::vector<Calls> calls_of(work.steps.size());
  std::map<Key, std::vector<size_t>> kinds;
  for (size_t step = 0; step < work.steps.size(); ++step) {
    Key key;
    for (int64_t call = work.steps[step].first; call < work.steps[step].end; ++call) {
      if (!counts(static_cast<size_t>(call))) continue;
      calls_of[step].push_back(static_cast<uint32_t>(call));
      key.push_back(work.op(static_cast<size_t>(call)).op_id);
    }
    if (!key.empty()) kinds[std::move(key)].push_back(step);
  }
  if (kinds.empty()) {
    for (size_t call = 0; call < work.size(); ++call) {
      if (counts(call)) steady.family.calls.push_back(static_cast<uint32_t>(call));
    }
    steady.family.places = steady.family.calls.size();
    return steady;
  }
  steady.kinds = CountRepeated(kinds);
  const std::vector<size_t>* largest = nullptr;
  for (const auto& [key, steps] : kinds) {
    const bool larger = largest == nullptr || steps.size() > largest->size() ||
                        (steps.size() == largest->size() && steps.front() < largest->front());
    if (larger) largest = &steps;
  }
  steady.family.steps = *largest;
  std::map<Key, Calls> shapes;
  for (const size_t step : *largest) {
    const Calls& calls = calls_of[step];
    steady.family.places = calls.size();
    steady.family.calls.insert(steady.family.calls.end(), calls.begin(), calls.end());
    shapes[ShapesOf(work, calls)].push_back(static_cast<uint32_t>(step));
  }
  steady.shapes = CountRepeated(shapes);
  return steady;
}

}  // namespace acltape::analyzer::gate
