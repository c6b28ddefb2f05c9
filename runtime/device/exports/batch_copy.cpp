// Batched copies (CPY-11).
#include <cstring>
#include <vector>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

struct Batch {
  void** to;
  size_t* room;
  void** from;
  size_t* bytes;
  size_t count;
  aclrtMemcpyBatchAttr* attributes;
  size_t* attribute_indexes;
  size_t attribute_count;
};

// One copy of a batch.
struct Piece {
  void* to;
  const void* from;
  size_t bytes;
};

bool OnHost(const aclrtMemLocation& location) {
  return location.type == ACL_MEM_LOCATION_TYPE_HOST ||
         location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED;
}

aclError CheckBatch(const Batch& batch, const char* call) {
  for (const void* array :
       {static_cast<const void*>(batch.to), static_cast<const void*>(batch.room),
        static_cast<const void*>(batch.from), static_cast<const void*>(batch.bytes),
        static_cast<const void*>(batch.attributes),
        static_cast<const void*>(batch.attribute_indexes)}) {
    ACLTAPE_RETURN_IF_FAILED(CheckPointer(array, call, "an array"));
  }
  bool rising = batch.count != 0 && batch.attribute_count != 0 &&
                batch.attribute_count <= batch.count && batch.attribute_indexes[0] == 0;
  for (size_t i = 1; rising && i < batch.attribute_count; ++i) {
    rising = batch.attribute_indexes[i] > batch.attribute_indexes[i - 1] &&
             batch.attribute_indexes[i] < batch.count;
  }
  if (rising) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: the attribute indexes must start at 0 and rise below the number of copies",
              call);
}

// The pieces to copy; on failure *failed is the index of the wrong element.
aclError Collect(const Batch& batch, const char* call, std::vector<Piece>* pieces, bool* pageable,
                 size_t* failed) {
  *pageable = false;
  size_t attribute = 0;
  for (size_t i = 0; i < batch.count; ++i) {
    *failed = i;
    while (attribute + 1 < batch.attribute_count && batch.attribute_indexes[attribute + 1] <= i) {
      ++attribute;
    }
    ACLTAPE_RETURN_IF_FAILED(CheckPointer(batch.to[i], call, "a destination"));
    ACLTAPE_RETURN_IF_FAILED(CheckPointer(batch.from[i], call, "a source"));
    auto to = FindMemory(batch.to[i]);
    auto from = FindMemory(batch.from[i]);
    const aclrtMemcpyBatchAttr& attr = batch.attributes[attribute];
    if (IsDevice(to) == OnHost(attr.dstLoc) || IsDevice(from) == OnHost(attr.srcLoc)) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: the addresses of copy %zu lie elsewhere than its "
                  "attribute says",
                  call, i);
    }
    if (batch.bytes[i] > batch.room[i]) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: copy %zu: %zu bytes do not fit into %zu", call,
                  i, batch.bytes[i], batch.room[i]);
    }
    ACLTAPE_RETURN_IF_FAILED(CheckMemory(batch.to[i], batch.bytes[i], call, "a destination"));
    ACLTAPE_RETURN_IF_FAILED(
        CheckMemory(batch.from[i], batch.bytes[i], call, "a source", MemoryAccess::kRead));
    *pageable |= IsPageable(to) || IsPageable(from);
    pieces->push_back({batch.to[i], batch.from[i], batch.bytes[i]});
  }
  return ACL_SUCCESS;
}

aclError RunPieces(void* argument) {
  for (const Piece& piece : *static_cast<std::vector<Piece>*>(argument)) {
    ACLTAPE_RETURN_IF_FAILED(CheckTaskMemory(piece.to, piece.bytes, ACL_ERROR_RT_SYS_DMA,
                                             "a batch of copies", "a destination"));
    ACLTAPE_RETURN_IF_FAILED(CheckTaskMemory(piece.from, piece.bytes, ACL_ERROR_RT_SYS_DMA,
                                             "a batch of copies", "a source", MemoryAccess::kRead));
    std::memmove(piece.to, piece.from, piece.bytes);
  }
  return ACL_SUCCESS;
}

aclError CopyNow(const Batch& batch, size_t* fail_index, const char* call) {
  std::vector<Piece> pieces;
  bool pageable = false;
  size_t failed = SIZE_MAX;
  aclError code = CheckBatch(batch, call);
  if (code == ACL_SUCCESS) code = Collect(batch, call, &pieces, &pageable, &failed);
  if (fail_index != nullptr) *fail_index = code == ACL_SUCCESS ? SIZE_MAX : failed;
  ACLTAPE_RETURN_IF_FAILED(code);
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  ACLTAPE_RETURN_IF_FAILED(CheckSynchronousCall(*context, call));
  return RunPieces(&pieces);
}

aclError CopyInStream(const Batch& batch, size_t* fail_index, aclrtStream handle,
                      const char* call) {
  auto pieces = std::make_unique<std::vector<Piece>>();
  bool pageable = false;
  size_t failed = SIZE_MAX;
  aclError code = CheckBatch(batch, call);
  if (code == ACL_SUCCESS) code = Collect(batch, call, pieces.get(), &pageable, &failed);
  if (fail_index != nullptr) *fail_index = code == ACL_SUCCESS ? SIZE_MAX : failed;
  ACLTAPE_RETURN_IF_FAILED(code);
  Stream* stream = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(handle, call, &stream));
  if (pageable) {
    if (stream->capturing()) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: stream %u is capturing and some host memory is pageable", call,
                  stream->id());
    }
    ACLTAPE_RETURN_IF_FAILED(stream->Synchronize());
    if (UnsafeCallRefused(stream->context())) {
      return Fail(
          ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
          "%s: with pageable host memory this is a synchronous copy, which a running capture "
          "refuses",
          call);
    }
    return RunPieces(pieces.get());
  }
  Task task;
  task.run = RunPieces;
  task.drop = [](void* argument) { delete static_cast<std::vector<Piece>*>(argument); };
  task.argument = pieces.release();
  task.name = "MEMCPY_BATCH";
  task.kind = TaskKind::kCopy;
  return SubmitTask(*stream, std::move(task));
}

}  // namespace

aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                          size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                          size_t numAttrs, size_t* failIndex) {
  ACLTAPE_CALL("aclrtMemcpyBatch");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(failIndex, kCall, "failIndex"));
  return CopyNow({dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
                 failIndex, kCall);
}

aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                            size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                            size_t numAttrs) {
  ACLTAPE_CALL("aclrtMemcpyBatchV2");
  return CopyNow({dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs}, nullptr,
                 kCall);
}

aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                               size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                               size_t numAttrs, size_t* failIndex, aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemcpyBatchAsync");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(failIndex, kCall, "failIndex"));
  return CopyInStream({dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
                      failIndex, stream, kCall);
}

aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                 size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                 size_t* attrsIndexes, size_t numAttrs, aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemcpyBatchAsyncV2");
  return CopyInStream({dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
                      nullptr, stream, kCall);
}
