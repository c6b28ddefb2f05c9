#include "analyzer/plan/cuts.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/streams/budget.h"

namespace acltape::analyzer::plan {
namespace {

constexpr size_t kMostExactCalls = 512;

// True if no region that is captured anew holds the call.
bool Bars(const CutCall& call) { return !call.barrier.empty() || call.execution >= 0; }

// A region that grows call by call from its first one.
class GrowingRegion {
 public:
  GrowingRegion(const CutProblem& problem, std::vector<size_t>& last_reader, size_t first)
      : problem_(problem), last_reader_(last_reader), first_(first) {
    saving_ns_ = -problem.launch_ns - problem.capture_ns / problem.expected_replays;
  }
  void Add(size_t place) {
    const CutCall& call = problem_.calls[place];
    saving_ns_ += call.host_ns - call.update_ns - call.capture_ns / problem_.expected_replays;
    entries_ += call.entries;
    for (const int32_t input : call.inputs) {
      // A mark of another region has another first call.
      if (last_reader_[input] == first_ + 1) continue;
      last_reader_[input] = first_ + 1;
      saving_ns_ -= problem_.input_ns[input];
    }
  }
  double saving_ns() const { return saving_ns_; }
  int64_t stream_numbers() const {
    return problem_.streams - 1 + streams::StreamLoad{entries_, 0, 0}.numbers();
  }

 private:
  const CutProblem& problem_;
  std::vector<size_t>& last_reader_;  // by input: first call of the last region that read it, + 1
  size_t first_;
  double saving_ns_ = 0;
  int64_t entries_ = 0;
};

// One way to a boundary. A label is kept if no other one saves as much with as few graphs and
// stream numbers.
struct Label {
  double saving_ns = 0;
  int64_t captures = 0;
  int64_t numbers = 0;
  int32_t from = -1;  // index of the label before; -1: none
  size_t first = 0;   // first call of the captured region that ends here
  size_t end = 0;     // first == end: the last stretch is eager
};

class Cutter {
 public:
  Cutter(const CutProblem& problem, size_t first, size_t end, bool limited)
      : problem_(problem),
        first_(first),
        end_(end),
        limited_(limited),
        last_reader_(problem.input_ns.size(), 0) {}

  // Returns the captured regions [first, end) in order.
  std::vector<std::pair<size_t, size_t>> Best(double* saving_ns) {
    FindBoundaries();
    labels_of_.assign(end_ - first_ + 1, {});
    Offer(first_, Label());
    for (size_t i = first_; i < end_; ++i) {
      if (!boundary_[i - first_]) continue;
      const std::vector<int32_t> here = labels_of_[i - first_];
      const size_t next = NextBoundary(i);
      for (const int32_t label : here) {
        Label eager = labels_[label];
        eager.from = label;
        eager.first = eager.end = next;
        Offer(next, eager);
      }
      if (starts_[i - first_]) Grow(i, here);
    }
    int32_t best = labels_of_.back().front();
    for (const int32_t label : labels_of_.back()) {
      if (labels_[label].saving_ns > labels_[best].saving_ns) best = label;
    }
    *saving_ns = labels_[best].saving_ns;
    std::vector<std::pair<size_t, size_t>> regions;
    for (int32_t label = best; label >= 0; label = labels_[label].from) {
      if (labels_[label].first < labels_[label].end) {
        regions.emplace_back(labels_[label].first, labels_[label].end);
      }
    }
    std::reverse(regions.begin(), regions.end());
    return regions;
  }

 private:
  bool Hard(size_t place) const { return Bars(problem_.calls[place]); }
  // True if extending a region by the call may cost more than it saves.
  bool Soft(size_t place) const {
    const CutCall& call = problem_.calls[place];
    double worth = call.host_ns - call.update_ns - call.capture_ns / problem_.expected_replays;
    for (const int32_t input : call.inputs) worth -= problem_.input_ns[input];
    return worth < 0;
  }

  // Marks the places at which a region can usefully begin or end. A region that can grow by a call
  // that saves time, or merge with its neighbour, gains nothing from a border there.
  void FindBoundaries() {
    const size_t count = end_ - first_;
    const bool everywhere = limited_ && count <= kMostExactCalls;
    starts_.assign(count + 1, everywhere);
    ends_.assign(count + 1, everywhere);
    for (size_t i = 0; i <= count; ++i) {
      const size_t place = first_ + i;
      const bool last = i == count;
      starts_[i] = !last && !Hard(place) &&
                   (starts_[i] || i == 0 || Hard(place - 1) || Soft(place - 1) ||
                    problem_.calls[place].begins_region);
      ends_[i] =
          i > 0 && !Hard(place - 1) &&
          (ends_[i] || last || Hard(place) || Soft(place) || problem_.calls[place].begins_region);
    }
    boundary_.resize(count + 1);
    for (size_t i = 0; i <= count; ++i) boundary_[i] = starts_[i] || ends_[i];
    boundary_[0] = boundary_[count] = true;
  }

