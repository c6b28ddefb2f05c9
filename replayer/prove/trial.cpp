#include "replayer/prove/trial.h"

#include <algorithm>
#include <random>

#include "replayer/script/stream_orders.h"
#include "storage/error.h"

namespace acltape::replayer::prove {
namespace {

constexpr TrialKindRow kKinds[] = {
    {TrialKind::kPlain, "plain", "PROVE-PLAIN", "the step runs as planned"},
    {TrialKind::kPoison, "poison", "PROVE-POISON", "memory that no live value occupies holds NaN"},
    {TrialKind::kRelocate, "relocate", "PROVE-RELOCATE",
     "inputs lie at other addresses in each execution"},
    {TrialKind::kOrder, "order", "PROVE-ORDER",
     "steps run again, or in another order than recorded"},
    {TrialKind::kChurn, "churn", "PROVE-CHURN", "an allocator works between executions"},
    {TrialKind::kCaptureAt, "capture_at", "PROVE-CAPTURE-AT",
     "the step that is captured is not the one that runs"},
    {TrialKind::kAlone, "alone", "PROVE-ALONE",
     "one graph is captured and the other calls are not"},
    {TrialKind::kJitter, "jitter", "PROVE-JITTER",
     "streams run as far apart as the plan's waits allow"},
    {TrialKind::kAhead, "ahead", "PROVE-AHEAD",
     "one stream after the other runs ahead as far as the plan's waits allow"},
};

constexpr int64_t kChurnBytes = int64_t{64} << 20;
constexpr size_t kLongRun = 8;  // number of executions, so that a race has chances to show

// Draws the steps of a trial and sets its options.
class TrialMaker {
 public:
  TrialMaker(const TrialGround& ground, uint64_t seed)
      : ground_(ground), random_(seed), last_(ground.matches - 1) {}

  void Fill(Trial& trial) {
    const int number = trial.number;
    script::MixedStepOptions& step = trial.step;
    switch (trial.kind) {
      case TrialKind::kPlain:
        step.run_matches = number == 0 ? std::vector<size_t>{1} : InARow();
        break;
      case TrialKind::kPoison:
        step.stress.poison_gaps = true;
        step.run_matches = number == 0 ? std::vector<size_t>{1, last_} : Draw(2);
        break;
      case TrialKind::kRelocate:
        step.stress.relocate_inputs = true;
        step.run_matches = Draw(3);
        break;
      case TrialKind::kChurn:
        step.stress.churn_bytes = kChurnBytes;
        step.run_matches = Draw(3);
        break;
      case TrialKind::kOrder:
        Order(number, step);
        break;
      case TrialKind::kCaptureAt:
        CaptureAt(number, step);
        break;
      case TrialKind::kAlone:
        step.captured.assign(ground_.places, false);
        for (const size_t place : ground_.graphs[number]) step.captured[place] = true;
        step.run_matches = {last_, 1};
        break;
      case TrialKind::kJitter:
        step.run_matches = Draw(kLongRun);
        break;
      case TrialKind::kAhead:
        step.run_matches = script::RunsOfOrders(Draw(2), 0, trial.ahead);
        break;
    }
  }

 private:
  size_t Any() { return random_() % ground_.matches; }
  size_t AnyBut(size_t match) { return (match + 1 + random_() % last_) % ground_.matches; }

  // Draws steps so that no step comes twice in a row, because each must bring its own values.
  std::vector<size_t> Draw(size_t count) {
    std::vector<size_t> matches{Any()};
    while (matches.size() < count) matches.push_back(AnyBut(matches.back()));
    return matches;
  }

  std::vector<size_t> InARow() {
    const size_t first = Any();
    std::vector<size_t> matches;
    for (size_t m = first; m < ground_.matches && matches.size() < kLongRun; ++m) {
      matches.push_back(m);
    }
    return matches;
  }

