// A row of a diff in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/diff/diff.h"
#include "analyzer/program/source_lines.h"

namespace acltape::cli {

// "812 815"
std::string CallsText(const std::vector<int64_t>& calls);
// "call 812 aten::mm of A, call 815 of B".
std::string Place(const analyzer::diff::DiffRow& row);
// The line of the last of the calls; empty: there are none, or it is not known.
std::string LineOf(const std::vector<int64_t>& calls, const analyzer::SourceLines& lines);
// The line of the row in A, or else in B.
std::string LineOf(const analyzer::diff::DiffRow& row, const analyzer::SourceLines& of_a,
                   const analyzer::SourceLines& of_b);
// "out: 3 of 64 elements have other bits".
std::string WithOutput(const analyzer::diff::DiffRow& row);

}  // namespace acltape::cli
