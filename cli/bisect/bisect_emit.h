// Hands on what a bisection found: a stand-alone reproducer of the cause.
#pragma once

#include <string>

#include "cli/terminal/table.h"
#include "replayer/bisect/bisection.h"
#include "replayer/reproducer/reproducer.h"

namespace acltape::cli {

// Writes the cause as a program, executing as few calls as still show it: the calls of the cause
// alone, then with those that read their results, then the whole step. `options` has the folder;
// title, notes, the command and the cure are taken from the cause. The last attempt's result.
replayer::reproducer::ReproducerResult EmitCause(replayer::Execution& execution,
                                                 const replayer::script::MixedStep& step,
                                                 const replayer::bisect::FoundCause& found,
                                                 replayer::reproducer::ReproducerOptions options);

// One row for each reproducer.
Table ReproducerTable(const std::vector<replayer::reproducer::ReproducerResult>& results);

}  // namespace acltape::cli
