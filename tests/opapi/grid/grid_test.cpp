// Every operator of the grid against libtorch's own, bit by bit unless its row says how far and
// why.
#include <algorithm>
#include <map>
#include <set>

#include "tests/opapi/grid/check.h"
#include "tests/opapi/grid/first_operators.h"

extern "C" int SoftOperatorHasKernel(const char* name);

namespace acltape::opapi::grid {
namespace {

// Each row runs once, whether its own test or the coverage asks for it.
const Outcome& OutcomeOf(const Row& row) {
  static std::map<std::string, Outcome> outcomes;
  const auto found = outcomes.find(row.op);
  return found != outcomes.end() ? found->second : outcomes[row.op] = Run(row);
}

class Grid : public testing::TestWithParam<std::string> {};

TEST_P(Grid, EqualsTheLibrary) {
  for (const Row& row : AllRows()) {
    if (row.op != GetParam()) continue;
    const Outcome& outcome = OutcomeOf(row);
    EXPECT_GT(outcome.cases, 0) << row.op << " was not compared at all";
    constexpr size_t kShown = 5;
    for (size_t i = 0; i < std::min(kShown, outcome.failures.size()); ++i) {
      ADD_FAILURE() << outcome.failures[i];
    }
    if (outcome.failures.size() > kShown) {
      ADD_FAILURE() << row.op << ": " << outcome.failures.size() << " failures in all";
    }
  }
}

std::vector<std::string> Names() {
  std::set<std::string> names;
  for (const Row& row : AllRows()) names.insert(row.op);
  return {names.begin(), names.end()};
}

INSTANTIATE_TEST_SUITE_P(Operators, Grid, testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += " " + name;
  return text;
}

TEST(GridCoverage, HasAtLeast80OperatorsAnd4000Cases) {
  int cases = 0, refusals = 0;
  std::set<std::string> compared;
  for (const Row& row : AllRows()) {
    const Outcome& outcome = OutcomeOf(row);
    cases += outcome.cases;
    refusals += outcome.refusals;
    if (outcome.cases > 0) compared.insert(row.op);
  }
  std::vector<std::string> outside;
  int kernels = 0;
  for (uint32_t i = 0; i < acl::OperatorCount(); ++i) {
    const std::string name(acl::OperatorAt(i).name);
    if (SoftOperatorHasKernel(name.c_str()) == 0) continue;
    ++kernels;
    if (compared.count(name) == 0) outside.push_back(name);
  }
  std::printf(
      "operators compared with libtorch: %zu of %d with a kernel; cases: %d; refused by "
      "both: %d\n",
      compared.size(), kernels, cases, refusals);
  std::printf("kernels outside of the grid:%s\n", Listed(outside).c_str());
  EXPECT_GE(compared.size(), 80u);
  EXPECT_GE(cases, 4000);
}

// The table of docs/soft_device.md: print it with --gtest_filter='GridErrors.*'.
TEST(GridErrors, AreWithinTheirTypeByFamily) {
  struct Sum {
    int operators = 0, cases = 0;
    double single = 0, half = 0, other = 0;  // greatest errors: float32, halves, float64
  };
  std::map<std::string, Sum> families;
  std::set<std::string> counted;
  for (const Row& row : AllRows()) {
    const Outcome& outcome = OutcomeOf(row);
    Sum& sum = families[FamilyOfOperator().at(row.op)];
    sum.operators += counted.insert(row.op).second ? 1 : 0;
    sum.cases += outcome.cases;
    for (const auto& [dtype, error] : outcome.errors) {
      double& greatest = dtype == at::kFloat    ? sum.single
                         : dtype == at::kDouble ? sum.other
                                                : sum.half;
      greatest = std::max(greatest, error);
    }
  }
  std::printf("| family | operators | cases | float32 | float16, bfloat16 | float64 |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const auto& [name, sum] : families) {
    std::printf("| %s | %d | %d | %.1e | %.1e | %.1e |\n", name.c_str(), sum.operators, sum.cases,
                sum.single, sum.half, sum.other);
    EXPECT_LT(sum.single, 1e-4) << name;
    EXPECT_LT(sum.half, 1.6e-2) << name;
    EXPECT_LT(sum.other, 1e-4) << name;
  }
}

TEST(GridCoverage, HoldsTheOperatorsThatProgramsNeedFirst) {
  std::set<std::string> rows;
  for (const Row& row : AllRows()) rows.insert(row.op);
  std::map<std::string, std::string> exceptions;
  for (const auto& [name, reason] : kOutsideOfTheGrid) exceptions[name] = reason;
  for (const char* name : kFirstOperators) {
    const bool kernel = SoftOperatorHasKernel(name) != 0, row = rows.count(name) > 0;
    const auto exception = exceptions.find(name);
    if (exception == exceptions.end()) {
      EXPECT_TRUE(kernel) << name << " has no kernel";
      EXPECT_TRUE(row) << name << " is not in the grid";
    } else {
      EXPECT_FALSE(kernel && row) << name << " is no exception any more: " << exception->second;
      exceptions.erase(exception);
    }
  }
  for (const auto& [name, reason] : exceptions) {
    ADD_FAILURE() << name << " is an exception but none of the first operators: " << reason;
  }
}

}  // namespace
}  // namespace acltape::opapi::grid
