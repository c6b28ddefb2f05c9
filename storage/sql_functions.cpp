#include "storage/sql_functions.h"

#include <utility>

#include "storage/database.h"

namespace acltape::storage {
namespace {

using OfInteger = std::function<std::optional<int64_t>(int64_t)>;
using OfText = std::function<std::string(std::string_view)>;

template <typename Function>
void Add(Database& database, const char* name, Function function,
         void (*call)(sqlite3_context*, int, sqlite3_value**)) {
  auto* kept = new Function(std::move(function));
  const int code = sqlite3_create_function_v2(
      database.handle(), name, 1, SQLITE_UTF8, kept, call, nullptr, nullptr,
      [](void* function) { delete static_cast<Function*>(function); });
  if (code != SQLITE_OK) database.Fail(code, "adding a function of SQL");
}

}  // namespace

void AddIntegerFunction(Database& database, const char* name, OfInteger function) {
  Add(database, name, std::move(function),
      [](sqlite3_context* context, int, sqlite3_value** values) {
        if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
        const auto& of = *static_cast<const OfInteger*>(sqlite3_user_data(context));
        const std::optional<int64_t> result = of(sqlite3_value_int64(values[0]));
        if (result) sqlite3_result_int64(context, *result);
      });
}

void AddTextFunction(Database& database, const char* name, OfText function) {
  Add(database, name, std::move(function),
      [](sqlite3_context* context, int, sqlite3_value** values) {
        if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
        const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
        const auto bytes = static_cast<size_t>(sqlite3_value_bytes(values[0]));
        const auto& of = *static_cast<const OfText*>(sqlite3_user_data(context));
        const std::string result =
            of(text == nullptr ? std::string_view() : std::string_view(text, bytes));
        sqlite3_result_text64(context, result.data(), result.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
      });
}

}  // namespace acltape::storage
