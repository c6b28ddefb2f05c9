// Functions of our own in the SQL of a connection.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace acltape::storage {

class Database;

// Adds a function of one integer: SELECT new_call(call_id). NULL gives NULL; any other value that
// is no integer is taken as SQLite converts it. `function` returns nothing for NULL; it throws
// nothing, and lives as long as the connection.
void AddIntegerFunction(Database& database, const char* name,
                        std::function<std::optional<int64_t>(int64_t)> function);

// Adds a function of one text, which gives a text. NULL gives NULL.
void AddTextFunction(Database& database, const char* name,
                     std::function<std::string(std::string_view)> function);

}  // namespace acltape::storage
