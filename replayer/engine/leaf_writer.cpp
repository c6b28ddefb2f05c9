#include "replayer/engine/leaf_writer.h"

#include "analyzer/program/missing_values.h"
#include "replayer/device/memory_plan.h"

namespace acltape::replayer {

CallRange AddCalls(const analyzer::Leaf& leaf, const analyzer::lowering::Lowering& lowering,
                   const LeafMemory& memory, Script& script) {
  std::vector<Spot> temporaries;
  Spot next = memory.temporaries;
  for (const int64_t bytes : lowering.temporaries) {
    temporaries.push_back(next);
    next.offset += AlignUp(bytes);
  }
  const auto place = [&](analyzer::lowering::LoweredTensor& tensor) {
    if (!tensor.present) return;
    Spot spot = memory.nothing;
    const bool temporary =
        tensor.memory.kind() == analyzer::lowering::OperandMemory::Kind::kTemporary;
    if (tensor.layout.ElementCount() != 0 && temporary) {
      spot = temporaries[tensor.memory.temporary()];
      spot.offset += tensor.layout.byte_offset;
    } else if (tensor.layout.ElementCount() != 0) {
      spot = memory.place(tensor.memory.buffer(), tensor.layout);
    }
    tensor.memory = analyzer::lowering::OperandMemory::Block(spot.block);
    tensor.layout.byte_offset = spot.offset;
  };
  CallRange range;
  range.first = static_cast<int>(script.calls.size());
  for (const analyzer::lowering::Invocation& invocation : lowering.invocations) {
    ScriptCall& call = script.calls.emplace_back();
    call.call_id = leaf.call.call_id;
    call.name = leaf.Name();
    call.invocation = invocation;
    call.workspace = memory.workspace.block;
    call.workspace_offset = memory.workspace.offset;
    for (analyzer::lowering::LoweredValue& value : call.invocation.arguments) {
      for (analyzer::lowering::LoweredTensor& tensor : value.tensors) place(tensor);
    }
  }
  range.end = static_cast<int>(script.calls.size());
  return range;
}

void WriteLaunches(const CallRange& calls, int stream, std::vector<Operation>& operations) {
  for (int call = calls.first; call < calls.end; ++call) operations.push_back(Launch{call, stream});
}

int AddFeed(Contents& contents, const Feed& feed, std::string name, Script& script) {
  script.contents.push_back(
      {std::move(name), feed.bytes, [&contents, &feed] { return contents.Get(feed); }});
  return static_cast<int>(script.contents.size()) - 1;
}

int AddResult(const analyzer::Program& program, Contents& contents, int64_t leaf, size_t write,
              std::string name, Script& script) {
  const int64_t bytes = ResultBytes(*program.uses[leaf].writes[write].layout);
  script.contents.push_back(
      {std::move(name), bytes, [&program, &contents, leaf, write] {
         Bytes result = contents.GetResult(program.leaves[leaf], program.uses[leaf].writes[write]);
         if (result != nullptr) return result;
         throw Error(ErrorKind::kTrace, program.Describe(leaf) +
                                            " needs its recorded results, which the trace does "
                                            "not hold; " +
                                            analyzer::HowToHaveResult(program, leaf));
       }});
  return static_cast<int>(script.contents.size()) - 1;
}

bool IsStrided(const analyzer::Program& program, int64_t leaf, size_t write) {
  const analyzer::TensorUse& use = program.uses[leaf].writes[write];
  const storage::Snapshot* snapshot = analyzer::RecordedResult(program.leaves[leaf], use);
  return snapshot != nullptr ? snapshot->packing != 0 : !use.layout->IsDense();
}

int64_t ResultBytes(const storage::Layout& layout) {
  return layout.ElementCount() * storage::DTypeBytes(layout.dtype);
}

void WriteResult(const analyzer::Program& program, Contents& contents, int64_t leaf, size_t write,
                 std::string name, const Spot& to, Script& script,
                 std::vector<Operation>& operations) {
  const storage::Layout& layout = *program.uses[leaf].writes[write].layout;
  if (layout.ElementCount() == 0) return;
  const int content = AddResult(program, contents, leaf, write, std::move(name), script);
  if (IsStrided(program, leaf, write)) {
    operations.push_back(UploadStrided{to, &layout, content});
  } else {
    operations.push_back(UploadTo{to, content, 0, ResultBytes(layout)});
  }
}

void WriteKept(const analyzer::Program& program, int64_t leaf, size_t place,
               const KeptResults& kept, const SpotOf& place_of, int stream,
               std::vector<Operation>& operations) {
  const std::vector<analyzer::TensorUse>& writes = program.uses[leaf].writes;
  for (size_t w = 0; w < writes.size(); ++w) {
    const auto to = kept.find({place, static_cast<int>(w)});
    if (to == kept.end()) continue;
    const storage::Layout& layout = *writes[w].layout;
    operations.push_back(CopyBytes{to->second, place_of(writes[w].tensor.buffer_id, layout),
                                   layout.EndByte() - layout.FirstByte(), stream,
                                   program.leaves[leaf].call.call_id});
  }
}

}  // namespace acltape::replayer
