#include "analyzer/diff/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/value_text.h"
#include "analyzer/program/acl_leaves.h"
#include "storage/packing.h"

namespace acltape::analyzer::diff {
namespace {

using storage::DType;
using storage::Layout;
using storage::Snapshot;

// Two recordings of one program are comparable bit for bit if these properties are equal.
constexpr const char* kEnvironment[] = {"torch_version", "torch_threads", "blas_threads", "cpu",
                                        "device"};

// The relative difference of recorded statistics from which msprobe calls an operator the first
// that differs (precision standards, "msprobe first difference").
constexpr double kStatisticsThreshold = 0.5;

// True if equal packed bytes mean equal tensors.
bool SameOrder(const Layout& a, int a_packing, const Layout& b, int b_packing) {
  const bool a_rows = a_packing == 1 || IsRowMajor(a);
  const bool b_rows = b_packing == 1 || IsRowMajor(b);
  return (a_rows && b_rows) || (a.shape == b.shape && a.strides == b.strides);
}

// The elements of a layout in row-major order. `from` is the index of its first element in
// `packed`.
std::vector<uint8_t> ToRowMajor(const Layout& layout, const std::vector<uint8_t>& packed,
                                int64_t from) {
  const int64_t size = storage::DTypeBytes(layout.dtype);
  const int64_t count = layout.ElementCount();
  std::vector<uint8_t> rows(static_cast<size_t>(count * size));
  std::vector<int64_t> index(layout.shape.size());
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(rows.data() + i * size, packed.data() + from * size, static_cast<size_t>(size));
    for (size_t d = layout.shape.size(); d-- > 0;) {
      from += layout.strides[d];
      if (++index[d] < layout.shape[d]) break;
      from -= layout.strides[d] * layout.shape[d];
      index[d] = 0;
    }
  }
  return rows;
}

bool IsFloating(DType type) {
  return type == DType::kFloat16 || type == DType::kBfloat16 || type == DType::kFloat32 ||
         type == DType::kFloat64;
}

int DigitsOf(DType type) {  // bits of the significand
  switch (type) {
    case DType::kBfloat16:
      return 8;
    case DType::kFloat16:
      return 11;
    case DType::kFloat32:
      return 24;
    default:
      return 53;
  }
}

int Rank(DiffVerdict verdict) {  // a higher rank is worse
  constexpr int kRanks[] = {1, 2, 3, 0};
  return kRanks[static_cast<size_t>(verdict)];
}

void Worsen(ValueDifference& worst, ValueDifference other) {
  const double error = std::max(worst.error, other.error);
  const DType rounded = CoarsestType(other.rounded, worst.rounded);
  if (Rank(other.verdict) > Rank(worst.verdict) ||
      (other.verdict == worst.verdict && other.error > worst.error)) {
    worst = std::move(other);
  }
  worst.error = error;
  worst.rounded = rounded;
}

}  // namespace

DType CoarsestType(DType a, DType b) { return DigitsOf(a) <= DigitsOf(b) ? a : b; }

double RoundingOf(DType type) { return std::ldexp(1.0, -DigitsOf(type)); }

std::string_view DiffVerdictName(DiffVerdict verdict) {
  using Verdict = metrics::Judgement::Verdict;
  switch (verdict) {
    case DiffVerdict::kEqual:
      return metrics::VerdictName(Verdict::kEqual);
    case DiffVerdict::kWithin:
      return metrics::VerdictName(Verdict::kWithin);
    case DiffVerdict::kDifferent:
      return metrics::VerdictName(Verdict::kDifferent);
    case DiffVerdict::kNotComparable:
      break;
  }
  return "not comparable";
}

RecordedValues ValuesOf(const storage::Reader& trace) { return {trace.Snapshots(), {}}; }

RecordedValues ValuesOf(Program leaves) {
  RecordedValues values;
  for (Leaf& leaf : leaves.leaves) {
    for (std::vector<Snapshot>* contents : {&leaf.before, &leaf.after}) {
      for (Snapshot& snapshot : *contents) {
        snapshot.call_id = leaf.call.call_id;
        values.snapshots.push_back(std::move(snapshot));
      }
    }
  }
  values.own_payloads = std::move(leaves.own_payloads);
  return values;
}

