#include "cli/standard_option.h"

#include <nlohmann/json.hpp>

namespace acltape::cli {

void StandardOption::Declare(CLI::App& app) {
  app.add_option("--standard", text,
                 "What may differ: bitwise, a name that `acltape standards` lists, or a file")
      ->capture_default_str();
}

std::shared_ptr<const analyzer::Standard> StandardOption::Load() const {
  if (bitwise()) return nullptr;
  return std::make_shared<const analyzer::Standard>(analyzer::Standard::Load(text));
}

nlohmann::json StandardIdentity(const analyzer::Standard& standard) {
  return {{"standard", standard.given()}, {"digest", standard.digest()}};
}

}  // namespace acltape::cli
