// Rules about a trace as a whole: the streams that its graphs take, and its environment.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "analyzer/lint/lint.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;

// An environment variable with a value under which captures do not work.
struct EnvironmentRow {
  const char* name;
  const char* value;
  const char* why;
};
constexpr EnvironmentRow kEnvironment[] = {
    {"TASK_QUEUE_ENABLE", "2", "its second queue launches from another thread than captures"},
    {"ASCEND_LAUNCH_BLOCKING", "1", "each launch waits for its stream, which a capture refuses"},
};

}  // namespace

void CheckBudget(const LintContext& context, Found& found) {
  // Counts the streams of the program and of its graphs, as they are created and destroyed.
  const Work& work = context.work;
  std::unordered_map<int64_t, int64_t> streams_of;  // streams of each living graph
  int64_t living = 1;                               // begins with the default stream
  size_t next = 0;
  int64_t graphs = 0;
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkForm& form = work.form(i);
    const bool good = work.calls[i].status == 0;
    if (form.acl_kind() == K::kStreamCreate && good) ++living;
    if (form.acl_kind() == K::kStreamDestroy && good) --living;
    if (form.acl_kind() == K::kModelDestroy && good) {
      const auto model = streams_of.find(form.Integer(form.function->object));
      if (model == streams_of.end()) continue;
      living -= model->second;
      --graphs;
      streams_of.erase(model);
    }
    while (next < context.stretches.size() && context.stretches[next].recorded() &&
           context.stretches[next].begin_call == static_cast<int64_t>(i)) {
      const Stretch& stretch = context.stretches[next++];
      const CaptureFacts facts = FindCaptureFacts(work, stretch, context.handles);
      const int64_t streams = BudgetOf(facts).streams;
      living += streams;
      ++graphs;
      streams_of[stretch.model_id] = streams;
      if (living <= context.options.stream_limit) continue;
      found.Add(static_cast<int64_t>(i),
                Named(i) + " begins graph " + std::to_string(graphs) +
                    " of those alive at a time, which takes the streams to " +
                    std::to_string(living) + " of " + std::to_string(context.options.stream_limit) +
                    " that the device has");
      return;
    }
  }
}

void CheckEnvironment(const LintContext& context, Found& found) {
  const std::string text = context.work.trace->Meta("environment", "{}");
  const nlohmann::json environment = nlohmann::json::parse(text, nullptr, false);
  if (!environment.is_object()) return;
  for (const EnvironmentRow& row : kEnvironment) {
    const auto set = environment.find(row.name);
    if (set == environment.end() || *set != row.value) continue;
    Found::Options options;
    options.subject = row.name;
    found.Add(-1,
              std::string("the program ran with ") + row.name + "=" + row.value + ": " + row.why,
              options);
  }
}

}  // namespace acltape::analyzer::lint