ValueComparer::ValueComparer(const Flow& a, const RecordedValues& a_values, const Flow& b,
                             const RecordedValues& b_values, const std::string& standard) {
  const std::array<const Flow*, 2> flows = {&a, &b};
  const std::array<const RecordedValues*, 2> values = {&a_values, &b_values};
  for (int side = 0; side < 2; ++side) {
    sides_[side].flow = flows[side];
    const storage::Reader& trace = *flows[side]->work->trace;
    sides_[side].values = values[side];
    for (const Snapshot& snapshot : values[side]->snapshots) {
      (snapshot.after ? sides_[side].after : sides_[side].before).push_back(snapshot);
    }
    std::stable_sort(sides_[side].after.begin(), sides_[side].after.end(),
                     [](const Snapshot& x, const Snapshot& y) { return x.call_id < y.call_id; });
    sides_[side].statistics = std::make_unique<storage::Statement>(
        trace.database(),
        "SELECT min, max, mean, l2, nan_count, inf_count FROM snapshot WHERE call_id = ? AND "
        "position = ? AND moment = ? AND digest = ?");
  }
  const storage::Reader& left = *a.work->trace;
  const storage::Reader& right = *b.work->trace;
  same_environment_ =
      std::all_of(std::begin(kEnvironment), std::end(kEnvironment),
                  [&](const char* key) { return left.Meta(key) == right.Meta(key); });
  bitwise_ = metrics::Standard::Load("bitwise");
  tolerant_ = metrics::Standard::Load("ascend");
  if (!standard.empty()) chosen_ = metrics::Standard::Load(standard);
}

std::vector<uint8_t> ValueComparer::Payload(int side, const std::string& digest) const {
  const auto& own = sides_[side].values->own_payloads;
  const auto found = own.find(digest);
  return found != own.end() ? *found->second : sides_[side].flow->work->trace->Payload(digest);
}

std::string ValueComparer::Description() const {
  if (chosen_) return chosen_->name();
  if (!same_environment_) return tolerant_->name() + " (the recordings' environments differ)";
  return "bitwise; " + tolerant_->name() + " between element types";
}

const metrics::Standard& ValueComparer::StandardFor(DType a, DType b, DType rounded) const {
  if (chosen_) return *chosen_;
  return a == b && same_environment_ && rounded == DType::kUndefined ? *bitwise_ : *tolerant_;
}

ValueComparer::Content ValueComparer::OutputOf(int side, int32_t node, int32_t output) const {
  const Flow& flow = *sides_[side].flow;
  const FormLabel& label = flow.label(node);
  Content content;
  if (static_cast<size_t>(output) >= label.writes.size()) return content;
  const FormAccess& write = label.writes[output];
  const size_t call = flow.nodes[node].call;
  const WorkForm& form = flow.work->form(call);
  const storage::ArgumentValue& argument = (*form.arguments)[write.argument];
  content.call_id = flow.call_id(node);
  content.position = argument.position;
  content.layout = write.layout;
  const int64_t buffer = flow.work->buffers(call)[write.slot];
  const auto& after = sides_[side].after;
  auto next = std::lower_bound(
      after.begin(), after.end(), content.call_id,
      [](const Snapshot& snapshot, int64_t wanted) { return snapshot.call_id < wanted; });
  for (; next != after.end() && next->call_id == content.call_id; ++next) {
    if (next->position != argument.position || next->digest.empty()) continue;
    if (next->tensor.buffer_id == buffer && next->tensor.layout_id == write.layout->layout_id) {
      content.snapshot = &*next;
      break;
    }
    if (argument.kind == storage::ValueKind::kTensor) content.snapshot = &*next;
  }
  return content;
}

bool ValueComparer::Comparable(int32_t a, int32_t b) const {
  const FormLabel& left = sides_[0].flow->label(a);
  const size_t count = left.writes.size();
  if (count == 0) return true;  // a host read
  for (size_t i = 0; i < count; ++i) {
    const auto output = static_cast<int32_t>(i);
    if (OutputOf(0, a, output).snapshot != nullptr && OutputOf(1, b, output).snapshot != nullptr) {
      return true;
    }
  }
  return false;
}

ValueDifference ValueComparer::Compare(int32_t a, int32_t b, DType rounded) {
  const FormLabel& left = sides_[0].flow->label(a);
  const FormLabel& right = sides_[1].flow->label(b);
  if (left.writes.empty() || right.writes.empty()) return CompareHostReads(a, b, rounded);
  ValueDifference worst;
  worst.reason = "the traces keep no values of both";
  const size_t outputs = std::min(left.writes.size(), right.writes.size());
  for (size_t i = 0; i < outputs; ++i) {
    const auto output = static_cast<int32_t>(i);
    Worsen(worst, CompareOutput(a, output, b, output, rounded));
  }
  return worst;
}

