// The liberties that a plan takes, as elements of a bisection: side streams, and memory that is
// used again. All calls of the plan stay captured. An element that is not altered does not get its
// liberty.
#pragma once

#include <string>
#include <vector>

#include "replayer/bisect/elements.h"
#include "replayer/script/alterations.h"
#include "replayer/script/kept_streams.h"

namespace acltape::replayer::bisect {

// The calls that the plan puts on side streams, in order of region, stream and issue. An altered
// call runs on its side stream, any other on the main stream of its region.
class SideStreamCalls final : public script::Alterations {
 public:
  // The mixed step must outlive it.
  explicit SideStreamCalls(const script::MixedStep& step);

  size_t size() const override { return places_.size(); }
  std::string Describe(size_t element) const override;
  void Apply(const script::ElementSet& altered, script::MixedStepOptions& options) const override;
  meaning::OptionChange Change(const script::ElementSet& altered) const override;

  // Each whole side stream as a group: "stream 2 of region 0, 12 calls from call 812 to call 901".
  const std::vector<CallGroup>& streams() const { return streams_; }
  size_t PlaceOf(size_t element) const { return places_.at(element); }

 private:
  std::vector<bool> Stays(const script::ElementSet& altered) const;

  const script::MixedStep& step_;
  std::vector<size_t> places_;  // by element
  std::vector<CallGroup> streams_;
};

// Memory that captured calls use a second time (script/memory_reuse.h). An altered element uses the
// memory as planned. Any other gets memory of its own.
class ReusedMemory final : public script::Alterations {
 public:
  // `options` describe the suspected step. The mixed step must outlive the object.
  ReusedMemory(const script::MixedStep& step, const script::MixedStepOptions& options);

  size_t size() const override { return reuses_.size(); }
  // Returns a text such as "buffer 41 of call 815 aten::mm, where buffer 37 of call 812 aten::add
  // lies".
  std::string Describe(size_t element) const override;
  void Apply(const script::ElementSet& altered, script::MixedStepOptions& options) const override;
  meaning::OptionChange Change(const script::ElementSet& altered) const override;

  const std::vector<script::MemoryReuse>& reuses() const { return reuses_; }

 private:
  script::KeptReuses Kept(const script::ElementSet& altered) const;

  const script::MixedStep& step_;
  std::vector<script::MemoryReuse> reuses_;  // by element
};

}  // namespace acltape::replayer::bisect
