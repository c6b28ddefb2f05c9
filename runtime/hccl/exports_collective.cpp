// Functions that give collectives and messages to a stream.
#include <vector>

#include "runtime/captured_stream.h"
#include "runtime/hccl/collective.h"
#include "runtime/hccl/export.h"
#include "runtime/hccl/group.h"
#include "runtime/hccl/message.h"
#include "runtime/hccl/reduce.h"

using namespace acltape::hccl;

namespace {

HcclResult FindFor(const char* call, HcclComm comm, std::shared_ptr<Communicator>* found) {
  if (comm == nullptr) return Refuse(HCCL_E_PTR, "%s: comm is NULL", call);
  *found = Communicator::Find(comm);
  if (*found != nullptr) return HCCL_SUCCESS;
  return Refuse(HCCL_E_PARA, "%s: %p is no live communicator", call, comm);
}

HcclResult CheckDtype(const char* call, HcclDataType dtype) {
  if (FactsOf(dtype).bytes != 0) return HCCL_SUCCESS;
  return Refuse(HCCL_E_PARA, "%s: there is no dtype %d", call, static_cast<int>(dtype));
}

HcclResult CheckBuffer(const char* call, const char* name, const void* buffer, uint64_t bytes) {
  if (bytes == 0 || buffer != nullptr) return HCCL_SUCCESS;
  return Refuse(HCCL_E_PTR, "%s: %s is NULL", call, name);
}

#define ACLTAPE_HCCL_CHECK(expression)                         \
  do {                                                         \
    if (const HcclResult wrong_ = (expression)) return wrong_; \
  } while (false)

HcclResult Start(Call call, HcclComm comm, aclrtStream stream) {
  const KindFacts& facts = FactsOf(call.kind);
  std::shared_ptr<Communicator> communicator;
  ACLTAPE_HCCL_CHECK(FindFor(facts.name, comm, &communicator));
  ACLTAPE_HCCL_CHECK(CheckDtype(facts.name, call.dtype));
  if (facts.reduces && (call.op < HCCL_REDUCE_SUM || call.op >= HCCL_REDUCE_RESERVED)) {
    return Refuse(HCCL_E_PARA, "%s: there is no operation %d", facts.name,
                  static_cast<int>(call.op));
  }
  if (facts.reduces && !Reducible(call.dtype)) {
    return Refuse(HCCL_E_NOT_SUPPORT, "%s does not reduce %s", facts.name,
                  FactsOf(call.dtype).name);
  }
  if (call.root >= communicator->ranks()) {
    return Refuse(HCCL_E_PARA, "%s: root %u is none of %u ranks", facts.name, call.root,
                  communicator->ranks());
  }
  const uint64_t given = Collective::BytesGiven(call, communicator->rank(), communicator->ranks());
  const uint64_t taken = Collective::BytesTaken(call, communicator->rank(), communicator->ranks());
  ACLTAPE_HCCL_CHECK(CheckBuffer(facts.name, "sendBuf", call.send, given));
  ACLTAPE_HCCL_CHECK(CheckBuffer(facts.name, "recvBuf", call.recv, taken));
  const uint64_t capture = acltape::IsCaptured(stream) ? communicator->NextCapture() : 0;
  auto operation = std::make_unique<Operation>(communicator, facts.name);
  operation->Reads(call.send, given, "sendBuf");
  operation->Writes(call.recv, taken, "recvBuf");
  operation->Add(std::make_unique<Collective>(*communicator, std::move(call), capture));
  return Operation::Launch(std::move(operation), stream);
}

// Counts or displacements that a program gives for each rank.
std::vector<uint64_t> Copy(const void* numbers, uint32_t count) {
  const auto* first = static_cast<const uint64_t*>(numbers);
  return {first, first + count};
}

HcclResult CheckArrays(const char* call, std::initializer_list<const void*> arrays) {
  for (const void* array : arrays) {
    if (array == nullptr) {
      return Refuse(HCCL_E_PTR, "%s: an array of counts or displacements is NULL", call);
    }
  }
  return HCCL_SUCCESS;
}

HcclResult CheckOwnCount(const char* call, uint64_t count, uint64_t in_array) {
  if (count == in_array) return HCCL_SUCCESS;
  return Refuse(HCCL_E_PARA, "%s: this rank's count is %llu, and the array says %llu", call,
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(in_array));
}

}  // namespace

ACLTAPE_HCCL HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count,
                                      HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                      aclrtStream stream) {
  return Start({Kind::kAllReduce, sendBuf, recvBuf, count, dataType, op}, comm, stream);
}

ACLTAPE_HCCL HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count,
                                   HcclDataType dataType, HcclReduceOp op, uint32_t root,
                                   HcclComm comm, aclrtStream stream) {
  return Start({Kind::kReduce, sendBuf, recvBuf, count, dataType, op, root}, comm, stream);
}

ACLTAPE_HCCL HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                          HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                          aclrtStream stream) {
  return Start({Kind::kReduceScatter, sendBuf, recvBuf, recvCount, dataType, op}, comm, stream);
}

