// A new trace made of rows of another one, perhaps with rows of its own: what trimming, packing and
// redacting are made of.
//
// The copy grows in a file beside its name and gets the name only when it is accepted. Until then,
// and when anything fails, whatever has that name stays as it was.
//
// What SQLite or a reader finds wrong with the copy is told of the source where the source has it
// too (Error kTrace). Otherwise acltape wrote something wrong: an InternalError, which never blames
// the trace.
//
//   TraceCopy copy(reader, "small.db", /*overwrite=*/false);
//   copy.CopyRows("call_row", "call_id < 100");
//   copy.Close();              // now copy.partial_path() can be opened as a trace
//   copy.Accept();
//
// Rows of several traces go into one (storage/merge.h): NextSource goes on with another one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/database.h"
#include "storage/internal_error.h"
#include "storage/new_file.h"
#include "storage/reader.h"
#include "storage/tables.h"

namespace acltape::storage {

class TraceCopy {
 public:
  // Throws as NewFile does, for a file that reads the source, and `reads`.
  TraceCopy(const Reader& source, const std::string& path, bool overwrite,
            const std::vector<std::string>& reads = {});
  ~TraceCopy();  // removes the partial file
  TraceCopy(const TraceCopy&) = delete;
  TraceCopy& operator=(const TraceCopy&) = delete;

  // Copies the rows of a table for which the SQL condition holds (empty: all), with the columns
  // that both schemas have. The new trace is the schema "main", the old one "source". A table that
  // the source does not have gives no rows. `replaced`: SQL expressions in place of columns.
  void CopyRows(std::string_view table, const std::string& condition = "",
                const std::map<std::string, std::string>& replaced = {},
                SourcePlace place = SourcePlace::Here());
  // Takes the rows that follow from another trace, which must outlive this.
  void NextSource(const Reader& source);
  // Statements on the new trace, with the source still attached. Open until Close.
  Database& database() { return *database_; }
  // Adds rows of its own to a table of the new trace.
  template <const StoredTable& kTable>
  RowInsert<kTable> Insert() {
    return RowInsert<kTable>(*database_, "INSERT INTO", "", "main.");
  }
  void SetMeta(const std::string& key, const std::string& value);
  // Content by its digest, which is returned. Stored once.
  std::string AddPayload(const void* data, size_t bytes);

  // Ends the copying: totals, indexes, and one file that any reader can open. Once.
  void Close(SourcePlace place = SourcePlace::Here());
  const std::string& partial_path() const { return file_.partial(); }
  // Opens the closed copy as a command does, and reads it with `read`. Throws what `read` throws
  // for the source, and InternalError if the source can be read and the copy cannot.
  std::unique_ptr<Reader> ReadBack(const std::function<void(const Reader& trace)>& read,
                                   SourcePlace place = SourcePlace::Here()) const;
  // Gives the closed file its name.
  void Accept();

 private:
  void Attach();
  std::vector<std::string> CommonColumns(std::string_view table);
  // Does this to the copy; says whose fault it is when it fails.
  void Written(const std::function<void()>& write, SourcePlace place);

  const Reader* source_;
  NewFile file_;
  std::unique_ptr<Database> database_;
};

}  // namespace acltape::storage