  size_t NextBoundary(size_t place) const {
    do {
      ++place;
    } while (!boundary_[place - first_]);
    return place;
  }

  void Grow(size_t first, const std::vector<int32_t>& labels) {
    GrowingRegion region(problem_, last_reader_, first);
    for (size_t place = first; place < end_; ++place) {
      if (Hard(place) || (place > first && problem_.calls[place].begins_region)) return;
      region.Add(place);
      const size_t end = place + 1;
      if (!ends_[end - first_] || end - first < problem_.minimum_region) continue;
      if (region.saving_ns() <= 0) continue;
      for (const int32_t label : labels) {
        Label captured = labels_[label];
        captured.from = label;
        captured.saving_ns += region.saving_ns();
        captured.first = first;
        captured.end = end;
        if (limited_) {
          captured.captures += 1;
          captured.numbers += region.stream_numbers();
          if (captured.captures > problem_.most_captures ||
              captured.numbers > problem_.most_stream_numbers) {
            continue;
          }
        }
        Offer(end, captured);
      }
    }
  }

  // Keeps the label unless another label at the boundary is at least as good in every respect.
  void Offer(size_t place, const Label& label) {
    std::vector<int32_t>& here = labels_of_[place - first_];
    const auto beats = [](const Label& a, const Label& b) {
      return a.saving_ns >= b.saving_ns && a.captures <= b.captures && a.numbers <= b.numbers;
    };
    for (const int32_t other : here) {
      if (beats(labels_[other], label)) return;
    }
    std::erase_if(here, [&](int32_t other) { return beats(label, labels_[other]); });
    here.push_back(static_cast<int32_t>(labels_.size()));
    labels_.push_back(label);
  }

