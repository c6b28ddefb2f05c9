// Communication between ranks that are threads of one process.
#include <algorithm>
#include <cstring>

#include "tests/hccl/ranks.h"

namespace acltape::hccl {
namespace {

constexpr HcclDataType kFloat = HCCL_DATA_TYPE_FP32;

class Hccl : public testing::Test {
 protected:
  static void SetUpTestSuite() { ShowDevices("8"); }
};

// Fails with what the device said.
#define EXPECT_HCCL(code, expression) EXPECT_EQ(expression, code) << aclGetRecentErrMsg()

std::vector<float> Of(uint32_t rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(rank * 100 + i % 50);
  return values;
}

TEST_F(Hccl, HCL_01_AGroupOfOneRankCopies) {
  OnRanks(1, [](Rank& rank) {
    float* from = rank.UploadAll(Of(3, 4));
    float* to = rank.UploadAll(Of(0, 4));
    EXPECT_HCCL(HCCL_SUCCESS,
                HcclAllReduce(from, to, 4, kFloat, HCCL_REDUCE_SUM, rank.comm, rank.stream));
    EXPECT_OK(aclrtSynchronizeStream(rank.stream));
    EXPECT_EQ(rank.Download(to, 4), Of(3, 4));
  });
}

TEST_F(Hccl, HCL_10_BadArgumentsAreRefusedAtOnceWithASentence) {
  OnRanks(1, [](Rank& rank) {
    float* from = rank.UploadAll(Of(0, 4));
    EXPECT_HCCL(HCCL_E_PARA, HcclAllReduce(from, from, 4, HCCL_DATA_TYPE_RESERVED, HCCL_REDUCE_SUM,
                                           rank.comm, rank.stream));
    EXPECT_STREQ(aclGetRecentErrMsg(), "HcclAllReduce: there is no dtype 255");
    EXPECT_HCCL(HCCL_E_PARA,
                HcclAllReduce(from, from, 4, kFloat, HCCL_REDUCE_RESERVED, rank.comm, rank.stream));
    EXPECT_HCCL(HCCL_E_NOT_SUPPORT, HcclAllReduce(from, from, 4, HCCL_DATA_TYPE_FP8E4M3,
                                                  HCCL_REDUCE_SUM, rank.comm, rank.stream));
    EXPECT_HCCL(HCCL_E_PTR,
                HcclAllReduce(nullptr, from, 4, kFloat, HCCL_REDUCE_SUM, rank.comm, rank.stream));
    EXPECT_HCCL(HCCL_E_PTR,
                HcclAllReduce(from, from, 4, kFloat, HCCL_REDUCE_SUM, nullptr, rank.stream));
    EXPECT_HCCL(HCCL_E_PARA,
                HcclAllReduce(from, from, 4, kFloat, HCCL_REDUCE_SUM, from, rank.stream));
    EXPECT_HCCL(HCCL_E_PARA, HcclBroadcast(from, 4, kFloat, 1, rank.comm, rank.stream));
    EXPECT_HCCL(HCCL_E_PARA, HcclSend(from, 4, kFloat, 1, rank.comm, rank.stream));
    EXPECT_HCCL(HCCL_E_PARA, HcclSend(from, 4, kFloat, 0, rank.comm, rank.stream));
    EXPECT_HCCL(HCCL_E_PARA, HcclBatchSendRecv(nullptr, 0, rank.comm, rank.stream));
    EXPECT_HCCL(HCCL_E_PARA,
                HcclAlltoAll(from, 4, kFloat, from, 3, kFloat, rank.comm, rank.stream));
    HcclResult error = HCCL_E_INTERNAL;
    EXPECT_HCCL(HCCL_SUCCESS, HcclGetCommAsyncError(rank.comm, &error));
    EXPECT_EQ(error, HCCL_SUCCESS);
  });
}

TEST_F(Hccl, HCL_11_NetworkCardsAreCheckedAndNotChanged) {
  OnRanks(2, [](Rank& rank) {
    uint32_t ranks[] = {1, 0}, beyond[] = {0, 2};
    bool backup[] = {true, false};
    EXPECT_HCCL(HCCL_SUCCESS, HcclCommWorkingDevNicSet(rank.comm, ranks, backup, 2));
    EXPECT_HCCL(HCCL_E_PARA, HcclCommWorkingDevNicSet(rank.comm, beyond, backup, 2));
    EXPECT_STREQ(aclGetRecentErrMsg(), "HcclCommWorkingDevNicSet: rank 2 is none of 2 ranks");
    EXPECT_HCCL(HCCL_E_PTR, HcclCommWorkingDevNicSet(rank.comm, nullptr, backup, 2));
    EXPECT_HCCL(HCCL_E_PTR, HcclCommWorkingDevNicSet(rank.comm, ranks, nullptr, 2));
    EXPECT_HCCL(HCCL_E_PTR, HcclCommWorkingDevNicSet(nullptr, ranks, backup, 2));
    // The communicator goes on.
    float* from = rank.UploadAll(Of(rank.rank, 4));
    float* to = rank.UploadAll(std::vector<float>(8));
    EXPECT_HCCL(HCCL_SUCCESS, HcclAllGather(from, to, 4, kFloat, rank.comm, rank.stream));
    EXPECT_OK(aclrtSynchronizeStream(rank.stream));
    std::vector<float> wanted = Of(0, 4), second = Of(1, 4);
    wanted.insert(wanted.end(), second.begin(), second.end());
    EXPECT_EQ(rank.Download(to, 8), wanted);
  });
}

TEST_F(Hccl, HCL_05_MessagesGoInOrderAndOfAnySize) {
  OnRanks(2, [](Rank& rank) {
    const uint32_t peer = 1 - rank.rank;
    for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{300001}}) {
      float* memory = rank.UploadAll(Of(rank.rank, count));
      if (rank.rank == 0) {
        EXPECT_HCCL(HCCL_SUCCESS, HcclSend(memory, count, kFloat, peer, rank.comm, rank.stream));
      } else {
        EXPECT_HCCL(HCCL_SUCCESS, HcclRecv(memory, count, kFloat, peer, rank.comm, rank.stream));
      }
      EXPECT_OK(aclrtSynchronizeStream(rank.stream));
      EXPECT_EQ(rank.Download(memory, count), Of(0, count)) << count;
    }
  });
}

