#include "storage/arrow/column.h"

#include <array>
#include <memory>
#include <utility>

#include "storage/utf8.h"

namespace acltape::storage::arrow {
namespace {

// An exported column keeps this alive until its reader releases it.
struct Exported {
  explicit Exported(Column moved) : column(std::move(moved)) {}
  Column column;
  std::array<const void*, 3> buffers = {};
};

void Release(ArrowArray* array) {
  delete static_cast<Exported*>(array->private_data);
  array->release = nullptr;
}

}  // namespace

const char* FormatOf(ColumnType type) {
  switch (type) {
    case ColumnType::kInteger:
      return "l";
    case ColumnType::kReal:
      return "g";
    case ColumnType::kText:
      return "u";
  }
  return nullptr;
}

Column::Column(ColumnType type, int64_t rows_at_most)
    : type_(type), bits_(std::make_unique<uint8_t[]>(static_cast<size_t>(rows_at_most / 8 + 1))) {
  const auto rows = static_cast<size_t>(rows_at_most);
  if (type == ColumnType::kText) {
    ends_ = std::make_unique_for_overwrite<int32_t[]>(rows + 1);
    ends_[0] = 0;
  } else {
    values_ = std::make_unique_for_overwrite<uint64_t[]>(rows);
  }
}

void Column::AddNull() {
  ++nulls_;
  if (type_ == ColumnType::kText) {
    ends_[++rows_] = static_cast<int32_t>(text_.size());
  } else {
    values_[rows_++] = 0;
  }
}

void Column::AddText(std::string_view text) {
  SetBit();
  if (IsUtf8(text)) {
    text_.append(text);
  } else {
    ++replaced_texts_;
    text_ += AsUtf8(text);
  }
  ends_[++rows_] = static_cast<int32_t>(text_.size());
}

void Column::Export(Column column, ArrowArray* array) {
  auto exported = std::make_unique<Exported>(std::move(column));
  const Column& kept = exported->column;
  const bool text = kept.type_ == ColumnType::kText;
  exported->buffers[0] = kept.nulls_ == 0 ? nullptr : kept.bits_.get();
  exported->buffers[1] = text ? static_cast<const void*>(kept.ends_.get()) : kept.values_.get();
  exported->buffers[2] = kept.text_.data();
  *array = {.length = static_cast<int64_t>(kept.rows_),
            .null_count = kept.nulls_,
            .n_buffers = text ? 3 : 2,
            .buffers = exported->buffers.data(),
            .release = Release,
            .private_data = exported.get()};
  static_cast<void>(exported.release());
}

}  // namespace acltape::storage::arrow
