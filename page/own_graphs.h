// The graphs that the program captured itself, with their executions, updates and inputs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "storage/reader.h"

namespace acltape::page {

// {"graphs": [...], "operator_lists": N, "most_alive": N, "most_streams": N}; the numbers are those
// of `acltape captures`. "graphs" is empty if the program captured nothing.
nlohmann::json OwnGraphsOf(const storage::Reader& trace);

// Marks what of a plan's step (page/plan_view.h) the program captures itself, to which a plan adds
// nothing: "own_graph" of a region whose operators are those of a graph. Such a region is the run
// that warms up before the capture. The count "in_own_graphs" then holds its calls too.
void MarkOwnGraphs(const nlohmann::json& own, nlohmann::json& plan);

}  // namespace acltape::page