  const CutProblem& problem_;
  const size_t first_;
  const size_t end_;
  const bool limited_;
  std::vector<size_t> last_reader_;
  std::vector<bool> starts_, ends_, boundary_;   // by place - first_
  std::vector<std::vector<int32_t>> labels_of_;  // labels by place - first_
  std::vector<Label> labels_;
};

int64_t NumbersOf(const CutProblem& problem, size_t first, size_t end) {
  int64_t entries = 0;
  for (size_t place = first; place < end; ++place) entries += problem.calls[place].entries;
  return problem.streams - 1 + streams::StreamLoad{entries, 0, 0}.numbers();
}

// Says why a captured region ends before the call at `end`.
std::string EndReason(const CutProblem& problem, size_t end) {
  if (end == problem.calls.size()) return "the step ends";
  const CutCall& next = problem.calls[end];
  if (next.execution >= 0) return "ends before a graph of the program's own";
  if (!next.barrier.empty()) return "ends before a barrier: " + next.barrier;
  if (next.begins_region) return "ends before random values that come from outside";
  return "ends where going on costs more than it saves";
}

// Says why calls without a hard barrier are not captured.
std::string EagerReason(const CutProblem& problem, size_t first, size_t end) {
  const std::vector<CutCall>& calls = problem.calls;
  size_t from = first;
  size_t to = end;
  while (from > 0 && !Bars(calls[from - 1]) && !calls[from].begins_region) --from;
  while (to < calls.size() && !Bars(calls[to]) && !calls[to].begins_region) ++to;
  if (to - from < problem.minimum_region) {
    return fmt::format("too short: {} of at least {} calls", to - from, problem.minimum_region);
  }
  const double saving_ns = SavingOf(problem, first, end);
  if (saving_ns > 0) return "no graph or stream is left in the budget";
  double host_ns = 0;
  double update_ns = 0;
  std::vector<bool> read(problem.input_ns.size(), false);
  double copy_ns = 0;
  for (size_t place = first; place < end; ++place) {
    host_ns += calls[place].host_ns;
    update_ns += calls[place].update_ns;
    for (const int32_t input : calls[place].inputs) {
      if (!read[input]) copy_ns += problem.input_ns[input];
      read[input] = true;
    }
  }
  if (update_ns > 0 && update_ns >= host_ns) return "argument updates cost more than capture saves";
  if (copy_ns > 0 && update_ns + copy_ns >= host_ns) {
    return "input copies cost more than capture saves";
  }
  return "launching and capturing a graph costs more than it saves";
}

// Fills the gaps between captured regions with eager regions. Each eager region has one reason.
Cuts WithReasons(const CutProblem& problem, const std::vector<std::pair<size_t, size_t>>& captured,
                 const std::vector<bool>* marked, const std::string& why) {
  Cuts cuts;
  const auto eager = [&](size_t first, size_t end) {
    for (size_t place = first; place < end;) {
      size_t stop = place + 1;
      const bool already = problem.calls[place].execution >= 0;
      const bool hard = Bars(problem.calls[place]);
      const bool mark = !already && marked != nullptr && (*marked)[place];
      while (stop < end && problem.calls[stop].barrier == problem.calls[place].barrier &&
             problem.calls[stop].execution == problem.calls[place].execution &&
             (hard || !problem.calls[stop].begins_region) &&
             (already || marked == nullptr || (*marked)[stop] == mark)) {
        ++stop;
      }
      CutRegion& region = cuts.regions.emplace_back(CutRegion{place, stop});
      region.captured = region.already = already;
      region.reason = already ? "captured already, by the program"
                      : hard  ? problem.calls[place].barrier
                      : mark  ? why
                              : EagerReason(problem, place, stop);
      place = stop;
    }
  };
  size_t next = 0;
  for (const auto& [first, end] : captured) {
    eager(next, first);
    CutRegion& region = cuts.regions.emplace_back(CutRegion{first, end, true});
    region.saving_ns = SavingOf(problem, first, end);
    cuts.saving_ns += region.saving_ns;
    next = end;
  }
  eager(next, problem.calls.size());
  for (CutRegion& region : cuts.regions) {
    if (region.captured && !region.already) region.reason = EndReason(problem, region.end);
  }
  return cuts;
}

// The additional saving around an eager region if that region could be captured for nothing. Only
// calls up to the next hard barriers count, because cuts beyond one do not matter.
double GainWithout(const CutProblem& problem, const CutRegion& region) {
  size_t first = region.first;
  size_t end = region.end;
  const auto free = [&](size_t place) { return !Bars(problem.calls[place]); };
  while (first > 0 && free(first - 1) && !problem.calls[first].begins_region) --first;
  while (end < problem.calls.size() && free(end) && !problem.calls[end].begins_region) ++end;
  double now = 0;
  Cutter(problem, first, end, /*limited=*/false).Best(&now);
  CutProblem changed;
  changed.calls.assign(problem.calls.begin() + static_cast<std::ptrdiff_t>(first),
                       problem.calls.begin() + static_cast<std::ptrdiff_t>(end));
  changed.input_ns = problem.input_ns;
  changed.launch_ns = problem.launch_ns;
  changed.capture_ns = problem.capture_ns;
  changed.expected_replays = problem.expected_replays;
  changed.minimum_region = problem.minimum_region;
  for (size_t place = region.first; place < region.end; ++place) {
    CutCall& call = changed.calls[place - first];
    call.barrier.clear();
    call.begins_region = false;
    call.update_ns = 0;
    call.inputs.clear();
  }
  double then = 0;
  Cutter(changed, 0, end - first, false).Best(&then);
  return then - now;
}

}  // namespace

int64_t Cuts::captures() const {
  return std::count_if(regions.begin(), regions.end(),
                       [](const CutRegion& region) { return region.captured; });
}

size_t Cuts::captured_calls() const {
  size_t calls = 0;
  for (const CutRegion& region : regions) calls += region.captured ? region.end - region.first : 0;
  return calls;
}

double SavingOf(const CutProblem& problem, size_t first, size_t end) {
  std::vector<size_t> last_reader(problem.input_ns.size(), 0);
  GrowingRegion region(problem, last_reader, first);
  for (size_t place = first; place < end; ++place) region.Add(place);
  return region.saving_ns();
}

Cuts CutBest(const CutProblem& problem) {
  double saving = 0;
  Cutter free(problem, 0, problem.calls.size(), /*limited=*/false);
  std::vector<std::pair<size_t, size_t>> captured = free.Best(&saving);
  int64_t numbers = 0;
  for (const auto& [first, end] : captured) numbers += NumbersOf(problem, first, end);
  if (static_cast<int64_t>(captured.size()) > problem.most_captures ||
      numbers > problem.most_stream_numbers) {
    captured = Cutter(problem, 0, problem.calls.size(), /*limited=*/true).Best(&saving);
  }
  Cuts cuts = WithReasons(problem, captured, nullptr, "");
  for (CutRegion& region : cuts.regions) {
    if (!region.captured) region.gain_ns = GainWithout(problem, region);
  }
  return cuts;
}

Cuts CutAround(const CutProblem& problem, const std::vector<bool>& eager, const std::string& why) {
  std::vector<std::pair<size_t, size_t>> captured;
  bool open = false;
  for (size_t place = 0; place < problem.calls.size(); ++place) {
    const CutCall& call = problem.calls[place];
    if (Bars(call) || eager[place]) {
      open = false;
      continue;
    }
    if (!open || call.begins_region) captured.emplace_back(place, place);
    captured.back().second = place + 1;
    open = true;
  }
  std::erase_if(captured, [&](const std::pair<size_t, size_t>& region) {
    return region.second - region.first < problem.minimum_region;
  });
  return WithReasons(problem, captured, &eager, why);
}

}  // namespace acltape::analyzer::plan