ACLTAPE_HCCL HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts,
                                           const void* sendDispls, void* recvBuf,
                                           uint64_t recvCount, HcclDataType dataType,
                                           HcclReduceOp op, HcclComm comm, aclrtStream stream) {
  std::shared_ptr<Communicator> communicator;
  ACLTAPE_HCCL_CHECK(FindFor(__func__, comm, &communicator));
  ACLTAPE_HCCL_CHECK(CheckArrays(__func__, {sendCounts, sendDispls}));
  Call call{Kind::kReduceScatterV, sendBuf, recvBuf, recvCount, dataType, op};
  call.send_counts = Copy(sendCounts, communicator->ranks());
  call.send_places = Copy(sendDispls, communicator->ranks());
  ACLTAPE_HCCL_CHECK(CheckOwnCount(__func__, recvCount, call.send_counts[communicator->rank()]));
  return Start(std::move(call), comm, stream);
}

ACLTAPE_HCCL HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType,
                                      uint32_t root, HcclComm comm, aclrtStream stream) {
  return Start({Kind::kBroadcast, buf, buf, count, dataType, HCCL_REDUCE_SUM, root}, comm, stream);
}

ACLTAPE_HCCL HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                    HcclDataType dataType, uint32_t root, HcclComm comm,
                                    aclrtStream stream) {
  return Start({Kind::kScatter, sendBuf, recvBuf, recvCount, dataType, HCCL_REDUCE_SUM, root}, comm,
               stream);
}

ACLTAPE_HCCL HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount,
                                      HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  return Start({Kind::kAllGather, sendBuf, recvBuf, sendCount, dataType}, comm, stream);
}

ACLTAPE_HCCL HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf,
                                       const void* recvCounts, const void* recvDispls,
                                       HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  std::shared_ptr<Communicator> communicator;
  ACLTAPE_HCCL_CHECK(FindFor(__func__, comm, &communicator));
  ACLTAPE_HCCL_CHECK(CheckArrays(__func__, {recvCounts, recvDispls}));
  Call call{Kind::kAllGatherV, sendBuf, recvBuf, sendCount, dataType};
  call.recv_counts = Copy(recvCounts, communicator->ranks());
  call.recv_places = Copy(recvDispls, communicator->ranks());
  ACLTAPE_HCCL_CHECK(CheckOwnCount(__func__, sendCount, call.recv_counts[communicator->rank()]));
  return Start(std::move(call), comm, stream);
}

ACLTAPE_HCCL HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType,
                                     const void* recvBuf, uint64_t recvCount, HcclDataType recvType,
                                     HcclComm comm, aclrtStream stream) {
  if (sendCount != recvCount || sendType != recvType) {
    return Refuse(HCCL_E_PARA, "%s: what is sent and what is received differ in count or dtype",
                  __func__);
  }
  return Start({Kind::kAlltoAll, sendBuf, const_cast<void*>(recvBuf), sendCount, sendType}, comm,
               stream);
}

ACLTAPE_HCCL HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts,
                                      const void* sdispls, HcclDataType sendType,
                                      const void* recvBuf, const void* recvCounts,
                                      const void* rdispls, HcclDataType recvType, HcclComm comm,
                                      aclrtStream stream) {
  std::shared_ptr<Communicator> communicator;
  ACLTAPE_HCCL_CHECK(FindFor(__func__, comm, &communicator));
  ACLTAPE_HCCL_CHECK(CheckArrays(__func__, {sendCounts, sdispls, recvCounts, rdispls}));
  if (sendType != recvType) {
    return Refuse(HCCL_E_PARA, "%s: what is sent and what is received differ in dtype", __func__);
  }
  Call call{Kind::kAlltoAllV, sendBuf, const_cast<void*>(recvBuf), 0, sendType};
  call.send_counts = Copy(sendCounts, communicator->ranks());
  call.send_places = Copy(sdispls, communicator->ranks());
  call.recv_counts = Copy(recvCounts, communicator->ranks());
  call.recv_places = Copy(rdispls, communicator->ranks());
  return Start(std::move(call), comm, stream);
}

ACLTAPE_HCCL HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix,
                                       HcclDataType sendType, const void* recvBuf,
                                       HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  std::shared_ptr<Communicator> communicator;
  ACLTAPE_HCCL_CHECK(FindFor(__func__, comm, &communicator));
  ACLTAPE_HCCL_CHECK(CheckArrays(__func__, {sendCountMatrix}));
  if (sendType != recvType) {
    return Refuse(HCCL_E_PARA, "%s: what is sent and what is received differ in dtype", __func__);
  }
  // Row i has what rank i sends to each rank. Blocks lie one after the other.
  Call call{Kind::kAlltoAllV, sendBuf, const_cast<void*>(recvBuf), 0, sendType};
  const uint32_t ranks = communicator->ranks(), own = communicator->rank();
  const auto* matrix = static_cast<const uint64_t*>(sendCountMatrix);
  uint64_t sent = 0, received = 0;
  for (uint32_t other = 0; other < ranks; ++other) {
    call.send_counts.push_back(matrix[own * ranks + other]);
    call.send_places.push_back(sent);
    call.recv_counts.push_back(matrix[other * ranks + own]);
    call.recv_places.push_back(received);
    sent += call.send_counts.back();
    received += call.recv_counts.back();
  }
  return Start(std::move(call), comm, stream);
}