ValueDifference ValueComparer::CompareOutput(int32_t a, int32_t a_output, int32_t b,
                                             int32_t b_output, DType rounded) {
  const std::array<Content, 2> contents = {OutputOf(0, a, a_output), OutputOf(1, b, b_output)};
  ValueDifference difference = CompareContents(contents, sides_[0].flow->op(a).FullName(), rounded);
  if (contents[0].layout != nullptr) {
    const Flow& flow = *sides_[0].flow;
    const FormAccess& write = flow.label(a).writes[a_output];
    difference.name = (*flow.work->form(flow.nodes[a].call).arguments)[write.argument].name;
  }
  return difference;
}

ValueComparer::Content ValueComparer::ReadOf(int side, const FlowInput& input) const {
  if (input.source.node < 0) return {};
  Content content = OutputOf(side, input.source.node, input.source.output);
  const Layout& read = *input.access->layout;
  if (content.layout == nullptr || input.access->layout == content.layout) return content;
  const bool same = read.shape == content.layout->shape &&
                    read.strides == content.layout->strides &&
                    read.byte_offset == content.layout->byte_offset;
  if (!same) content.part = &read;
  const bool within = content.layout->FirstByte() <= read.FirstByte() &&
                      read.EndByte() <= content.layout->EndByte();
  if (!within) content.gathered = Gathered(side, input);
  return content;
}

std::shared_ptr<const std::vector<uint8_t>> ValueComparer::Gathered(int side,
                                                                    const FlowInput& input) const {
  const Layout& read = *input.access->layout;
  if (!read.IsDense() || !IsRowMajor(read)) return nullptr;
  const Flow& flow = *sides_[side].flow;
  std::vector<FlowSource> sources(flow.other_sources.begin() + input.first_other,
                                  flow.other_sources.begin() + input.end_other);
  sources.push_back(input.source);
  std::stable_sort(sources.begin(), sources.end(),
                   [](const FlowSource& a, const FlowSource& b) { return a.node < b.node; });
  const int64_t first = read.FirstByte(), end = read.EndByte();
  auto bytes = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(end - first));
  std::vector<bool> known(bytes->size());
  for (const FlowSource& source : sources) {
    const Content written = OutputOf(side, source.node, source.output);
    if (written.snapshot == nullptr || !written.snapshot->has_payload ||
        !written.layout->IsDense() ||
        (written.snapshot->packing != 0 && !IsRowMajor(*written.layout))) {
      return nullptr;
    }
    const std::vector<uint8_t> content = Payload(side, written.snapshot->digest);
    const int64_t start = written.layout->FirstByte();
    const int64_t to = std::min(end, start + static_cast<int64_t>(content.size()));
    for (int64_t byte = std::max(first, start); byte < to; ++byte) {
      (*bytes)[static_cast<size_t>(byte - first)] = content[static_cast<size_t>(byte - start)];
      known[static_cast<size_t>(byte - first)] = true;
    }
  }
  const bool all = std::find(known.begin(), known.end(), false) == known.end();
  return all ? bytes : nullptr;
}

ValueDifference ValueComparer::CompareReads(const FlowInput& a, const FlowInput& b, DType rounded) {
  const std::array<Content, 2> contents = {ReadOf(0, a), ReadOf(1, b)};
  if (contents[0].layout == nullptr || contents[1].layout == nullptr) return {};
  ValueDifference difference =
      CompareContents(contents, sides_[0].flow->op(a.source.node).FullName(), rounded);
  difference.name = "input";
  return difference;
}

