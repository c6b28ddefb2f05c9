// Runs a module of the Python package `acltape`: parts of commands that are written in Python.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace acltape::cli {

// Runs main() of a module, such as "acltape.to_parquet", with these words as its arguments, by the
// interpreter that ACLTAPE_PYTHON names, else by python3 of PATH. Each line of output that is a
// JSON object goes to `take`.
//
// `purpose` begins the message where there is no Python: "parquet files are written by Python".
// Throws Error with what the module said last when it fails; the kind is its exit code. Throws
// Error when there is no interpreter.
void RunPythonModule(const std::string& module, const std::vector<std::string>& words,
                     const std::string& purpose,
                     const std::function<void(const nlohmann::json&)>& take);

}  // namespace acltape::cli