TEST_F(Hccl, HCL_05_ABatchGetsOnInAnyOrderAndWithItself) {
  OnRanks(4, [](Rank& rank) {
    // Every rank sends to every rank, itself too; the order differs from rank to rank.
    std::vector<HcclSendRecvItem> items;
    std::vector<float*> received(4);
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t peer = (rank.rank * 3 + i) % 4;
      float* given = rank.UploadAll(Of(rank.rank * 10 + peer, 20000));
      received[peer] = rank.UploadAll(std::vector<float>(20000, -1));
      items.push_back({HCCL_SEND, given, 20000, kFloat, peer});
      items.push_back({HCCL_RECV, received[peer], 20000, kFloat, peer});
    }
    EXPECT_HCCL(HCCL_SUCCESS, HcclBatchSendRecv(items.data(), 8, rank.comm, rank.stream));
    items.clear();  // the array lives only during the call
    EXPECT_OK(aclrtSynchronizeStream(rank.stream));
    for (uint32_t peer = 0; peer < 4; ++peer) {
      EXPECT_EQ(rank.Download(received[peer], 20000), Of(peer * 10 + rank.rank, 20000)) << peer;
    }
  });
}

TEST_F(Hccl, HCL_05_MessagesOfAGroupBeginTogetherAtItsEnd) {
  OnRanks(2, [](Rank& rank) {
    const uint32_t peer = 1 - rank.rank;
    float* given = rank.UploadAll(Of(rank.rank, 5));
    float* received = rank.UploadAll(Of(9, 5));
    // Both send first: outside of a group both would wait for ever.
    EXPECT_HCCL(HCCL_SUCCESS, HcclGroupStart());
    EXPECT_HCCL(HCCL_SUCCESS, HcclGroupStart());
    EXPECT_HCCL(HCCL_SUCCESS, HcclSend(given, 5, kFloat, peer, rank.comm, rank.stream));
    EXPECT_HCCL(HCCL_SUCCESS, HcclGroupEnd());
    EXPECT_HCCL(HCCL_SUCCESS, HcclRecv(received, 5, kFloat, peer, rank.comm, rank.stream));
    EXPECT_HCCL(HCCL_SUCCESS, HcclGroupEnd());
    EXPECT_HCCL(HCCL_E_PARA, HcclGroupEnd());
    EXPECT_OK(aclrtSynchronizeStream(rank.stream));
    EXPECT_EQ(rank.Download(received, 5), Of(peer, 5));
  });
}