  void Order(int number, script::MixedStepOptions& step) {
    const size_t a = number < 4 ? 0 : Any();
    const size_t b = number < 4 ? last_ : AnyBut(a);
    const std::vector<size_t> orders[] = {{a, b, a}, {b, a}, {b, b}, {b, a, b, a, a, b}};
    step.run_matches = orders[number % 4];
    step.capture_match = number % 8 < 4 ? a : b;
  }

  void CaptureAt(int number, script::MixedStepOptions& step) {
    const std::pair<size_t, size_t> ends[] = {{0, last_}, {last_, 0}, {0, 1}, {last_, last_ - 1}};
    if (number < 4) {
      step.capture_match = ends[number].first;
      step.run_matches = {ends[number].second};
    } else {
      step.capture_match = Any();
      step.run_matches = {AnyBut(step.capture_match)};
    }
  }

  const TrialGround& ground_;
  std::mt19937_64 random_;
  const size_t last_;
};

}  // namespace

std::span<const TrialKindRow> TrialKinds() { return kKinds; }

const TrialKindRow& RowOf(TrialKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const TrialKindRow& row) { return row.kind == kind; });
}

std::vector<TrialKind> ParseTrialKinds(const std::string& text) {
  std::vector<TrialKind> kinds;
  std::string words;
  for (const TrialKindRow& row : kKinds) {
    words += (words.empty() ? "" : ", ") + std::string(row.name);
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, comma - begin);
    begin = comma + 1;
    const auto* row = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const TrialKindRow& kind) { return kind.name == word; });
    if (row == std::end(kKinds)) {
      throw Error(ErrorKind::kUsage, "'" + word + "' is no kind of trial; there are " + words);
    }
    if (std::find(kinds.begin(), kinds.end(), row->kind) == kinds.end()) {
      kinds.push_back(row->kind);
    }
  }
  return kinds;
}

std::string Trial::Describe(const script::MixedStep& mixed,
                            const analyzer::Program& program) const {
  const auto name = [&](size_t match) {
    return std::to_string(program.work.steps[mixed.step_class().matches[match].step_index].step);
  };
  std::string text = "captured at step " + name(step.capture_match) + ", run at step";
  text += step.run_matches.size() > 1 ? "s " : " ";
  for (size_t i = 0; i < step.run_matches.size(); ++i) {
    text += (i == 0 ? "" : ", ") + name(step.run_matches[i]);
  }
  if (jitter != 0) text += ", jitter " + std::to_string(jitter);
  if (ahead != 0) text += ", " + std::to_string(ahead) + " streams ahead in turn";
  return text;
}

std::string WhyNone(TrialKind kind, const TrialGround& ground) {
  switch (kind) {
    case TrialKind::kAlone:
      return ground.graphs.size() > 1 ? "" : "there is one graph only";
    case TrialKind::kAhead:
      return ground.streams > 1 ? "" : "every graph has one stream";
    default:
      return "";
  }
}

std::vector<Trial> MakeTrials(const TrialGround& ground, const std::vector<TrialKind>& kinds,
                              int per_kind, uint64_t seed) {
  std::vector<Trial> trials;
  for (int number = 0; number < per_kind; ++number) {
    for (const TrialKind kind : kinds) {
      if (!WhyNone(kind, ground).empty()) continue;
      if (kind == TrialKind::kAlone && number >= static_cast<int>(ground.graphs.size())) continue;
      Trial trial;
      trial.kind = kind;
      trial.number = number;
      // Each trial has its own seed, so that it does not depend on which other trials are asked
      // for. A trial that needs a process gets a seed with which it is the first trial of that
      // process.
      trial.seed = seed + static_cast<uint64_t>(number);
      if (kind == TrialKind::kJitter) trial.jitter = trial.seed;
      if (kind == TrialKind::kAhead) trial.ahead = ground.streams;
      if (!trial.NeedsProcess()) {
        trial.seed = (seed * 1000003 + static_cast<uint64_t>(number)) * 31;
      }
      TrialMaker(ground, trial.seed + static_cast<uint64_t>(kind)).Fill(trial);
      trials.push_back(std::move(trial));
    }
  }
  return trials;
}

}  // namespace acltape::replayer::prove
