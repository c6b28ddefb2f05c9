// Rules about the host while a capture is open: waits, synchronous and pageable copies, queries of
// captured events, host functions.
#include <unordered_map>

#include "analyzer/lint/rule.h"
#include "generated/meaning/interface_numbers.h"
#include "generated/meaning/parameter_positions.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;

std::vector<Edit> Hoist(const Scene& scene, size_t call) {
  return {HoistEdit(scene.work.calls[call].call_id)};
}

bool IsEmptyCopy(const WorkForm& form) {
  namespace rows = meaning::position::aclrtMemcpy2d;
  if (form.acl_kind() == K::kCopy2d) {
    return form.Integer(rows::kWidth) == 0 || form.Integer(rows::kHeight) == 0;
  }
  return form.Integer(meaning::position::aclrtMemcpy::kCount) == 0;
}

// Says that a stream is capturing, or would be if the program made no capture itself.
std::string IsCapturing(const Stretch& stretch) {
  return stretch.recorded() ? " is capturing" : " would be capturing";
}

}  // namespace

void CheckHostWait(const Scene& scene, Found& found) {
  const Stretch& stretch = scene.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const K kind = scene.work.form(i).acl_kind();
    Found::Options options;
    if (kind == K::kDeviceSync) {
      options.edits = Hoist(scene, i);
      found.Add(static_cast<int64_t>(i),
                scene.work.Describe(i) + " waits for the device, whose " +
                    OnStream(stretch.stream) + IsCapturing(stretch),
                options);
      continue;
    }
    const std::string refused(FactsOf(kind).refused);  // rule CAP-62
    if (refused.empty() || !scene.facts->IsCapturing(stretch, i)) continue;
    options.edits = Hoist(scene, i);
    found.Add(static_cast<int64_t>(i),
              scene.work.Describe(i) + " " + refused + " " +
                  OnStream(scene.work.calls[i].stream_id) + ", which" + IsCapturing(stretch),
              options);
  }
}

void CheckSynchronousCopy(const Scene& scene, Found& found) {
  const Stretch& stretch = scene.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkForm& form = scene.work.form(i);
    if (FactsOf(form.acl_kind()).capture_rule != "LINT-03" || IsEmptyCopy(form)) continue;
    const Codes codes = scene.UnsafeCodes(i, meaning::kAclErrorRtCaptureModeNotSupport);
    if (codes == Codes{}) continue;  // the thread has exchanged its mode for this call
    Found::Options options;
    options.codes = &codes;
    options.edits = Hoist(scene, i);
    const int32_t thread = scene.work.calls[i].thread;
    const bool other = thread != stretch.thread;
    if (other) options.subject = "other thread";
    found.Add(static_cast<int64_t>(i),
              scene.work.Describe(i) + " of thread " + std::to_string(thread) +
                  (stretch.recorded() ? " comes" : " would come") +
                  (other ? " while thread " + std::to_string(stretch.thread) + " captures "
                         : " while it captures ") +
                  OnStream(stretch.stream),
              options);
  }
}

void CheckPageableCopy(const Scene& scene, Found& found) {
  const Stretch& stretch = scene.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (!IsPageableCopy(scene.work, i)) continue;
    const bool capturing = scene.facts->IsCapturing(stretch, i);
    const Codes codes = capturing ? InEveryMode(meaning::kAclErrorRtParamInvalid)
                                  : scene.UnsafeCodes(i, meaning::kAclErrorRtCaptureModeBlockAsync);
    if (codes == Codes{}) continue;
    Found::Options options;
    options.codes = &codes;
    options.edits = {PinEdit(scene.work.calls[i].call_id)};
    if (!capturing) options.subject = "not capturing";
    found.Add(static_cast<int64_t>(i),
              scene.work.Describe(i) + " copies host memory that is not pinned on " +
                  OnStream(scene.work.calls[i].stream_id) +
                  (capturing ? ", which" + IsCapturing(stretch)
                             : ", which makes it synchronous while a capture is open"),
              options);
  }
}

void CheckCapturedEventOnHost(const Scene& scene, Found& found) {
  for (const CaptureFacts::EventCall& call : scene.facts->host_calls_on_captured) {
    Found::Options options;
    options.other = call.record;
    options.edits = Hoist(scene, call.call);
    found.Add(static_cast<int64_t>(call.call),
              scene.work.Describe(call.call) + " is about an event that " +
                  scene.work.Describe(call.record) + " has made a point of the graph",
              options);
  }
}

void CheckHostFunction(const Scene& scene, Found& found) {
  const Stretch& stretch = scene.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (scene.work.form(i).acl_kind() != K::kHostFunction) continue;
    if (!scene.facts->IsCapturing(stretch, i)) continue;
    found.Add(
        static_cast<int64_t>(i),
        scene.work.Describe(i) + " is captured: its function runs once per execution and not now");
  }
}

}  // namespace acltape::analyzer::lint
