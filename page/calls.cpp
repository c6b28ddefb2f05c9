#include "page/calls.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>

#include "meaning/recorded_values.h"
#include "page/rows.h"
#include "page/signatures.h"
#include "storage/columns.h"
#include "storage/database.h"
#include "storage/device_spans.h"
#include "storage/process_filter.h"

namespace acltape::page {
namespace {

using storage::Statement;

// Bits of the column "calls.bits" beside those of a trace (meaning/recorded_values.h).
constexpr int64_t kFailedBit = 8;
constexpr int64_t kMostCallsForOrigins = 200000;  // the view is not made for longer traces
constexpr int64_t kForwardPlaceBit = 16;          // the line is that of the forward leaf

// The line of the program for each call, read in order of call_id beside the calls.
class Places {
 public:
  explicit Places(const storage::Reader& trace) {
    storage::Database& database = trace.database();
    // Without frames the views would look at every call for nothing.
    if (database.Integer("SELECT EXISTS (SELECT 1 FROM stack)") == 0) return;
    if (storage::HasColumns(trace, "call_location", "call_id,file,line,function,via")) {
      rows_.emplace(database,
                    "SELECT call_id, file, line, function, via FROM call_location "
                    "WHERE file IS NOT NULL ORDER BY call_id");
    } else if (trace.CallCount(false) <= kMostCallsForOrigins &&
               storage::HasColumns(trace, "device_call_origin",
                                   "call_id,file,line,function,phase")) {
      rows_.emplace(database,
                    "SELECT call_id, file, line, function, "
                    "iif(phase = 'backward', 'forward', 'own') FROM device_call_origin "
                    "WHERE file IS NOT NULL ORDER BY call_id");
    } else {
      rows_.emplace(database,
                    "SELECT c.call_id, json_extract(k.frames, '$[0].file'), "
                    "json_extract(k.frames, '$[0].line'), json_extract(k.frames, '$[0].function'), "
                    "'own' FROM call c CROSS JOIN stack k ON k.stack_id = c.stack_id "
                    "WHERE json_extract(k.frames, '$[0].file') IS NOT NULL ORDER BY c.call_id");
    }
    Advance();
  }

  struct Found {
    int64_t number = 0;  // on the page; 0: none is known
    bool of_forward = false;
  };
  // Calls must be asked for in ascending order.
  Found Of(int64_t call_id) {
    while (more_ && rows_->Integer(0) < call_id) Advance();
    if (!more_ || rows_->Integer(0) != call_id) return {};
    const auto key = std::make_tuple(std::string(rows_->Text(1)), rows_->Integer(2),
                                     std::string(rows_->Text(3)));
    const auto [place, added] = numbers_.emplace(key, static_cast<int64_t>(places_.size()) + 1);
    if (added) places_.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key)});
    return {place->second, rows_->Text(4) == "forward"};
  }
  const nlohmann::json& Json() const { return places_; }

 private:
  void Advance() { more_ = rows_ && rows_->Next(); }

  std::optional<Statement> rows_;
  bool more_ = false;
  std::map<std::tuple<std::string, int64_t, std::string>, int64_t> numbers_;
  nlohmann::json places_ = nlohmann::json::array();
};

// Times that the program spent in its ranges and modules.
void WriteRanges(const storage::Reader& trace, int64_t last_call, Document& page) {
  page.AddJson("scopes", TextOf(RowsOf(trace,
                                       "SELECT scope_id, parent_id, kind, name, path "
                                       "FROM scope ORDER BY scope_id")));
  Column scope(Column::Coding::kPlain), thread(Column::Coding::kPlain);
  Column begin(Column::Coding::kDifference), duration(Column::Coding::kPlain);
  const storage::ProcessFilter filter(trace.process());
  Statement rows(trace.database(),
                 fmt::format("SELECT scope_id, thread_id, begin_ns, end_ns - begin_ns "
                             "FROM scope_range WHERE first_call <= ?1 AND end_ns >= begin_ns "
                             "AND {} ORDER BY begin_ns, end_ns DESC",
                             filter.OfThread("thread_id")));
  rows.Bind(1, last_call);
  filter.Bind(rows);
  while (rows.Next()) {
    scope.Add(rows.Integer(0));
    thread.Add(rows.Integer(1));
    begin.Add(rows.Integer(2));
    duration.Add(rows.Integer(3));
  }
  page.AddColumn("ranges.scope", scope);
  page.AddColumn("ranges.thread", thread);
  page.AddColumn("ranges.begin", begin);
  page.AddColumn("ranges.duration", duration);
}

