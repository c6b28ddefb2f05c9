#include "storage/table_rows.h"

#include "storage/json_text.h"

namespace acltape::storage {
namespace {

// Sets the columns of a row whose columns are all NULL.
template <typename Row>
void Fill(Row& row, const Snapshot& snapshot, const Statistics* statistics) {
  row.template Set<"call_id">(snapshot.call_id);
  row.template Set<"position">(static_cast<int64_t>(snapshot.position));
  row.template Set<"moment">(std::string_view(snapshot.after ? "after" : "before"));
  row.template Set<"tensor_id">(snapshot.tensor.tensor_id());
  row.template Set<"digest">(std::string_view(snapshot.digest));
  row.template Set<"bytes">(snapshot.bytes);
  row.template Set<"packing">(static_cast<int64_t>(snapshot.packing));
  row.template Set<"changed">(static_cast<int64_t>(snapshot.changed));
  if (statistics == nullptr) return;
  row.template Set<"min">(statistics->min);
  row.template Set<"max">(statistics->max);
  row.template Set<"mean">(statistics->mean);
  row.template Set<"l2">(statistics->l2);
  row.template Set<"nan_count">(statistics->nan_count);
  row.template Set<"inf_count">(statistics->inf_count);
}

}  // namespace

void AddRow(RowInsert<tables::kSnapshot>& row, const Snapshot& snapshot,
            const Statistics* statistics) {
  row.Clear();
  Fill(row, snapshot, statistics);
  row.Run();
}

void AddRow(TableBatch<tables::kSnapshot>& row, const Snapshot& snapshot,
            const Statistics* statistics) {
  row.Begin();
  Fill(row, snapshot, statistics);
}

void AddRow(RowInsert<tables::kStep>& row, const Step& step) {
  row.Set<"step">(step.step);
  row.Set<"first_call">(step.first_call);
  row.Set<"last_call">(step.last_call);
  row.Set<"found_by">(step.found_by);
  row.Run();
}

void AddRow(RowInsert<tables::kLedger>& row, const LedgerEntry& entry) {
  row.Set<"kind">(entry.kind);
  row.Set<"severity">(SeverityName(entry.severity));
  row.Set<"count">(entry.count);
  row.Set<"subject">(entry.subject);
  row.Set<"cause">(entry.cause);
  row.Set<"remedy">(entry.remedy);
  row.Run();
}

void AddRow(RowInsert<tables::kLayout>& row, int64_t layout_id, const Layout& layout) {
  const std::string shape = IntegersText(layout.shape);
  const std::string strides = IntegersText(layout.strides);
  const std::string_view plain =
      (layout.flags & meaning::kTensorOpaque) != 0 ? "opaque" : "strided";
  row.Set<"layout_id">(layout_id);
  row.Set<"dtype">(DTypeName(layout.dtype));
  row.Set<"shape">(shape);
  row.Set<"strides">(strides);
  row.Set<"byte_offset">(layout.byte_offset);
  row.Set<"format">(layout.format.empty() ? plain : std::string_view(layout.format));
  row.Set<"flags">(static_cast<int64_t>(layout.flags));
  if (layout.memory.empty()) {
    row.SetNull<"memory">();
  } else {
    row.Set<"memory">(layout.memory);
  }
  row.Run();
}

}  // namespace acltape::storage
