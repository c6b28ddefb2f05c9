#include "analyzer/prediction/costs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "analyzer/program/acl_leaves.h"
#include "base/median.h"
#include "storage/database.h"
#include "storage/device_spans.h"

namespace acltape::analyzer::prediction {
namespace {

using Json = nlohmann::json;

// The members that a calibration measures once, by their names in the options of its run.
struct Member {
  const char* name;
  double& (*of)(DeviceCosts&);
};
constexpr Member kMembers[] = {
    {"record_host_ns", [](DeviceCosts& c) -> double& { return c.record_host_ns; }},
    {"wait_host_ns", [](DeviceCosts& c) -> double& { return c.wait_host_ns; }},
    {"record_device_ns", [](DeviceCosts& c) -> double& { return c.streams.record_ns; }},
    {"wait_device_ns", [](DeviceCosts& c) -> double& { return c.streams.wait_ns; }},
    {"graph_host_ns", [](DeviceCosts& c) -> double& { return c.graph_host_ns; }},
    {"graph_device_ns", [](DeviceCosts& c) -> double& { return c.graph_device_ns; }},
    {"graph_share", [](DeviceCosts& c) -> double& { return c.graph_share; }},
    {"capture_task_ns", [](DeviceCosts& c) -> double& { return c.capture_task_ns; }},
    {"copy_host_ns", [](DeviceCosts& c) -> double& { return c.copy_host_ns; }},
    {"copy_device_ns", [](DeviceCosts& c) -> double& { return c.copy_device_ns; }},
    {"copy_byte_ns", [](DeviceCosts& c) -> double& { return c.copy_byte_ns; }},
    {"host_read_ns", [](DeviceCosts& c) -> double& { return c.host_read_ns; }},
};

// Takes a member if there is one; refuses one of another type.
template <typename Value>
void TakeMember(const Json& options, const std::string& name, Value& value) {
  const auto found = options.find(name);
  if (found == options.end()) return;
  const bool fits = std::is_same_v<Value, bool> ? found->is_boolean() : found->is_number();
  if (!fits) {
    throw Error(
        ErrorKind::kTrace,
        "the trace cannot be used: the options of its last calibration (table run) have a '" +
            name + "' of another type; no acltape wrote that, so calibrate again");
  }
  value = found->template get<Value>();
}

std::string SaturatesName(size_t resource) {
  return "saturates_" +
         std::string(streams::ResourceName(static_cast<streams::Resource>(resource)));
}

// Samples of host and device time of one signature.
struct Samples {
  std::vector<double> host_ns;
  std::vector<double> device_ns;
  // From the device's own clock.
  std::vector<double> exact_ns;
  std::vector<double> launching_ns;

