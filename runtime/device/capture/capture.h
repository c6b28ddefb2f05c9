// Graph capture: begin, membership, end (CAP-01 to CAP-26, JOIN-01 to JOIN-06, CAP-60 to CAP-66).
//
// All captures of the process share one lock; capturing is not where speed matters. A stream's
// membership is also published in atomics of the stream, which GetInfo reads (CAP-09).
#pragma once

#include <mutex>

#include "runtime/device/context.h"
#include "runtime/device/event.h"
#include "runtime/device/model.h"

namespace acltape::device {

// Taken before any context's mutex and any event's mutex.
std::mutex& CaptureLock();

// CAP-01, CAP-02. `sub_graph`: capture into this one (COND-10); null: into a new model.
aclError BeginCapture(Stream& stream, Model* sub_graph, uint32_t mode, const char* call);

// CAP-11 to CAP-21, in the order of CAP-24. `has_output`: whether the caller gave a place for the
// model, which only sub-graphs do without (CAP-12). On failure *model stays null.
aclError EndCapture(Stream& stream, bool has_output, Model** model);

// Ends the captures into sub-graphs of the model that still run, before it is deleted. Under the
// capture lock.
void DiscardSubGraphCaptures(Model& model);

// Queues the task on the stream, or stores it in the capture that the stream takes part in, in the
// group that the stream updates, or in the built model that it is bound to. Takes the task in every
// case.
aclError SubmitOrCapture(Stream& stream, Task&& task);

// aclrtRecordEvent, aclrtStreamWaitEvent and aclrtResetEvent: eager or captured (CAP-40 to CAP-53).
aclError RecordEvent(Event& event, Stream& stream);
aclError WaitEvent(Stream& stream, Event& event, int64_t timeout_ns);
aclError ResetEvent(Event& event, Stream& stream);

// Takes the event out of the capture it belongs to, before it is destroyed.
void ForgetCapturedEvent(Event& event);
// For objects that nobody uses any more; a capture that began meanwhile lets go of them.
void DeleteEvent(Event* event);
void DeleteStream(Stream* stream);

// Ends the captures begun in a context that is going away; their models are destroyed (CAP-73).
void DiscardCapturesOf(Context& context);

// The capture lock is held: captures that have begun and not ended, of the whole process.
const std::vector<Model*>& ActiveCaptures();
// True when there may be an active capture. Needs no lock.
bool AnyActiveCapture();

// The capture lock is held. Marks the capture unusable (CAP-60). `storage_failed` tells a task that
// could not be stored from a wrong use of events (CAP-61).
void Invalidate(Model& model, bool storage_failed);

// The capture lock is held. Makes `stream` take part in `model`; false when no stream number is
// left.
bool JoinCapture(Model& model, Stream& stream);

// The capture lock is held. Stores a task in the stream's capture; on failure invalidates it. Takes
// the task in every case. `stored`: its node; null when it was thrown away (CAP-60).
aclError StoreTask(Stream& stream, Task& task, int64_t record = Model::kNoNode,
                   Model::Node** stored = nullptr);

// The capture lock is held; the stream is bound to a built model. Stores the task there.
aclError StoreBuiltTask(Stream& stream, Task& task);

}  // namespace acltape::device
