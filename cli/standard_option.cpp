#include "cli/standard_option.h"

#include <nlohmann/json.hpp>

#include "cli/options.h"

namespace acltape::cli {

void StandardOption::Declare(CLI::App& app) {
  AddOption(app, "standard", text)->capture_default_str();
}

std::shared_ptr<const analyzer::Standard> StandardOption::Load() const {
  if (bitwise()) return nullptr;
  return std::make_shared<const analyzer::Standard>(analyzer::Standard::Load(text));
}

nlohmann::json StandardIdentity(const analyzer::Standard& standard) {
  return {{"standard", standard.given()}, {"digest", standard.digest()}};
}

}  // namespace acltape::cli
