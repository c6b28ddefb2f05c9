#include "cli/tables/ledger_words.h"

#include <string_view>

#include "cli/terminal/table.h"

namespace acltape::cli {

LedgerWords WordsOf(const storage::LedgerEntry& entry) {
  constexpr std::string_view kUnit = "microseconds ";
  if (!entry.cause.starts_with(kUnit)) return {false, std::to_string(entry.count), entry.cause};
  return {true, HumanNs(1e3 * static_cast<double>(entry.count)),
          "time " + entry.cause.substr(kUnit.size())};
}

}  // namespace acltape::cli
