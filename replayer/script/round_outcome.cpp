#include "replayer/script/round_outcome.h"

#include <nlohmann/json.hpp>
#include <set>

namespace acltape::replayer::script {

Outcome OutcomeOfRounds(const std::string& expected, const std::vector<std::string>& rounds) {
  Outcome outcome;
  std::set<std::string> seen;
  for (const std::string& digest : rounds) {
    ++outcome.executions;
    if (digest != expected) {
      ++outcome.bad_executions;
      if (outcome.fingerprint.empty()) outcome.fingerprint = digest;
    }
    seen.insert(digest);
  }
  outcome.verdict = outcome.bad_executions == 0 ? Outcome::Verdict::kGood
                    : seen.size() > 1           ? Outcome::Verdict::kUnstable
                                                : Outcome::Verdict::kBad;
  return outcome;
}

Outcome NothingCompared() {
  Outcome outcome;
  outcome.verdict = Outcome::Verdict::kCannotJudge;
  outcome.executions = 1;
  outcome.evidence =
      nlohmann::json{{"error",
                      "nothing was compared: no result of the executed calls is used after the "
                      "step or read by the host; record a program whose steps leave a result"}}
          .dump();
  return outcome;
}

void AddMetrics(const analyzer::metrics::TensorMetrics& compared, nlohmann::json& evidence) {
  evidence.update({{"elements", compared.elements},
                   {"differing", compared.differing},
                   {"first_index", compared.first_index},
                   {"expected", compared.first_a},
                   {"actual", compared.first_b},
                   {"max_abs", compared.max_abs},
                   {"max_ulp", compared.max_ulp}});
}

}  // namespace acltape::replayer::script
