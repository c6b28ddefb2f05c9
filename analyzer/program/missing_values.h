// The advice for who needs a recorded value that a program lacks.
#pragma once

#include <cstdint>
#include <string>

#include "analyzer/program/program.h"

namespace acltape::analyzer {

// How to have the recorded result of a leaf: another level of the trace that works without it, or
// what to record. Of what a graph of the program holds no recording keeps more than the last
// results. No full stop.
std::string HowToHaveResult(const Program& program, int64_t leaf);

// The same for a program of which no result is recorded at all.
std::string HowToHaveResults(const Program& program);

}  // namespace acltape::analyzer
