// Liberties that a plan takes, as elements of a bisection: side streams, and memory that is used
// again. Every call of the plan stays captured throughout; what is not altered lacks the liberty.
#pragma once

#include <string>
#include <vector>

#include "replayer/bisect/elements.h"
#include "replayer/script/alterations.h"
#include "replayer/script/kept_streams.h"

namespace acltape::replayer {

// Calls that the plan puts on side streams, in order of region, stream and issue. Altered: on that
// stream; else on the main stream of the region.
class SideStreamCalls final : public Alterations {
 public:
  // The mixed step must outlive it.
  explicit SideStreamCalls(const MixedStep& step);

  size_t size() const override { return places_.size(); }
  std::string Describe(size_t element) const override;
  void Apply(const ElementSet& altered, MixedStepOptions& options) const override;
  std::string Arguments(const ElementSet& altered) const override;

  // Whole streams: "stream 2 of region 0, 12 calls from call 812 to call 901".
  const std::vector<CallGroup>& streams() const { return streams_; }
  size_t PlaceOf(size_t element) const { return places_.at(element); }

 private:
  std::vector<bool> Stays(const ElementSet& altered) const;

  const MixedStep& step_;
  std::vector<size_t> places_;  // by element
  std::vector<CallGroup> streams_;
};

// Memory that captured calls use a second time (script/memory_reuse.h). Altered: as planned; else
// with memory of its own.
class ReusedMemory final : public Alterations {
 public:
  // `options` are those of the suspected way. The mixed step must outlive it.
  ReusedMemory(const MixedStep& step, const MixedStepOptions& options);

  size_t size() const override { return reuses_.size(); }
  // "buffer 41 of call 815 aten::mm, where buffer 37 of call 812 aten::add lies"
  std::string Describe(size_t element) const override;
  void Apply(const ElementSet& altered, MixedStepOptions& options) const override;
  std::string Arguments(const ElementSet& altered) const override;

  const std::vector<MemoryReuse>& reuses() const { return reuses_; }

 private:
  KeptReuses Kept(const ElementSet& altered) const;

  const MixedStep& step_;
  std::vector<MemoryReuse> reuses_;  // by element
};

}  // namespace acltape::replayer
