// Compares the results of the device with a reference: the recorded results, or the results of an
// earlier eager run of the same replay.
//
// Results are copied to pinned memory in stream order and compared in batches, so that the host
// need not wait for each leaf.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "replayer/device/device.h"
#include "replayer/values/comparison_log.h"
#include "replayer/values/contents.h"
#include "replayer/values/noise_floor.h"
#include "replayer/values/replay_options.h"
#include "replayer/values/replay_report.h"

namespace acltape::replayer {

class Verifier {
 public:
  // Digests of results, by leaf index and index in LeafUses::writes.
  using Digests = std::map<std::pair<int64_t, int>, std::string>;

  Verifier(Device& device, const analyzer::Program& program, Contents& contents,
           const ReplayOptions& options, ReplayReport& report);

  // Writes rows of the table `comparison` to `results` under `run_id`.
  void WriteTo(storage::Results* results, int64_t run_id);
  // With `collect`, collects digests instead of comparing. With `reference`, compares leaves that
  // have no recorded result with these digests. Both may be null.
  void UseDigests(Digests* collect, const Digests* reference);

  // With `learn`, learns the noise from results instead of comparing them. With `ask`, asks for
  // each result that differs if the difference is noise. Both may be null.
  void UseNoise(NoiseFloor* learn, NoiseFloor* ask);

  // True if the option `outputs` asks for this write of this leaf.
  bool Wants(int64_t leaf, int write) const;
  // Copies the result at `address` (element 0 of the written tensor) to the host, in stream order.
  void Take(int64_t leaf, int write, const uint8_t* address);
  // Copies the value that a host read brings back.
  void TakeHostRead(int64_t leaf, const uint8_t* address);
  // Waits for the stream and compares all results taken so far.
  void Flush();

 private:
  struct Pending {
    int64_t leaf = 0;
    int write = 0;  // -1: a host read
    size_t offset = 0;
    size_t bytes = 0;
  };
  void Stage(Pending pending, const uint8_t* address);
  void Check(const Pending& pending, const uint8_t* bytes);
  void CheckHostRead(const Pending& pending, const uint8_t* bytes);
  void CheckCopyToHost(const analyzer::Leaf& leaf, const uint8_t* bytes);
  // A result that is different unless the difference is noise. It is judged later.
  struct Deferred {
    int64_t leaf = 0;
    int write = 0;
    std::string digest;
    const storage::Argument* argument = nullptr;
    std::string reference;
    ComparisonOutcome outcome;
  };
  void Drain();
  void Defer(const Pending& pending, const std::string& digest, const storage::Argument& argument,
             const std::string& reference, ComparisonOutcome outcome);
  void JudgeDeferred();
  void Note(const analyzer::Leaf& leaf, int position, const std::string& name,
            const std::string& reference, const ComparisonOutcome& outcome);
  bool LeavesStep(int64_t leaf, const analyzer::TensorUse& use) const;

  Device& device_;
  const analyzer::Program& program_;
  Contents& contents_;
  const ReplayOptions& options_;
  ReplayReport& report_;
  ComparisonLog log_;
  Digests* collect_ = nullptr;
  const Digests* reference_ = nullptr;
  NoiseFloor* learn_ = nullptr;
  NoiseFloor* ask_ = nullptr;
  Block staging_;
  size_t staged_ = 0;
  std::vector<Pending> pending_;
  std::vector<Deferred> deferred_;  // used only with a noise floor
};

}  // namespace acltape::replayer