// The work that the device did for the calls, in traces that have its times.
void WriteDeviceSpans(const storage::Reader& trace, int64_t last_call, Document& page) {
  if (!storage::HasDeviceSpans(trace)) return;
  Column call(Column::Coding::kDifference), stream(Column::Coding::kPlain);
  Column begin(Column::Coding::kDifference), duration(Column::Coding::kPlain);
  const storage::ProcessFilter filter(trace.process());
  Statement rows(trace.database(),
                 fmt::format("SELECT d.call_id, d.stream_id, d.begin_ns, d.end_ns - d.begin_ns "
                             "FROM device_span d JOIN call_row c ON c.call_id = d.call_id "
                             "WHERE d.call_id <= ?1 AND {} ORDER BY d.begin_ns",
                             filter.OfThread("c.thread_id")));
  rows.Bind(1, last_call);
  filter.Bind(rows);
  while (rows.Next()) {
    call.Add(rows.Integer(0));
    stream.Add(rows.Integer(1));
    begin.Add(rows.Integer(2));
    duration.Add(rows.Integer(3));
  }
  page.AddColumn("device.call", call);
  page.AddColumn("device.stream", stream);
  page.AddColumn("device.begin", begin);
  page.AddColumn("device.duration", duration);
}

}  // namespace

CallsWritten WriteCalls(const storage::Reader& trace, int64_t most, Document& page,
                        const std::function<void(int64_t, int64_t)>& progress) {
  CallsWritten written;
  storage::Database& database = trace.database();
  const storage::ProcessFilter filter(trace.process());
  const std::string chosen = filter.OfThread("c.thread_id");
  {
    Statement count(database, "SELECT count(*) FROM call_row c WHERE " + chosen);
    filter.Bind(count);
    if (count.Next()) written.all = count.Integer(0);
  }
  // Traces of older schemas do not know forward calls.
  const bool forward_known = storage::HasColumns(trace, "call_extra", "forward_call");
  Statement rows(
      database,
      fmt::format("SELECT c.call_id, ifnull(c.parent_id, 0), c.thread_id, ifnull(c.scope_id, 0), "
                  "c.bits, c.begin_ns, ifnull(c.duration_ns, 0), c.signature_id, s.op_id, "
                  "ifnull(x.stream_id, 0), ifnull(x.status, 0), {} "
                  "FROM call_row c CROSS JOIN signature s ON s.signature_id = c.signature_id "
                  "LEFT JOIN call_extra x ON x.call_id = c.call_id WHERE {} ORDER BY c.call_id",
                  forward_known ? "ifnull(x.forward_call, 0)" : "0", chosen));
  filter.Bind(rows);
  const int64_t base_ns = std::stoll(trace.Meta("base_ns", "0"));
  Column id(Column::Coding::kDifference), parent(Column::Coding::kPlain);
  Column thread(Column::Coding::kPlain), scope(Column::Coding::kDifference);
  Column bits(Column::Coding::kPlain), begin(Column::Coding::kDifference);
  Column duration(Column::Coding::kPlain), signature(Column::Coding::kPlain);
  Column stream(Column::Coding::kPlain), forward(Column::Coding::kPlain);
  Column place(Column::Coding::kDifference);
  Signatures signatures(trace);
  Places places(trace);
  int64_t last_call = 0;
  while (written.shown < most && rows.Next()) {
    const int64_t call_id = rows.Integer(0);
    const Places::Found found = places.Of(call_id);
    last_call = call_id;
    id.Add(call_id);
    // How far back the enclosing call lies; 0: there is none.
    parent.Add(rows.Integer(1) == 0 ? 0 : call_id - rows.Integer(1));
    thread.Add(rows.Integer(2));
    scope.Add(rows.Integer(3));
    bits.Add((rows.Integer(4) & (meaning::kPhaseBits | meaning::kLeafBit)) |
             (rows.Integer(10) != 0 ? kFailedBit : 0) | (found.of_forward ? kForwardPlaceBit : 0));
    begin.Add(base_ns + rows.Integer(5));
    duration.Add(std::max<int64_t>(rows.Integer(6), 0));
    signature.Add(signatures.NumberOf(rows.Integer(7), rows.Integer(8)));
    stream.Add(rows.Integer(9));
    const int64_t gradient_of = rows.Integer(11);
    forward.Add(gradient_of > 0 && gradient_of < call_id ? call_id - gradient_of : 0);
    place.Add(found.number);
    ++written.shown;
    if (progress && written.shown % 4096 == 0) progress(written.shown, written.all);
  }
  page.AddColumn("calls.id", id);
  page.AddColumn("calls.parent", parent);
  page.AddColumn("calls.thread", thread);
  page.AddColumn("calls.scope", scope);
  page.AddColumn("calls.bits", bits);
  page.AddColumn("calls.begin", begin);
  page.AddColumn("calls.duration", duration);
  page.AddColumn("calls.signature", signature);
  page.AddColumn("calls.stream", stream);
  page.AddColumn("calls.forward", forward);
  page.AddColumn("calls.place", place);
  page.AddJson("signatures", signatures.Json());
  page.AddJson("places", TextOf(places.Json()));
  WriteRanges(trace, last_call, page);
  WriteDeviceSpans(trace, last_call, page);
  return written;
}

}  // namespace acltape::page
