#include "cli/choices/standard_option.h"

#include <nlohmann/json.hpp>

#include "cli/frame/options.h"

namespace acltape::cli {

void StandardOption::Declare(CLI::App& app) {
  AddOption(app, "standard", text)->capture_default_str();
}

std::shared_ptr<const analyzer::metrics::Standard> StandardOption::Load() const {
  if (bitwise()) return nullptr;
  return std::make_shared<const analyzer::metrics::Standard>(
      analyzer::metrics::Standard::Load(text));
}

nlohmann::json StandardIdentity(const analyzer::metrics::Standard& standard) {
  return {{"standard", standard.given()}, {"digest", standard.digest()}};
}

}  // namespace acltape::cli
