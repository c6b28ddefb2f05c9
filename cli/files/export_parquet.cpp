#include "cli/files/export_parquet.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/environment/python_module.h"
#include "meaning/options.h"

namespace acltape::cli {

Table ExportParquet(const std::string& trace, const std::string& folder, bool overwrite) {
  std::vector<std::string> words{trace, folder};
  if (overwrite) words.emplace_back("@force"_cli);
  Table table({"view", "rows", "file"});
  RunPythonModule("acltape.to_parquet", words, "parquet files are written by Python",
                  [&](const nlohmann::json& row) {
                    table.Add({row["view"].get<std::string>(), row["rows"].get<int64_t>(),
                               row["file"].get<std::string>()});
                  });
  return table;
}

}  // namespace acltape::cli
