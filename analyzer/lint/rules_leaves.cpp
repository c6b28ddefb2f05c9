// Rules about leaves of an aten program that a framework's capture meets: reads by the host, shapes
// that depend on data, copies between devices.
#include <algorithm>

#include "analyzer/lint/rule.h"
#include "analyzer/regions.h"

namespace acltape::analyzer {
namespace {

// A mask among the indices: its nonzero elements are counted on the host.
bool HasMask(const Work& work, size_t call) {
  const storage::Op& op = work.op(call);
  if (op.name != "aten::index" && op.name != "aten::index_put" && op.name != "aten::index_put_" &&
      op.name != "aten::_index_put_impl_") {
    return false;
  }
  for (const FormAccess& access : work.form(call).accesses) {
    const storage::Argument& argument = (*work.form(call).arguments)[access.argument];
    if (argument.kind != storage::ValueKind::kTensorList || access.write) continue;
    const storage::DType dtype = access.layout->dtype;
    if (dtype == storage::DType::kBool || dtype == storage::DType::kUint8) return true;
  }
  return false;
}

}  // namespace

void CheckHostReadLeaf(const Scene& scene, Found& found) {
  const Work& work = scene.work;
  const Stretch& stretch = scene.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkForm& form = work.form(i);
    if (!form.active()) continue;
    std::string reason = BarrierReason(form.kind, *form.op);
    if (reason.empty() && HasMask(work, i)) reason = "data-dependent shape: an index is a mask";
    if (reason.empty()) continue;
    Found::Options options;
    options.subject = reason;
    found.Add(static_cast<int64_t>(i),
              work.Describe(i) + " lies inside the work (" + reason +
                  "): the host would wait for the capturing stream",
              options);
  }
}

void CheckDeviceCopyLeaf(const Scene& scene, Found& found) {
  const Work& work = scene.work;
  const Stretch& stretch = scene.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkForm& form = work.form(i);
    if (form.kind != LeafKind::kKernel) continue;
    const std::string& name = form.op->name;
    if (name != "aten::copy_" && name != "aten::_to_copy") continue;
    // One that does not block is a task of the stream where the host memory is pinned, which a
    // trace of this level does not say.
    const bool blocks = std::none_of(
        form.arguments->begin(), form.arguments->end(), [](const storage::Argument& argument) {
          return argument.name == "non_blocking" && argument.integer != 0;
        });
    int to = -1;
    int from = -1;
    work.VisitAccesses(i, [&](const ByteAccess& access) {
      (access.write ? to : from) = work.trace->GetBuffer(access.buffer).device;
    });
    if (!blocks || to < 0 || from < 0 || to == from) continue;
    found.Add(static_cast<int64_t>(i), work.Describe(i) + " copies between device " +
                                           std::to_string(from) + " and device " +
                                           std::to_string(to) + " (0: the host) and waits for it");
  }
}

}  // namespace acltape::analyzer
