#include "analyzer/waits/footprint.h"

#include <set>
#include <utility>

#include "analyzer/lint/stretch.h"

namespace acltape::analyzer::waits {
namespace {

using K = AclCallKind;

bool HidesItsWork(K kind) {
  return kind == K::kHostFunction || kind == K::kModelBranch || kind == K::kConditionTask ||
         kind == K::kUnknown || kind == K::kLeftOut;
}

// True for a wait whose other side the order of events does not tell.
bool WaitsForMore(K kind) { return kind == K::kValueWait || kind == K::kNotifyWait; }

}  // namespace

Footprints::Footprints(const Work& work) : work_(work) {
  std::set<std::pair<int64_t, int64_t>> recorded;  // a model and an event that it records
  for (size_t call = 0; call < work.size(); ++call) {
    const int64_t model = work.calls[call].model_id;
    if (model == 0 || work.calls[call].status != 0) continue;
    const K kind = work.form(call).acl_kind();
    if (kind == K::kCaptureEnd) continue;
    stored_[model].push_back(static_cast<uint32_t>(call));
    Footprint& footprint = models_[model];
    AddOwn(footprint, call);
    footprint.not_known |= HidesItsWork(kind) || WaitsForMore(kind);
    const WorkForm& form = work.form(call);
    const std::pair<int64_t, int64_t> event{model, form.Integer(form.function->object)};
    if (kind == K::kEventRecord) recorded.insert(event);
    if (kind == K::kEventWait) footprint.not_known |= !recorded.contains(event);
  }
}

int64_t Footprints::ModelOf(size_t call) const {
  const WorkForm& form = work_.form(call);
  return IsExecution(form.acl_kind()) ? form.Integer(form.function->object) : 0;
}

const std::vector<uint32_t>* Footprints::StoredCalls(int64_t model) const {
  const auto found = stored_.find(model);
  return found == stored_.end() ? nullptr : &found->second;
}

bool Footprints::IsWork(size_t call) const {
  const WorkCall& row = work_.calls[call];
  if (row.model_id != 0 || row.status != 0) return false;
  const K kind = work_.form(call).acl_kind();
  if (kind == K::kExecute || kind == K::kHostFunction) return true;
  if (kind == K::kUnknown || kind == K::kLeftOut) return row.stream_id != 0;
  return IsDeviceWork(kind) && !WaitsOnHost(kind);
}

bool Footprints::IsOpaque(size_t call) const {
  if (HidesItsWork(work_.form(call).acl_kind())) return true;
  if (ModelOf(call) == 0) return false;
  const Footprint* model = OfModel(call);
  return model == nullptr || model->not_known;
}

const Footprint* Footprints::OfModel(size_t call) const {
  const auto found = models_.find(ModelOf(call));
  return found == models_.end() ? nullptr : &found->second;
}

void Footprints::AddOwn(Footprint& footprint, size_t call) const {
  work_.VisitAccesses(call, [&](const ByteAccess& access) {
    footprint.Add(access);
    footprint.host |= work_.trace->GetBuffer(access.buffer).device == 0;
  });
  footprint.host |= lint::IsPageableCopy(work_, call);
}

void Footprints::AddTo(Footprint& footprint, size_t call) const {
  footprint.not_known |= IsOpaque(call) || WaitsForMore(work_.form(call).acl_kind());
  if (const Footprint* model = OfModel(call); ModelOf(call) != 0 && model != nullptr) {
    model->VisitAccesses([&](const ByteAccess& access) { footprint.Add(access); });
    footprint.host |= model->host;
    return;
  }
  AddOwn(footprint, call);
}

bool Footprints::Conflicts(const Footprint& footprint, size_t call) const {
  if (IsOpaque(call)) return true;
  bool conflicts = false;
  const auto judge = [&](const ByteAccess& access) {
    conflicts = conflicts || footprint.Conflicts(access);
  };
  if (ModelOf(call) != 0) {
    OfModel(call)->VisitAccesses(judge);
  } else {
    work_.VisitAccesses(call, judge);
  }
  return conflicts;
}

}  // namespace acltape::analyzer::waits