ValueDifference ValueComparer::CompareExternals(int32_t a, int32_t b) {
  ValueDifference difference;
  const std::array<int32_t, 2> externals = {a, b};
  std::array<Content, 2> contents;
  for (int side = 0; side < 2; ++side) {
    const Flow& flow = *sides_[side].flow;
    const FlowExternal& external = flow.externals[externals[side]];
    if (external.digest.empty()) return difference;
    const auto& before = sides_[side].before;
    const auto found = std::find_if(before.begin(), before.end(), [&](const Snapshot& snapshot) {
      return snapshot.tensor.buffer_id == external.buffer && snapshot.digest == external.digest;
    });
    if (found == before.end()) return difference;
    contents[side].snapshot = &*found;
    contents[side].layout = flow.inputs[external.input].access->layout;
    contents[side].call_id = found->call_id;
    contents[side].position = found->position;
  }
  const Snapshot& left = *contents[0].snapshot;
  const Snapshot& right = *contents[1].snapshot;
  const bool same_type = contents[0].layout->dtype == contents[1].layout->dtype;
  if (same_type && left.digest == right.digest) {
    difference.verdict = DiffVerdict::kEqual;
    return difference;
  }
  if (!left.has_payload || !right.has_payload) {
    if (!same_type) return difference;
    difference.verdict = DiffVerdict::kDifferent;
    difference.reason = "the content it starts from has another digest";
    difference.error = 1;
    return difference;
  }
  // Compares whole buffers. The element type is that of the first reader.
  std::array<std::vector<uint8_t>, 2> bytes;
  std::array<DType, 2> types;
  for (int side = 0; side < 2; ++side) {
    bytes[side] = Payload(side, contents[side].snapshot->digest);
    types[side] = contents[side].layout->dtype;
  }
  const auto count = [&](int side) {
    const int64_t size = std::max<int64_t>(1, storage::DTypeBytes(types[side]));
    return static_cast<int64_t>(bytes[side].size()) / size;
  };
  const int64_t elements = std::min(count(0), count(1));
  if (!same_type && !(IsFloating(types[0]) && IsFloating(types[1]))) return difference;
  metrics::TensorMetrics metrics;
  const metrics::Judgement judgement = StandardFor(types[0], types[1], DType::kUndefined)
                                           .Compare("aten::clone", types[0], bytes[0].data(),
                                                    types[1], bytes[1].data(), elements, &metrics);
  if (!same_type) difference.rounded = CoarsestType(types[0], types[1]);
  difference.error = std::sqrt(metrics.nmse);
  difference.metrics = metrics;
  difference.reason = judgement.reason;
  // Contents of another element type were rounded to it. Only a greater error is a difference.
  constexpr double kRounding = 4e-3;
  if (judgement.verdict == metrics::Judgement::Verdict::kEqual) {
    difference.verdict = DiffVerdict::kEqual;
  } else if (judgement.verdict == metrics::Judgement::Verdict::kWithin ||
             (!same_type && difference.error <= kRounding)) {
    difference.verdict = DiffVerdict::kWithin;
  } else {
    difference.verdict = DiffVerdict::kDifferent;
    difference.reason = "the content it starts from differs: " + judgement.reason;
  }
  return difference;
}

std::optional<ValueComparer::Statistics> ValueComparer::StatisticsOf(int side,
                                                                     const Content& content) {
  storage::Statement& statement = *sides_[side].statistics;
  statement.Bind(1, RecordedCall(content.call_id));
  statement.Bind(2, int64_t{content.snapshot->position});
  statement.Bind(3, std::string_view(content.snapshot->after ? "after" : "before"));
  statement.Bind(4, std::string_view(content.snapshot->digest));
  std::optional<Statistics> statistics;
  if (statement.Next() && !statement.IsNull(0)) {
    statistics.emplace();
    for (int i = 0; i < 4; ++i) statistics->values[i] = statement.Real(i);
    statistics->nan = statement.Integer(4);
    statistics->inf = statement.Integer(5);
  }
  statement.Reset();
  return statistics;
}

// The content in row-major order. Empty if the bytes of a part cannot be found in the whole.
std::vector<uint8_t> ValueComparer::RowMajorContent(int side, const Content& content) const {
  if (content.gathered != nullptr) return *content.gathered;
  const Layout& whole = *content.layout;
  if (content.part == nullptr) {
    std::vector<uint8_t> bytes = Payload(side, content.snapshot->digest);
    if (content.snapshot->packing == 1 || IsRowMajor(whole)) return bytes;
    return ToRowMajor(whole, bytes, 0);
  }
  const Layout& part = *content.part;
  const bool in_order = whole.IsDense() && (content.snapshot->packing == 0 || IsRowMajor(whole));
  if (!in_order || part.dtype != whole.dtype || part.FirstByte() < whole.FirstByte() ||
      part.EndByte() > whole.EndByte()) {
    return {};
  }
  const int64_t size = std::max<int64_t>(1, storage::DTypeBytes(whole.dtype));
  return ToRowMajor(part, Payload(side, content.snapshot->digest),
                    (part.FirstByte() - whole.FirstByte()) / size);
}

