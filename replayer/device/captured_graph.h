// The one place that begins and ends captures (rules CAP-01 and following), with one owner of a
// capture that is open and one of a graph that was captured.
#pragma once

#include <functional>

#include "replayer/device/device.h"

namespace acltape::replayer {

// A graph that the device has captured. It is destroyed with its owner, which waits for its
// executions first.
class CapturedGraph {
 public:
  CapturedGraph() = default;
  CapturedGraph(const Device& device, aclmdlRI handle) : device_(&device), handle_(handle) {}
  ~CapturedGraph() { Reset(); }
  CapturedGraph(CapturedGraph&& other) noexcept { *this = std::move(other); }
  CapturedGraph& operator=(CapturedGraph&& other) noexcept;

  explicit operator bool() const { return handle_ != nullptr; }
  aclmdlRI handle() const { return handle_; }
  void Execute(aclrtStream stream) const;
  void Destroy();  // throws CallFailed, as Execute does
  void Reset();    // destroys it, whatever comes of it

 private:
  const Device* device_ = nullptr;
  aclmdlRI handle_ = nullptr;
};

// A capture that has begun. If it is still open when it is destroyed, it is ended and its graph is
// thrown away.
class Capture {
 public:
  Capture(const Device& device, aclrtStream origin) : device_(&device), origin_(origin) {}
  ~Capture();
  Capture(Capture&& other) noexcept;
  Capture& operator=(Capture&&) = delete;

  // Throws CallFailed, and Error kDevice when the library has no captures.
  void Begin(aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  CapturedGraph End();
  // Captures into a sub-graph, which belongs to the graph around it (rule COND-10).
  void BeginInto(aclmdlRI sub_graph);
  void EndInto();
  bool IsIntoSubGraph() const { return sub_graph_ != nullptr; }

  // The same without throwing, for programs whose failures are looked for: codes of the interface.
  int TryBegin(aclmdlRICaptureMode mode);
  int TryEnd(CapturedGraph& graph);

 private:
  const Device* device_;
  aclrtStream origin_;
  bool open_ = false;
  aclmdlRI sub_graph_ = nullptr;
};

// The graph of what `issue` puts on `origin` and on streams that it joins with it. When `issue`
// throws, the capture is abandoned.
CapturedGraph CaptureWork(const Device& device, aclrtStream origin,
                          const std::function<void()>& issue,
                          aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED);

}  // namespace acltape::replayer
