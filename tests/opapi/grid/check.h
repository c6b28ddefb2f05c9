// Runs the rows of the operator grid and compares.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {

struct Outcome {
  int cases = 0;                      // calls whose results were compared
  int refusals = 0;                   // calls that the library refuses, and phase one too
  std::vector<std::string> failures;  // with what is needed to repeat them
  // The greatest distance of an element from the library's, in parts of the greatest magnitude in
  // its tensor, by the dtype of the results.
  std::map<at::ScalarType, double> errors;
  // The greatest of them all, those of integers and complex numbers included; infinite where one
  // side is infinite or no number and the other is not; -1 where nothing was compared.
  double distance = -1;
};

// Tries all inputs of the row.
Outcome Run(const Row& row);

// The arguments of a call with these inputs, and with outputs as the library gives them. Empty
// where the library refuses the inputs.
Args CallOf(const Row& row, const Args& inputs);
// Makes this call and compares what it writes with the library's results.
Outcome RunOn(const Row& row, const Args& inputs);

// The rows of all families, and those of the in-place forms that follow from them.
const Rows& AllRows();
// The name of the family of each operator with a row.
const std::map<std::string, std::string>& FamilyOfOperator();

// The arguments of the row's calls that the library accepts, outputs included, of the first dtype
// that has any.
std::vector<Args> ValidCalls(const Row& row);
// The first of them; empty when there is none.
Args ValidCall(const Row& row);

}  // namespace acltape::opapi::grid