ACLTAPE_HCCL HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  return Start({Kind::kBarrier, nullptr, nullptr, 0, HCCL_DATA_TYPE_INT8}, comm, stream);
}

namespace {

HcclResult CheckItem(const char* call, const Communicator& communicator,
                     const HcclSendRecvItem& item) {
  if (item.sendRecvType != HCCL_SEND && item.sendRecvType != HCCL_RECV) {
    return Refuse(HCCL_E_PARA, "%s: an item neither sends nor receives", call);
  }
  ACLTAPE_HCCL_CHECK(CheckDtype(call, item.dataType));
  if (item.remoteRank >= communicator.ranks()) {
    return Refuse(HCCL_E_PARA, "%s: rank %u is none of %u ranks", call, item.remoteRank,
                  communicator.ranks());
  }
  return CheckBuffer(call, "buf", item.buf, item.count * FactsOf(item.dataType).bytes);
}

// The messages of one stream and communicator progress together.
HcclResult StartMessages(const char* call, const std::shared_ptr<Communicator>& communicator,
                         const std::vector<HcclSendRecvItem>& items, aclrtStream stream) {
  const bool captured = acltape::IsCaptured(stream);
  auto operation = std::make_unique<Operation>(communicator, call);
  for (const HcclSendRecvItem& item : items) {
    const bool sends = item.sendRecvType == HCCL_SEND;
    const uint64_t bytes = item.count * FactsOf(item.dataType).bytes;
    const uint64_t capture = !captured ? 0
                             : sends   ? communicator->NextCaptureTo(item.remoteRank)
                                       : communicator->NextCaptureFrom(item.remoteRank);
    if (sends) {
      operation->Reads(item.buf, bytes, "buf");
    } else {
      operation->Writes(item.buf, bytes, "buf");
    }
    operation->Add(std::make_unique<Message>(
        *communicator, sends ? Message::End::kSender : Message::End::kReceiver, item.remoteRank,
        item.buf, item.count, item.dataType, capture));
  }
  return Operation::Launch(std::move(operation), stream);
}

HcclResult StartOne(const char* call, HcclSendRecvType type, void* memory, uint64_t count,
                    HcclDataType dtype, uint32_t peer, HcclComm comm, aclrtStream stream) {
  std::shared_ptr<Communicator> communicator;
  ACLTAPE_HCCL_CHECK(FindFor(call, comm, &communicator));
  const HcclSendRecvItem item{type, memory, count, dtype, peer};
  ACLTAPE_HCCL_CHECK(CheckItem(call, *communicator, item));
  if (Group::Open()) {
    Group::Add(std::move(communicator), item, stream);
    return HCCL_SUCCESS;
  }
  if (peer == communicator->rank()) {
    return Refuse(HCCL_E_PARA, "%s: rank %u cannot wait for itself; give both ends in one batch",
                  call, peer);
  }
  return StartMessages(call, communicator, {item}, stream);
}

}  // namespace

ACLTAPE_HCCL HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType,
                                 uint32_t destRank, HcclComm comm, aclrtStream stream) {
  return StartOne(__func__, HCCL_SEND, sendBuf, count, dataType, destRank, comm, stream);
}

ACLTAPE_HCCL HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType,
                                 uint32_t srcRank, HcclComm comm, aclrtStream stream) {
  return StartOne(__func__, HCCL_RECV, recvBuf, count, dataType, srcRank, comm, stream);
}

ACLTAPE_HCCL HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum,
                                          HcclComm comm, aclrtStream stream) {
  std::shared_ptr<Communicator> communicator;
  ACLTAPE_HCCL_CHECK(FindFor(__func__, comm, &communicator));
  if (sendRecvInfo == nullptr || itemNum == 0) {
    return Refuse(HCCL_E_PARA, "%s: there are no items", __func__);
  }
  for (uint32_t i = 0; i < itemNum; ++i) {
    ACLTAPE_HCCL_CHECK(CheckItem(__func__, *communicator, sendRecvInfo[i]));
  }
  return StartMessages(__func__, communicator, {sendRecvInfo, sendRecvInfo + itemNum}, stream);
}

// For libhcomm.so, which has the functions' public names.
ACLTAPE_HCCL HcclResult SoftHcclGroupStart(void) {
  Group::Begin();
  return HCCL_SUCCESS;
}

ACLTAPE_HCCL HcclResult SoftHcclGroupEnd(void) {
  if (!Group::Open()) {
    return Refuse(HCCL_E_PARA, "HcclGroupEnd: no HcclGroupStart of this thread is open");
  }
  for (const Group::Batch& batch : Group::End()) {
    ACLTAPE_HCCL_CHECK(
        StartMessages("HcclBatchSendRecv", batch.communicator, batch.items, batch.stream));
  }
  return HCCL_SUCCESS;
}
