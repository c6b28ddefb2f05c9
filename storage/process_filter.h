// SQL that picks the rows of one process. The number of the process is a parameter:
//
//   const ProcessFilter filter(reader.process());
//   Statement rows(database, "SELECT * FROM call_row WHERE " + filter.OfThread("thread_id"));
//   filter.Bind(rows);
#pragma once

#include <cstdint>
#include <string>

#include "storage/database.h"

namespace acltape::storage {

class ProcessFilter {
 public:
  // 0: the conditions hold for every row.
  explicit ProcessFilter(int64_t process) : process_(process) {}

  bool all() const { return process_ == 0; }
  // A condition for rows with a column process_id.
  std::string OfProcess() const { return all() ? "1" : "process_id = :process"; }
  // A condition for rows of which `column` names a thread.
  std::string OfThread(const std::string& column) const {
    return all() ? "1" : column + " IN (SELECT thread_id FROM thread WHERE process_id = :process)";
  }
  // Gives the parameter its value. A statement without the parameter stays as it is.
  void Bind(Statement& statement) const {
    const int parameter = sqlite3_bind_parameter_index(statement.handle(), ":process");
    if (parameter != 0) statement.Bind(parameter, process_);
  }

 private:
  int64_t process_;
};

}  // namespace acltape::storage
