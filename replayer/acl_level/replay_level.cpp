#include "replayer/acl_level/replay_level.h"

#include "analyzer/calls/level.h"
#include "meaning/options.h"
#include "replayer/acl_level/acl_replay.h"

namespace acltape::replayer::acl_level {

ReplayReport Replay(const storage::Reader& trace, const ReplayOptions& options,
                    storage::Results* results) {
  const bool as_leaves = analyzer::ChooseLevel(trace) == analyzer::Level::kAten ||
                         options.streams == Streams::kLeaves || options.plan != nullptr ||
                         options.repetitions > 1 || options.noise_runs > 0 ||
                         options.inputs == Inputs::kGolden;
  if (!options.edits.empty() && (as_leaves || options.streams == Streams::kFlat)) {
    throw Error(ErrorKind::kUsage,
                "the waits of findings are added to the streams of the program: @edit goes with "
                "calls of the ACL level and @streams recorded, without a plan, golden inputs, "
                "repetitions or noise runs"_cli);
  }
  if (as_leaves && options.streams == Streams::kFlat) {
    throw Error(
        ErrorKind::kUsage,
        "@streams flat issues the calls of a program of the ACL level on one stream; leave "
        "it out for leaves of PyTorch, a plan, golden inputs, repetitions and noise runs"_cli);
  }
  return as_leaves ? ReplayLeaves(trace, options, results) : ReplayAcl(trace, options, results);
}

}  // namespace acltape::replayer::acl_level