ValueDifference ValueComparer::CompareContents(const std::array<Content, 2>& contents,
                                               const std::string& op, DType rounded) {
  ValueDifference difference;
  if (contents[0].snapshot == nullptr || contents[1].snapshot == nullptr) {
    difference.reason = "the traces keep no values of both";
    return difference;
  }
  const Layout& left = contents[0].seen();
  const Layout& right = contents[1].seen();
  const bool whole = contents[0].part == nullptr && contents[1].part == nullptr;
  const int64_t elements = left.ElementCount();
  if (elements != right.ElementCount()) {
    difference.verdict = DiffVerdict::kDifferent;
    difference.error = 1;
    difference.reason =
        fmt::format("shape {} against {}", ListText(left.shape), ListText(right.shape));
    return difference;
  }
  const Snapshot& a = *contents[0].snapshot;
  const Snapshot& b = *contents[1].snapshot;
  const bool same_order = whole && SameOrder(left, a.packing, right, b.packing);
  if (left.dtype == right.dtype && a.digest == b.digest && same_order) {
    difference.verdict = DiffVerdict::kEqual;
    return difference;
  }
  const bool floating = IsFloating(left.dtype) && IsFloating(right.dtype);
  DType type = left.dtype;
  if (floating) {
    if (left.dtype != right.dtype) {
      rounded = CoarsestType(rounded, CoarsestType(left.dtype, right.dtype));
    }
    if (rounded != DType::kUndefined) type = CoarsestType(type, rounded);
  }
  difference.rounded = rounded;
  const metrics::Standard& standard = StandardFor(left.dtype, right.dtype, rounded);
  const bool numbers = left.dtype == right.dtype || floating;
  if (!numbers) {
    difference.reason = fmt::format("{} against {}", storage::DTypeName(left.dtype),
                                    storage::DTypeName(right.dtype));
    return difference;
  }
  if (!a.has_payload || !b.has_payload) {
    if (!whole) {
      difference.reason = "of parts of a result only their contents would tell";
      return difference;
    }
    difference = CompareStatistics(contents, standard.bitwise() && same_order);
    difference.rounded = rounded;
    return difference;
  }
  const std::vector<uint8_t> x = RowMajorContent(0, contents[0]);
  const std::vector<uint8_t> y = RowMajorContent(1, contents[1]);
  if (elements > 0 && (x.empty() || y.empty())) {
    difference.reason = "a part of a result in another memory order";
    return difference;
  }
  metrics::MeasureOptions options;
  options.small_value = standard.SmallValue(type);
  const metrics::TensorMetrics metrics =
      metrics::Measure(left.dtype, x.data(), right.dtype, y.data(), elements, options);
  const metrics::Judgement judgement = standard.Judge(op, type, metrics);
  switch (judgement.verdict) {
    case metrics::Judgement::Verdict::kEqual:
      difference.verdict = DiffVerdict::kEqual;
      break;
    case metrics::Judgement::Verdict::kWithin:
      difference.verdict = DiffVerdict::kWithin;
      break;
    case metrics::Judgement::Verdict::kDifferent:
      difference.verdict = DiffVerdict::kDifferent;
      break;
  }
  difference.reason = judgement.reason;
  const bool special = metrics.nan_mismatches + metrics.inf_mismatches > 0;
  difference.error = special || !IsFloating(left.dtype) ? (metrics.bitwise_equal() ? 0 : 1)
                                                        : std::sqrt(metrics.nmse);
  difference.metrics = metrics;
  return difference;
}

