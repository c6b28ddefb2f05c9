#include "storage/statistics.h"

#include "storage/database.h"

namespace acltape::storage {

std::map<SnapshotKey, Statistics> LoadStatistics(const Reader& reader) {
  std::map<SnapshotKey, Statistics> all;
  Statement rows(reader.database(),
                 "SELECT call_id, position, moment = 'after', tensor_id, min, max, mean, l2, "
                 "nan_count, inf_count FROM snapshot WHERE mean IS NOT NULL");
  while (rows.Next()) {
    const int64_t tensor = rows.Integer(3);
    Statistics& row =
        all[{rows.Integer(0), static_cast<int>(rows.Integer(1)), rows.Integer(2) != 0, tensor}];
    row.dtype = reader.GetLayout(tensor & 0xffffff).dtype;
    row.min = rows.Real(4);
    row.max = rows.Real(5);
    row.mean = rows.Real(6);
    row.l2 = rows.Real(7);
    row.nan_count = rows.Integer(8);
    row.inf_count = rows.Integer(9);
  }
  return all;
}

}  // namespace acltape::storage
