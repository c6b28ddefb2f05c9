#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyzer/emit/emit.h"
#include "analyzer/emit/planned_step.h"
#include "analyzer/streams/dag.h"

namespace acltape::analyzer::emit {
namespace {

using Json = nlohmann::ordered_json;

Json TensorsJson(const Work& work, size_t call, bool written) {
  Json tensors = Json::array();
  const WorkForm& form = work.form(call);
  for (const FormAccess& access : form.accesses) {
    if (access.write != written) continue;
    tensors.push_back({{"argument", (*form.arguments)[access.argument].name},
                       {"buffer", work.buffers(call)[access.slot]},
                       {"dtype", storage::DTypeName(access.layout->dtype)},
                       {"shape", access.layout->shape},
                       {"strides", access.layout->strides},
                       {"byte_offset", access.layout->byte_offset}});
  }
  return tensors;
}

Json CallJson(const Work& work, const PlannedCall& planned) {
  const WorkCall& call = work.calls[planned.call];
  Json waits = Json::array();
  for (const plan::PlanWait& wait : planned.waits) {
    waits.push_back({{"event", wait.event}, {"record_after", wait.record_after}});
  }
  return {{"call", call.call_id},
          {"op", work.op(planned.call).FullName()},
          {"stream", planned.stream},
          {"issue", planned.issue},
          {"waits", std::move(waits)},
          {"records", planned.recorded},
          {"recorded_ns", call.duration_ns},
          {"reads", TensorsJson(work, planned.call, false)},
          {"writes", TensorsJson(work, planned.call, true)}};
}

}  // namespace

std::string ResolvedJson(const plan::Plan& plan, const Work& work) {
  const std::vector<PlannedCall> calls = ResolvePlan(plan, work);
  Json regions = Json::array();
  for (size_t r = 0, next = 0; r < plan.regions.size(); ++r) {
    const plan::PlanRegion& region = plan.regions[r];
    Json rows = Json::array();
    int64_t recorded_ns = 0;
    int32_t streams = 1;
    for (; next < calls.size() && calls[next].region == static_cast<int32_t>(r); ++next) {
      rows.push_back(CallJson(work, calls[next]));
      recorded_ns += work.calls[calls[next].call].duration_ns;
      streams = std::max(streams, calls[next].stream + 1);
    }
    regions.push_back({{"region", region.region},
                       {"kind", region.captured ? "captured" : "eager"},
                       {"reason", region.reason},
                       {"streams", streams},
                       {"recorded_ns", recorded_ns},
                       {"gain_ns", region.gain_ns},
                       {"calls", std::move(rows)}});
  }
  Json copies = Json::array();
  for (const plan::PlanCopy& copy : plan.copies) {
    copies.push_back({{"call", copy.call_id}, {"argument", copy.argument}, {"bytes", copy.bytes}});
  }
  Json updates = Json::array();
  for (const plan::PlanUpdate& update : plan.updates) {
    updates.push_back({{"call", update.call_id}, {"argument", update.argument}});
  }
  const plan::PlanPrediction& predicted = plan.predicted;
  const Json json = {{"trace", work.trace->path()},
                     {"step", plan.step},
                     {"capture_mode", plan.capture_mode},
                     {"soc", plan.soc},
                     {"streams", plan.streams},
                     {"predicted",
                      {{"eager_ns", predicted.eager_ns},
                       {"captured_one_stream_ns", predicted.captured_one_stream_ns},
                       {"captured_ns", predicted.captured_ns},
                       {"capture_cost_ns", predicted.capture_cost_ns},
                       {"break_even_steps", predicted.break_even_steps},
                       {"stay_eager", predicted.stay_eager},
                       {"reason", predicted.reason}}},
                     {"regions", std::move(regions)},
                     {"copies", std::move(copies)},
                     {"updates", std::move(updates)}};
  return json.dump(2) + "\n";
}

}  // namespace acltape::analyzer::emit
