#include "storage/arrow/row_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/internal_error.h"

namespace acltape::storage::arrow {
namespace {

// A struct of columns, which is how Arrow describes a batch of rows.
void ReleaseSchema(ArrowSchema* schema) {
  auto* children = static_cast<std::vector<ArrowSchema>*>(schema->private_data);
  for (ArrowSchema& child : *children) {
    if (child.release != nullptr) child.release(&child);
  }
  delete children;
  delete[] schema->children;
  schema->release = nullptr;
}

void ReleaseColumnSchema(ArrowSchema* schema) {
  delete[] schema->name;
  schema->release = nullptr;
}

void ReleaseBatch(ArrowArray* array) {
  auto* children = static_cast<std::vector<ArrowArray>*>(array->private_data);
  for (ArrowArray& child : *children) {
    if (child.release != nullptr) child.release(&child);
  }
  delete children;
  delete[] array->children;
  delete[] array->buffers;
  array->release = nullptr;
}

template <typename Struct>
Struct** PointersTo(std::vector<Struct>& children) {
  auto** pointers = new Struct*[children.size()];
  for (size_t i = 0; i < children.size(); ++i) pointers[i] = &children[i];
  return pointers;
}

class RowStream {
 public:
  RowStream(std::shared_ptr<const Reader> reader, const RowQuery& query,
            std::shared_ptr<int64_t> replaced_texts)
      : reader_(std::move(reader)),
        table_(query.table),
        types_(query.types),
        replaced_texts_(std::move(replaced_texts)),
        statement_(reader_->database(), query.sql),
        row_(statement_, reader_->path(), table_) {
    const auto columns = static_cast<size_t>(sqlite3_column_count(statement_.handle()));
    if (columns != types_.size())
      throw InternalError("a statement with other columns than its types");
    for (size_t i = 0; i < columns; ++i) {
      names_.emplace_back(sqlite3_column_name(statement_.handle(), static_cast<int>(i)));
    }
  }

  void Schema(ArrowSchema* out) const {
    auto* children = new std::vector<ArrowSchema>(types_.size());
    for (size_t i = 0; i < types_.size(); ++i) {
      char* name = new char[names_[i].size() + 1];
      std::memcpy(name, names_[i].c_str(), names_[i].size() + 1);
      (*children)[i] = {.format = FormatOf(types_[i]),
                        .name = name,
                        .flags = kNullable,
                        .release = ReleaseColumnSchema};
    }
    *out = {.format = "+s",
            .name = "",
            .n_children = static_cast<int64_t>(children->size()),
            .children = PointersTo(*children),
            .release = ReleaseSchema,
            .private_data = children};
  }

  // At the end, `out` is released.
  void Next(ArrowArray* out) {
    *out = {};
    if (ended_) return;
    std::vector<Column> columns;
    columns.reserve(types_.size());
    for (const ColumnType type : types_) columns.emplace_back(type, kBatchRows);
    int64_t rows = 0;
    while (rows < kBatchRows && !ended_) {
      if (!statement_.Next()) {
        ended_ = true;
        break;
      }
      ++rows;
      if (AddRow(columns) >= kBatchTextBytes) break;
    }
    if (rows == 0) return;
    auto* children = new std::vector<ArrowArray>(columns.size());
    for (size_t i = 0; i < columns.size(); ++i) {
      *replaced_texts_ += columns[i].replaced_texts();
      Column::Export(std::move(columns[i]), &(*children)[i]);
    }
    *out = {.length = rows,
            .n_buffers = 1,
            .n_children = static_cast<int64_t>(children->size()),
            .buffers = new const void* [1] { nullptr },
            .children = PointersTo(*children),
            .release = ReleaseBatch,
            .private_data = children};
  }

  // Runs `work` and keeps the sentence of what it throws.
  template <typename Work>
  int Guard(const Work& work) {
    try {
      work();
      return 0;
    } catch (const std::bad_alloc&) {
      said_ = "out of memory while reading '" + reader_->path() + "'";
      return ENOMEM;
    } catch (const Error& error) {
      said_ = error.what();
      return error.kind() == ErrorKind::kDevice ? EIO : EINVAL;
    } catch (const std::exception& error) {
      said_ = error.what();
      return EINVAL;
    }
  }

  const char* said() const { return said_.empty() ? nullptr : said_.c_str(); }

 private:
  // Returns the most bytes of text that a column has now.
  int64_t AddRow(std::vector<Column>& columns) {
    int64_t most = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
      // One look at the value serves its type too.
      sqlite3_value* value = sqlite3_column_value(statement_.handle(), static_cast<int>(i));
      const int found = sqlite3_value_type(value);
      if (found == SQLITE_NULL) {
        columns[i].AddNull();
        continue;
      }
      switch (types_[i]) {
        case ColumnType::kInteger:
          if (found != SQLITE_INTEGER) Refuse(i, "where a whole number is expected");
          columns[i].AddInteger(sqlite3_value_int64(value));
          break;
        case ColumnType::kReal:
          if (found != SQLITE_FLOAT && found != SQLITE_INTEGER) {
            Refuse(i, "where a number is expected");
          }
          columns[i].AddReal(sqlite3_value_double(value));
          break;
        case ColumnType::kText:
          if (found != SQLITE_TEXT) Refuse(i, "where a text is expected");
          columns[i].AddText(statement_.Text(static_cast<int>(i)));
          most = std::max(most, columns[i].text_bytes());
          break;
      }
    }
    return most;
  }

  [[noreturn]] void Refuse(size_t column, std::string_view why) const {
    row_.RefuseValue(static_cast<int>(column), names_[column], why);
  }

  std::shared_ptr<const Reader> reader_;
  std::string table_;
  std::vector<ColumnType> types_;
  std::shared_ptr<int64_t> replaced_texts_;
  Statement statement_;
  CheckedRow row_;
  std::vector<std::string> names_;
  std::string said_;
  bool ended_ = false;
};

RowStream& Of(ArrowArrayStream* stream) { return *static_cast<RowStream*>(stream->private_data); }

}  // namespace

void OpenRowStream(std::shared_ptr<const Reader> reader, const RowQuery& query,
                   std::shared_ptr<int64_t> replaced_texts, ArrowArrayStream* stream) {
  auto rows = std::make_unique<RowStream>(std::move(reader), query, std::move(replaced_texts));
  *stream = {
      .get_schema = [](ArrowArrayStream* of,
                       ArrowSchema* out) { return Of(of).Guard([&] { Of(of).Schema(out); }); },
      .get_next = [](ArrowArrayStream* of,
                     ArrowArray* out) { return Of(of).Guard([&] { Of(of).Next(out); }); },
      .get_last_error = [](ArrowArrayStream* of) { return Of(of).said(); },
      .release =
          [](ArrowArrayStream* of) {
            delete &Of(of);
            of->release = nullptr;
          },
      .private_data = rows.get()};
  static_cast<void>(rows.release());
}

}  // namespace acltape::storage::arrow
