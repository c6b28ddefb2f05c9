// Rules about the host while a capture is open: waits, synchronous and pageable copies, queries of
// captured events, host functions.
#include <unordered_map>

#include "analyzer/lint/rule.h"
#include "generated/meaning/interface_numbers.h"
#include "generated/meaning/parameter_positions.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;

std::vector<Edit> Hoist(const LintContext& context, size_t call) {
  return {HoistEdit(context.work.calls[call].call_id)};
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

void CheckHostWait(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const K kind = context.work.form(i).acl_kind();
    Found::Options options;
    if (kind == K::kDeviceSync) {
      options.edits = Hoist(context, i);
      found.Add(static_cast<int64_t>(i),
                Named(i) + " waits for the device, whose " + OnStream(stretch.stream) +
                    IsCapturing(stretch),
                options);
      continue;
    }
    const std::string refused(FactsOf(kind).refused);  // rule CAP-62
    if (refused.empty() || !context.facts->IsCapturing(stretch, i)) continue;
    options.edits = Hoist(context, i);
    found.Add(static_cast<int64_t>(i),
              Named(i) + " " + refused + " " + OnStream(context.work.calls[i].stream_id) +
                  ", which" + IsCapturing(stretch),
              options);
  }
}

void CheckSynchronousCopy(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkForm& form = context.work.form(i);
    if (FactsOf(form.acl_kind()).capture_rule != "LINT-03" || IsEmptyCopy(form)) continue;
    const Codes codes = context.UnsafeCodes(i, meaning::kAclErrorRtCaptureModeNotSupport);
    if (codes == Codes{}) continue;  // the thread has exchanged its mode for this call
    Found::Options options;
    options.codes = &codes;
    options.edits = Hoist(context, i);
    const int32_t thread = context.work.calls[i].thread;
    const bool other = thread != stretch.thread;
    if (other) options.subject = "other thread";
    found.Add(static_cast<int64_t>(i),
              Named(i) + " copies or fills memory and waits for that while " +
                  OnStream(stretch.stream) + IsCapturing(stretch) +
                  (other ? ", on thread " + std::to_string(thread) + " while thread " +
                               std::to_string(stretch.thread) + " captures"
                         : ""),
              options);
  }
}

void CheckPageableCopy(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (!IsPageableCopy(context.work, i)) continue;
    const bool capturing = context.facts->IsCapturing(stretch, i);
    const Codes codes = capturing
                            ? InEveryMode(meaning::kAclErrorRtParamInvalid)
                            : context.UnsafeCodes(i, meaning::kAclErrorRtCaptureModeBlockAsync);
    if (codes == Codes{}) continue;
    Found::Options options;
    options.codes = &codes;
    options.edits = {PinEdit(context.work.calls[i].call_id)};
    if (!capturing) options.subject = "not capturing";
    found.Add(static_cast<int64_t>(i),
              Named(i) + " copies host memory that is not pinned on " +
                  OnStream(context.work.calls[i].stream_id) +
                  (capturing ? ", which" + IsCapturing(stretch)
                             : ", which makes it synchronous while a capture is open"),
              options);
  }
}

void CheckCapturedEventOnHost(const LintContext& context, Found& found) {
  for (const CaptureFacts::EventCall& call : context.facts->host_calls_on_captured) {
    Found::Options options;
    options.other = call.record;
    options.edits = Hoist(context, call.call);
    found.Add(static_cast<int64_t>(call.call),
              Named(call.call) + " is about an event that " + Named(call.record) +
                  " has made a point of the graph",
              options);
  }
}

void CheckHostFunction(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (context.work.form(i).acl_kind() != K::kHostFunction) continue;
    if (!context.facts->IsCapturing(stretch, i)) continue;
    found.Add(static_cast<int64_t>(i),
              Named(i) + " is captured: its function runs once per execution and not now");
  }
}

}  // namespace acltape::analyzer::lint
