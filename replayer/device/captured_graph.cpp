#include "replayer/device/captured_graph.h"

#include <utility>

#include "meaning/options.h"

namespace acltape::replayer {

CapturedGraph& CapturedGraph::operator=(CapturedGraph&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  device_ = other.device_;
  handle_ = std::exchange(other.handle_, nullptr);
  return *this;
}

void CapturedGraph::Execute(aclrtStream stream) const {
  device_->work().Execute(handle_, stream).Check();
}

void CapturedGraph::Destroy() {
  device_->Check(device_->api().aclmdlRIDestroy(std::exchange(handle_, nullptr)),
                 "aclmdlRIDestroy");
}

void CapturedGraph::Reset() {
  if (handle_ != nullptr) device_->api().aclmdlRIDestroy(std::exchange(handle_, nullptr));
}

Capture::Capture(Capture&& other) noexcept
    : device_(other.device_),
      origin_(other.origin_),
      open_(std::exchange(other.open_, false)),
      sub_graph_(other.sub_graph_) {}

Capture::~Capture() {
  if (open_ && sub_graph_ != nullptr) {
    device_->api().aclmdlRICaptureEnd(origin_, &sub_graph_);
    return;
  }
  CapturedGraph abandoned;
  if (open_) TryEnd(abandoned);
}

void Capture::Begin(aclmdlRICaptureMode mode) {
  if (device_->api().aclmdlRICaptureBegin == nullptr) {
    throw Error(
        ErrorKind::kDevice,
        "the device library lacks aclmdlRICaptureBegin; use a newer one, or @mode eager"_cli);
  }
  device_->Check(TryBegin(mode), "aclmdlRICaptureBegin");
}

CapturedGraph Capture::End() {
  CapturedGraph graph;
  device_->Check(TryEnd(graph), "aclmdlRICaptureEnd");
  return graph;
}

void Capture::BeginInto(aclmdlRI sub_graph) {
  device_->work()
      .Ask("aclmdlRICaptureToModelRIBegin", device_->api().aclmdlRICaptureToModelRIBegin, origin_,
           sub_graph, ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
      .Check();
  open_ = true;
  sub_graph_ = sub_graph;
}

void Capture::EndInto() {
  open_ = false;
  device_->Check(device_->api().aclmdlRICaptureEnd(origin_, &sub_graph_), "aclmdlRICaptureEnd");
}

int Capture::TryBegin(aclmdlRICaptureMode mode) {
  const int code = device_->api().aclmdlRICaptureBegin(origin_, mode);
  open_ = code == 0;
  return code;
}

int Capture::TryEnd(CapturedGraph& graph) {
  open_ = false;
  aclmdlRI handle = nullptr;
  const int code = device_->api().aclmdlRICaptureEnd(origin_, &handle);
  graph = CapturedGraph(*device_, handle);
  return code;
}

CapturedGraph CaptureWork(const Device& device, aclrtStream origin,
                          const std::function<void()>& issue, aclmdlRICaptureMode mode) {
  Capture capture(device, origin);
  capture.Begin(mode);
  issue();
  return capture.End();
}

}  // namespace acltape::replayer
