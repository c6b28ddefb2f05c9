#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/emit/emit.h"
#include "analyzer/emit/planned_step.h"
#include "generated/analyzer/emit/torchair_pass.h"
#include "storage/error.h"

namespace acltape::analyzer::emit {
namespace {

// "aten::add.Tensor" is "aten.add.Tensor" in FX, and "aten::mm" is "aten.mm.default".
std::string FxTarget(const storage::Op& op) {
  std::string target = op.name;
  const size_t colons = target.find("::");
  if (colons != std::string::npos) target.replace(colons, 2, ".");
  return target + "." + (op.overload.empty() ? "default" : op.overload);
}

// A literal of Python. A name comes from the trace, and must not end the literal and go on as code.
std::string PythonText(std::string_view text) {
  constexpr bool kAsciiAlone = true;  // JSON's escapes mean the same in Python then
  return nlohmann::json(text).dump(-1, ' ', kAsciiAlone, nlohmann::json::error_handler_t::replace);
}

std::string_view OperatorName(const storage::Op& op) {
  return std::string_view(op.name).substr(op.name.rfind(':') + 1);
}

// The operators that in this step made only views or allocations and never launched a kernel.
std::set<std::string_view> RecordedViews(const plan::Plan& plan, const Work& work) {
  std::set<std::string_view> views;
  std::set<std::string_view> kernels;
  const auto [first, end] = work.Between(plan.first_call, plan.last_call);
  for (auto call = static_cast<size_t>(first); call < static_cast<size_t>(end); ++call) {
    if (work.calls[call].status != 0) continue;
    (work.form(call).active() ? kernels : views).insert(OperatorName(work.op(call)));
  }
  for (const std::string_view name : kernels) views.erase(name);
  return views;
}

std::string RegionText(const plan::PlanRegion& region, const Work& work,
                       const std::vector<PlannedCall>& calls, int32_t index) {
  std::string text = fmt::format("    Region({}, [\n", region.region);
  for (const PlannedCall& planned : calls) {
    if (planned.region != index) continue;
    text += fmt::format("        Call({}, {}, {}, {}),\n", work.calls[planned.call].call_id,
                        PythonText(FxTarget(work.op(planned.call))), planned.stream, planned.issue);
  }
  text += "    ], [\n";
  for (const plan::PlanWait& wait : region.waits) {
    text += fmt::format("        Wait({}, {}),\n", wait.record_after, wait.wait_before);
  }
  return text + "    ]),\n";
}

}  // namespace

std::string TorchairPass(const plan::Plan& plan, const Work& work) {
  if (work.dialect != Dialect::kAten) {
    throw Error(ErrorKind::kUsage, "a torchair pass is for programs recorded at the aten level; " +
                                       work.trace->path() + " holds calls of the ACL level.");
  }
  const std::vector<PlannedCall> calls = ResolvePlan(plan, work);
  std::string regions;
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    if (plan.regions[r].captured) {
      regions += RegionText(plan.regions[r], work, calls, static_cast<int32_t>(r));
    }
  }
  if (regions.empty()) {
    throw Error(ErrorKind::kUsage,
                "the plan captures nothing; there is no graph to emit a pass for.");
  }
  std::string views;
  for (const std::string_view view : RecordedViews(plan, work)) {
    views += fmt::format("{}{}", views.empty() ? "" : ", ", PythonText(view));
  }
  std::string text = fmt::format(
      "\"\"\"Streams of step {} of a recorded program, for torchair's FX graphs. Made by acltape "
      "emit.\n\n"
      "    import torchair\n"
      "    import this_file\n"
      "    config = torchair.CompilerConfig()\n"
      "    config.post_grad_custom_pre_pass = this_file.apply_plan\n"
      "    compiled = torch.compile(model, "
      "backend=torchair.get_npu_backend(compiler_config=config))\n"
      "\"\"\"\n",
      plan.step);
  text += kTorchairPass;
  constexpr std::string_view kMark = "#@PLAN@\n";
  return text.replace(
      text.find(kMark), kMark.size(),
      fmt::format("REGIONS = [\n{}]\nRECORDED_VIEWS = set([{}])\n", regions, views));
}

}  // namespace acltape::analyzer::emit