// A graph with two streams, on each of which another communicator has its collective. Rank 0
// captured the first one before the second one, rank 1 the other way round.
TEST_F(Hccl, HCL_06_TwoCommunicatorsInOneGraphGetOnInAnyOrder) {
  std::vector<int32_t> devices = {0, 1};
  std::vector<HcclComm> second(2);
  ASSERT_EQ(HcclCommInitAll(2, devices.data(), second.data()), HCCL_SUCCESS);
  OnRanks(2, [&](Rank& rank) {
    aclrtStream other = nullptr;
    aclrtEvent fork = nullptr, join = nullptr;
    ASSERT_OK(aclrtCreateStream(&other));
    ASSERT_OK(aclrtCreateEventExWithFlag(&fork, ACL_EVENT_SYNC));
    ASSERT_OK(aclrtCreateEventExWithFlag(&join, ACL_EVENT_SYNC));
    float* a = rank.UploadAll(std::vector<float>(40000, 1));
    float* b = rank.UploadAll(std::vector<float>(40000, 2));
    aclmdlRI model = nullptr;
    ASSERT_OK(aclmdlRICaptureBegin(rank.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    ASSERT_OK(aclrtRecordEvent(fork, rank.stream));
    ASSERT_OK(aclrtStreamWaitEvent(other, fork));
    const auto reduce = [&](float* data, HcclComm comm, aclrtStream stream) {
      EXPECT_HCCL(HCCL_SUCCESS,
                  HcclAllReduce(data, data, 40000, kFloat, HCCL_REDUCE_SUM, comm, stream));
    };
    if (rank.rank == 0) reduce(a, rank.comm, rank.stream);
    reduce(b, second[rank.rank], other);
    if (rank.rank == 1) reduce(a, rank.comm, rank.stream);
    ASSERT_OK(aclrtRecordEvent(join, other));
    ASSERT_OK(aclrtStreamWaitEvent(rank.stream, join));
    ASSERT_OK(aclmdlRICaptureEnd(rank.stream, &model));
    for (int i = 0; i < 3; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, rank.stream));
    ASSERT_OK(aclrtSynchronizeStream(rank.stream));
    EXPECT_EQ(rank.Download(a, 40000), std::vector<float>(40000, 8));
    EXPECT_EQ(rank.Download(b, 40000), std::vector<float>(40000, 16));
    EXPECT_OK(aclmdlRIDestroy(model));
    EXPECT_OK(aclrtDestroyStream(other));
  });
  for (HcclComm comm : second) EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

// The order on each rank's two streams is not the order of the calls, and both are of one
// communicator: they take turns.
TEST_F(Hccl, HCL_06_CollectivesOfOneCommunicatorOnTwoStreamsTakeTurns) {
  OnRanks(2, [](Rank& rank) {
    aclrtStream other = nullptr;
    ASSERT_OK(aclrtCreateStream(&other));
    float* a = rank.UploadAll(std::vector<float>(30000, 1));
    float* b = rank.UploadAll(std::vector<float>(30000, 1));
    for (int i = 0; i < 20; ++i) {
      EXPECT_HCCL(HCCL_SUCCESS,
                  HcclAllReduce(a, a, 30000, kFloat, HCCL_REDUCE_MAX, rank.comm, rank.stream));
      EXPECT_HCCL(HCCL_SUCCESS,
                  HcclAllReduce(b, b, 30000, kFloat, HCCL_REDUCE_MAX, rank.comm, other));
    }
    EXPECT_OK(aclrtSynchronizeStream(rank.stream));
    EXPECT_OK(aclrtSynchronizeStream(other));
    EXPECT_EQ(rank.Download(a, 1), std::vector<float>(1, 1));
    EXPECT_OK(aclrtDestroyStream(other));
  });
}

// Rounded at each addition, in the order of the ranks: 2048 + 1 is 2048 in fp16, and 1 + 1 + 2048
// would be 2050.
TEST_F(Hccl, HCL_07_HalvesAreRoundedAtEachStepInTheOrderOfTheRanks) {
  for (const size_t count : {size_t{8}, size_t{50000}}) {
    OnRanks(3, [&](Rank& rank) {
      const aclFloat16 own = aclFloatToFloat16(rank.rank == 0 ? 2048 : 1);
      aclFloat16* data = rank.UploadAll(std::vector<aclFloat16>(count, own));
      EXPECT_HCCL(HCCL_SUCCESS, HcclAllReduce(data, data, count, HCCL_DATA_TYPE_FP16,
                                              HCCL_REDUCE_SUM, rank.comm, rank.stream));
      EXPECT_OK(aclrtSynchronizeStream(rank.stream));
      EXPECT_EQ(rank.Download(data, count),
                std::vector<aclFloat16>(count, aclFloatToFloat16(2048)));
    });
  }
}

// Runs a call that does not fit, and looks at the sentences of both ranks.
void ExpectFailure(const std::function<HcclResult(Rank&)>& call, HcclResult code,
                   aclError stream_code, const std::vector<std::string>& words) {
  OnRanks(2, [&](Rank& rank) {
    EXPECT_HCCL(HCCL_SUCCESS, call(rank));
    EXPECT_CODE(stream_code, aclrtSynchronizeStream(rank.stream));
    const std::string text = aclGetRecentErrMsg();
    for (const std::string& word : words) {
      EXPECT_NE(text.find(word), std::string::npos) << word << " is missing in: " << text;
    }
    HcclResult error = HCCL_SUCCESS;
    EXPECT_HCCL(HCCL_SUCCESS, HcclGetCommAsyncError(rank.comm, &error));
    EXPECT_EQ(error, code);
  });
}

TEST_F(Hccl, HCL_08_AnotherCountIsFoundOnBothRanks) {
  ExpectFailure(
      [](Rank& rank) {
        float* data = rank.UploadAll(Of(0, 8));
        return HcclAllReduce(data, data, rank.rank == 0 ? 4 : 8, kFloat, HCCL_REDUCE_SUM, rank.comm,
                             rank.stream);
      },
      HCCL_E_PARA, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR,
      {"EI0005", "count", "HcclAllReduce(count 4, fp32, sum)", "HcclAllReduce(count 8, fp32, sum)",
       "rank 0", "rank 1", "Collective 1"});
}

TEST_F(Hccl, HCL_08_AnotherKindIsFoundOnBothRanks) {
  ExpectFailure(
      [](Rank& rank) {
        float* data = rank.UploadAll(Of(0, 8));
        if (rank.rank == 0) return HcclBroadcast(data, 4, kFloat, 0, rank.comm, rank.stream);
        return HcclAllGather(data, data, 4, kFloat, rank.comm, rank.stream);
      },
      HCCL_E_PARA, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR,
      {"EI0005", "HcclBroadcast(count 4, fp32, root 0)", "HcclAllGather(count 4, fp32)"});
}

TEST_F(Hccl, HCL_08_UnevenCountsThatDoNotFitAreFound) {
  ExpectFailure(
      [](Rank& rank) {
        float* data = rank.UploadAll(Of(0, 64));
        // Rank 0 sends three elements to rank 1, which wants four.
        const uint64_t sent[2] = {1, rank.rank == 0 ? 3u : 1u}, places[2] = {0, 8};
        const uint64_t wanted[2] = {rank.rank == 0 ? 1u : 4u, 1};
        return HcclAlltoAllV(data, sent, places, kFloat, data + 32, wanted, places, kFloat,
                             rank.comm, rank.stream);
      },
      HCCL_E_PARA, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR,
      {"EI0005", "rank 0 sends 3 elements to rank 1, which wants 4"});
}

TEST_F(Hccl, HCL_08_AMessageOfAnotherDtypeIsFoundOnBothRanks) {
  ExpectFailure(
      [](Rank& rank) {
        float* data = rank.UploadAll(Of(0, 8));
        if (rank.rank == 0) return HcclSend(data, 4, kFloat, 1, rank.comm, rank.stream);
        return HcclRecv(data, 4, HCCL_DATA_TYPE_INT32, 0, rank.comm, rank.stream);
      },
      HCCL_E_PARA, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR,
      {"EI0005", "HcclSend(count 4, fp32)", "HcclRecv(count 4, int32)"});
}

TEST_F(Hccl, HCL_08_ACapturedCallDoesNotMeetAnEagerOne) {
  OnRanks(2, [](Rank& rank) {
    float* data = rank.UploadAll(Of(0, 8));
    aclmdlRI model = nullptr;
    if (rank.rank == 0) {
      ASSERT_OK(aclmdlRICaptureBegin(rank.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    }
    EXPECT_HCCL(HCCL_SUCCESS,
                HcclAllReduce(data, data, 8, kFloat, HCCL_REDUCE_SUM, rank.comm, rank.stream));
    if (rank.rank == 0) {
      ASSERT_OK(aclmdlRICaptureEnd(rank.stream, &model));
      ASSERT_OK(aclmdlRIExecuteAsync(model, rank.stream));
    }
    EXPECT_NE(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
    const std::string text = aclGetRecentErrMsg();
    EXPECT_NE(text.find("captured call 1"), std::string::npos) << text;
    EXPECT_NE(text.find("not captured"), std::string::npos) << text;
    if (model != nullptr) {
      EXPECT_OK(aclmdlRIDestroy(model));
    }
  });
}

TEST_F(Hccl, HCL_09_ACommunicatorThatIsDestroyedEndsWhatWaits) {
  std::vector<int32_t> devices = {0, 1};
  std::vector<HcclComm> comms(2);
  ASSERT_EQ(HcclCommInitAll(2, devices.data(), comms.data()), HCCL_SUCCESS);
  OnRanks(1, [&](Rank& rank) {
    float* data = rank.UploadAll(Of(0, 8));
    EXPECT_HCCL(HCCL_SUCCESS,
                HcclAllReduce(data, data, 8, kFloat, HCCL_REDUCE_SUM, comms[0], rank.stream));
    EXPECT_HCCL(HCCL_SUCCESS, HcclCommDestroy(comms[0]));
    EXPECT_NE(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
    const std::string text = aclGetRecentErrMsg();
    EXPECT_NE(text.find("was destroyed before it ended"), std::string::npos) << text;
    // The other rank does not wait for one that has left.
    EXPECT_HCCL(HCCL_SUCCESS,
                HcclAllReduce(data, data, 8, kFloat, HCCL_REDUCE_SUM, comms[1], rank.stream));
    EXPECT_NE(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
    const std::string left = aclGetRecentErrMsg();
    EXPECT_NE(left.find("rank 1 waits in collective 1, HcclAllReduce(count 8, fp32, sum), of "),
              std::string::npos)
        << left;
    EXPECT_NE(left.find("has destroyed the communicator"), std::string::npos) << left;
  });
  EXPECT_EQ(HcclCommDestroy(comms[1]), HCCL_SUCCESS);
}

TEST_F(Hccl, HCL_09_AnAbortedStreamEndsTheOthersToo) {
  OnRanks(2, [](Rank& rank) {
    float* data = rank.UploadAll(Of(0, 8));
    if (rank.rank == 0) {
      EXPECT_HCCL(HCCL_SUCCESS,
                  HcclAllReduce(data, data, 8, kFloat, HCCL_REDUCE_SUM, rank.comm, rank.stream));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_OK(aclrtStreamAbort(rank.stream));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_HCCL(HCCL_SUCCESS,
                  HcclAllReduce(data, data, 8, kFloat, HCCL_REDUCE_SUM, rank.comm, rank.stream));
      EXPECT_CODE(ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, aclrtSynchronizeStream(rank.stream));
      const std::string text = aclGetRecentErrMsg();
      EXPECT_NE(text.find("rank 0 of communicator"), std::string::npos) << text;
      EXPECT_NE(text.find("was aborted in collective 1"), std::string::npos) << text;
    }
  });
}

TEST_F(Hccl, HCL_09_MemoryThatIsGoneEndsTheCollectiveOnAllRanks) {
  OnRanks(2, [](Rank& rank) {
    float* data = rank.UploadAll(Of(0, 8));
    aclmdlRI model = nullptr;
    ASSERT_OK(aclmdlRICaptureBegin(rank.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_HCCL(HCCL_SUCCESS,
                HcclAllReduce(data, data, 8, kFloat, HCCL_REDUCE_SUM, rank.comm, rank.stream));
    ASSERT_OK(aclmdlRICaptureEnd(rank.stream, &model));
    if (rank.rank == 0) {
      ASSERT_OK(aclrtFree(data));
    }
    ASSERT_OK(aclmdlRIExecuteAsync(model, rank.stream));
    EXPECT_NE(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
    const std::string text = aclGetRecentErrMsg();
    EXPECT_NE(text.find("HcclAllReduce"), std::string::npos) << text;
    EXPECT_NE(text.find("sendBuf"), std::string::npos) << text;
    EXPECT_OK(aclmdlRIDestroy(model));
  });
}

}  // namespace
}  // namespace acltape::hccl