  // The best of the three.
  std::vector<double>& BestDeviceNs() {
    if (!exact_ns.empty()) return exact_ns;
    return launching_ns.empty() ? device_ns : launching_ns;
  }
};
using SamplesBySignature = std::unordered_map<int64_t, Samples>;

// Something that the host issued in a step: a call, or a graph of the program with all its work.
struct Issue {
  int64_t begin_ns = 0;
  int64_t duration_ns = 0;
  int64_t signature_id = 0;
};

// The issues of a step, in order of time. Work that had to wait for other work lies at the place
// where it ran, which says nothing of when the host issued it.
std::vector<Issue> IssuesOf(const Work& work, const StepRange& step) {
  std::vector<Issue> issues;
  for (int64_t call = step.first; call < step.end; ++call) {
    if (!work.form(call).active()) continue;
    const WorkCall& row = work.calls[call];
    int64_t signature = work.form(call).signature_id;
    if (const GraphExecution* execution = work.ExecutionOf(call)) {
      if (!work.held[call].first) continue;
      signature = execution->signature_id;
    }
    issues.push_back({row.begin_ns, row.duration_ns, signature});
  }
  std::stable_sort(issues.begin(), issues.end(),
                   [](const Issue& a, const Issue& b) { return a.begin_ns < b.begin_ns; });
  return issues;
}

// The host's time lasts until the next one is issued, by any thread: threads of a step, such as
// that of the backward pass, wait for each other, and a wait is not counted twice. Across steps
// this time is not the call's.
void AddHostSamples(const std::vector<Issue>& issues, SamplesBySignature& samples) {
  for (size_t i = 0; i < issues.size(); ++i) {
    const bool followed = i + 1 < issues.size();
    const int64_t ns =
        followed ? issues[i + 1].begin_ns - issues[i].begin_ns : issues[i].duration_ns;
    samples[issues[i].signature_id].host_ns.push_back(static_cast<double>(ns));
  }
}

void AddSamples(const Work& work, const StepRange& step,
                const std::unordered_map<int64_t, storage::DeviceTime>& times,
                SamplesBySignature& samples) {
  AddHostSamples(IssuesOf(work, step), samples);
  for (int64_t call = step.first; call < step.end; ++call) {
    if (!work.form(call).active()) continue;
    const WorkCall& row = work.calls[call];
    const bool held = work.ExecutionOf(call) != nullptr;
    Samples& of_form = samples[work.form(call).signature_id];
    of_form.device_ns.push_back(
        static_cast<double>(held ? work.held[call].captured_ns : row.duration_ns));
    if (held) continue;  // the device's own time is that of the whole graph
    if (const auto time = times.find(RecordedCall(row.call_id)); time != times.end()) {
      (time->second.exact ? of_form.exact_ns : of_form.launching_ns)
          .push_back(static_cast<double>(time->second.ns));
    }
  }
}

void SetMedians(SamplesBySignature& samples, DeviceCosts& costs) {
  for (auto& [signature, values] : samples) {
    // An execution of a graph has no device time here, and work in a graph no host time.
    const auto median = [](std::vector<double>& ns) { return ns.empty() ? 0 : base::Median(ns); };
    costs.by_signature[signature] = {median(values.host_ns), median(values.BestDeviceNs())};
    if (!values.exact_ns.empty() || !values.launching_ns.empty()) ++costs.timed_signatures;
    if (values.exact_ns.empty() && !values.launching_ns.empty()) ++costs.launching_signatures;
  }
}

// The host's time for executing a graph of the program.
double HostCostOf(const DeviceCosts& costs, const GraphExecution& execution) {
  const auto known = costs.by_signature.find(execution.signature_id);
  if (known != costs.by_signature.end()) return known->second.host_ns;
  return costs.measured() ? costs.graph_host_ns : static_cast<double>(execution.duration_ns);
}

}  // namespace

DeviceCosts RecordedCosts(const Work& work, const std::vector<StepRange>& steps) {
  SamplesBySignature samples;
  const auto times = storage::DeviceTimes(*work.trace);
  for (const StepRange& step : steps) AddSamples(work, step, times, samples);
  DeviceCosts costs;
  SetMedians(samples, costs);
  return costs;
}

std::optional<DeviceCosts> LoadCalibration(const storage::Reader& trace,
                                           const std::string& device) {
  storage::Statement run(trace.database(),
                         "SELECT run_id, device, options FROM run WHERE mode = 'calibrate' AND "
                         "exit_code = 0 AND (?1 = '' OR device = ?1) ORDER BY run_id DESC LIMIT 1");
  run.Bind(1, std::string_view(device));
  if (!run.Next()) return std::nullopt;
  DeviceCosts costs;
  costs.run_id = run.Integer(0);
  costs.device = run.Text(1);
  const Json options = Json::parse(run.Text(2), nullptr, /*allow_exceptions=*/false);
  if (options.is_object()) {
    for (const Member& member : kMembers) {
      TakeMember(options, member.name, member.of(costs));
    }
    TakeMember(options, "streams_overlap", costs.streams.overlaps);
    for (size_t r = 0; r < costs.streams.saturates.size(); ++r) {
      bool saturates = costs.streams.saturates[r];
      TakeMember(options, SaturatesName(r), saturates);
      costs.streams.saturates[r] = saturates;
    }
  }
  storage::Statement sample(trace.database(),
                            "SELECT c.signature_id, s.host_ns, s.device_ns FROM sample s JOIN call "
                            "c USING (call_id) WHERE s.run_id = ?");
  sample.Bind(1, costs.run_id);
  SamplesBySignature samples;
  while (sample.Next()) {
    Samples& values = samples[sample.Integer(0)];
    values.host_ns.push_back(sample.Real(1));
    values.device_ns.push_back(sample.Real(2));
  }
  SetMedians(samples, costs);
  return costs;
}

CallCost CostOf(const DeviceCosts& costs, const Work& work, size_t call) {
  const WorkForm& form = work.form(call);
  if (!form.active()) return {};
  if (const GraphExecution* execution = work.ExecutionOf(call)) {
    const auto known = costs.by_signature.find(form.signature_id);
    CallCost cost;
    cost.device_ns = known != costs.by_signature.end()
                         ? known->second.device_ns
                         : static_cast<double>(work.held[call].captured_ns);
    if (work.held[call].first) cost.host_ns = HostCostOf(costs, *execution);
    return cost;
  }
  const auto known = costs.by_signature.find(form.signature_id);
  if (known != costs.by_signature.end()) return known->second;
  if (costs.measured() && form.kind != LeafKind::kKernel) {
    double bytes = 0;
    work.VisitAccesses(call, [&](const ByteAccess& access) {
      if (access.write == (form.kind == LeafKind::kSource)) {
        bytes += static_cast<double>(access.end - access.first);
      }
    });
    return {costs.copy_host_ns, costs.copy_device_ns + bytes * costs.copy_byte_ns};
  }
  const auto recorded_ns = static_cast<double>(work.calls[call].duration_ns);
  return {recorded_ns, recorded_ns};
}

std::string ToJson(const DeviceCosts& costs) {
  Json json = Json::object();
  DeviceCosts copy = costs;
  for (const Member& member : kMembers) json[member.name] = member.of(copy);
  json["streams_overlap"] = costs.streams.overlaps;
  for (size_t r = 0; r < costs.streams.saturates.size(); ++r) {
    json[SaturatesName(r)] = static_cast<bool>(costs.streams.saturates[r]);
  }
  return json.dump();
}

}  // namespace acltape::analyzer::prediction
