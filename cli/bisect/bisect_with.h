// Gives each kind of bisection the journal and the limits that the command line asks for.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "replayer/bisect/bisection.h"

namespace acltape::cli {

// The bisection itself.
using BisectBody = std::function<replayer::bisect::BisectionReport(
    replayer::bisect::Journal*, const replayer::bisect::BisectionOptions&)>;
// Makes it with them. The first argument is what outcomes depend on.
using BisectWith = std::function<replayer::bisect::BisectionReport(const nlohmann::json& identity,
                                                                   const BisectBody& body)>;

}  // namespace acltape::cli