ValueDifference ValueComparer::CompareStatistics(const std::array<Content, 2>& contents,
                                                 bool bits) {
  ValueDifference difference;
  const std::optional<Statistics> a = StatisticsOf(0, contents[0]);
  const std::optional<Statistics> b = StatisticsOf(1, contents[1]);
  if (!a || !b) {
    if (!bits) {
      difference.reason = "only digests are kept, which say nothing under this standard";
      return difference;
    }
    difference.verdict = DiffVerdict::kDifferent;
    difference.reason = "another digest";
    difference.error = 1;
    return difference;
  }
  constexpr const char* kNames[] = {"min", "max", "mean", "l2"};
  // A mean near zero makes relative errors large. Differences below a thousandth of the largest
  // number therefore count as none.
  const double scale = std::max({std::abs(a->values[0]), std::abs(a->values[1]),
                                 std::abs(b->values[0]), std::abs(b->values[1])});
  std::string worst;
  for (int i = 0; i < 4; ++i) {
    const double gap = std::abs(a->values[i] - b->values[i]);
    const double reference = std::max(std::abs(a->values[i]), 1e-3 * scale);
    const double relative = gap == 0 ? 0 : reference == 0 ? 1 : gap / reference;
    if (worst.empty() || relative > difference.error) {
      difference.error = relative;
      worst = fmt::format("{} {:.6g} against {:.6g}", kNames[i], a->values[i], b->values[i]);
    }
  }
  const bool special = a->nan != b->nan || a->inf != b->inf;
  if (special) {
    difference.error = 1;
    worst =
        fmt::format("{} NaN and {} infinities against {} and {}", a->nan, a->inf, b->nan, b->inf);
  }
  const bool different = bits || special || difference.error > kStatisticsThreshold;
  difference.verdict = different ? DiffVerdict::kDifferent : DiffVerdict::kWithin;
  difference.reason = bits ? "another digest; " + worst : worst;
  return difference;
}

// The bytes that a copy of the ACL interface brought to the host. They have no type there, so they
// get that of the call that wrote them.
ValueComparer::Content ValueComparer::CopiedToHost(int side, int32_t node) {
  Content content;
  const Flow& flow = *sides_[side].flow;
  const auto inputs = flow.InputsOf(node);
  if (inputs.size() != 1) return content;
  content.call_id = flow.call_id(node);
  content.position = kCopyTo;
  content.layout = inputs[0].access->layout;
  const auto& after = sides_[side].after;
  auto next = std::lower_bound(
      after.begin(), after.end(), content.call_id,
      [](const Snapshot& snapshot, int64_t wanted) { return snapshot.call_id < wanted; });
  for (; next != after.end() && next->call_id == content.call_id; ++next) {
    if (next->position == kCopyTo && !next->digest.empty()) content.snapshot = &*next;
  }
  const FlowSource& source = inputs[0].resolved;
  if (content.snapshot == nullptr || source.node < 0 || !content.layout->IsDense()) return content;
  const std::vector<FormAccess>& writes = flow.label(source.node).writes;
  const DType type = writes[source.output].layout->dtype;
  const int64_t size = storage::DTypeBytes(type);
  if (size <= 1 || content.snapshot->bytes % size != 0) return content;
  Layout& typed = typed_layouts_.emplace_back();
  typed.dtype = type;
  typed.shape = {content.snapshot->bytes / size};
  typed.strides = {1};
  content.layout = &typed;
  return content;
}

ValueDifference ValueComparer::CompareHostReads(int32_t a, int32_t b, DType rounded) {
  if (sides_[0].flow->work->dialect == Dialect::kAten) return CompareHostValues(a, b);
  ValueDifference difference =
      CompareContents({CopiedToHost(0, a), CopiedToHost(1, b)}, "aten::clone", rounded);
  difference.name = kHostValue;
  return difference;
}

ValueDifference ValueComparer::CompareHostValues(int32_t a, int32_t b) const {
  ValueDifference difference;
  std::array<std::vector<std::string>, 2> values;
  const std::array<int32_t, 2> nodes = {a, b};
  for (int side = 0; side < 2; ++side) {
    const Flow& flow = *sides_[side].flow;
    for (const storage::ArgumentValue& argument :
         *flow.work->form(flow.nodes[nodes[side]].call).arguments) {
      if (argument.direction != storage::Direction::kOut || argument.HoldsTensors()) continue;
      if (argument.kind == storage::ValueKind::kNone) continue;
      values[side].push_back(ValueText(argument));
    }
  }
  if (values[0].empty() || values[1].empty()) {
    difference.reason = "nothing is recorded of what it gave";
    return difference;
  }
  difference.verdict = DiffVerdict::kEqual;
  difference.name = kHostValue;
  for (size_t i = 0; i < std::min(values[0].size(), values[1].size()); ++i) {
    if (values[0][i] == values[1][i]) continue;
    difference.verdict = DiffVerdict::kDifferent;
    difference.error = 1;
    difference.reason = fmt::format("{} against {}", values[0][i], values[1][i]);
    break;
  }
  return difference;
}

}  // namespace acltape::analyzer::diff
