// The machine that carries out scripts: what replays use and experiments do not.
#include "replayer/engine/script_machine.h"

#include <gtest/gtest.h>

#include <cstring>

namespace acltape::replayer {
namespace {

// Keeps the bytes of what the script shows.
class Keeper final : public OutputTaker {
 public:
  explicit Keeper(Device& device) : device_(device) {}
  void Take(int observation, int output, const uint8_t* address) override {
    shown.push_back("output " + std::to_string(output) + " of " + std::to_string(observation) +
                    ": " + std::to_string(Number(address)));
  }
  void TakeHostRead(int observation, int output, const uint8_t* address) override {
    shown.push_back("host read " + std::to_string(output) + " of " + std::to_string(observation) +
                    ": " + std::to_string(Number(address)));
  }
  std::vector<std::string> shown;

 private:
  int32_t Number(const uint8_t* address) {
    const Block pinned(device_, Block::Kind::kPinned, sizeof(int32_t));
    device_.Download(pinned.data(), address, sizeof(int32_t));
    device_.Synchronize();
    int32_t number = 0;
    std::memcpy(&number, pinned.data(), sizeof number);
    return number;
  }
  Device& device_;
};

class ScriptMachineTest : public ::testing::Test {
 protected:
  ScriptMachineTest() : device_(""), uploader_(device_) { script_.blocks = {{"memory", 256, 0}}; }

  int Content(const std::vector<int32_t>& numbers) {
    auto bytes = std::make_shared<std::vector<uint8_t>>(numbers.size() * sizeof(int32_t));
    std::memcpy(bytes->data(), numbers.data(), bytes->size());
    const Bytes shared = bytes;
    script_.contents.push_back({"", static_cast<int64_t>(bytes->size()), [this, shared] {
                                  ++loads_;
                                  return shared;
                                }});
    return static_cast<int>(script_.contents.size()) - 1;
  }
  // An int32 that the script shows as output `number`.
  void ShowNumberAt(int64_t offset, int write) {
    storage::Layout layout;
    layout.dtype = storage::DType::kInt32;
    script_.outputs.push_back({1, 0, write, {0, offset}, layout});
  }

  Device device_;
  Uploader uploader_;
  Script script_;
  int loads_ = 0;
};

TEST_F(ScriptMachineTest, PiecesWithPaddingBetweenThemBecomeOneUpload) {
  script_.pieces = {{{0, 0}, Content({7}), 0, 4}, {{0, 64}, Content({8, 9}), 4, 4}};
  for (const int64_t offset : {0, 64}) ShowNumberAt(offset, 0);
  ScriptMachine machine(device_, uploader_, script_);
  machine.Prepare();
  Keeper keeper(device_);
  machine.Run(std::vector<Operation>{UploadTogether{{0, 0}, 68, 0, 2}, Observe{3, 0, 2}}, &keeper,
              nullptr);
  EXPECT_EQ(keeper.shown, (std::vector<std::string>{"output 0 of 3: 7", "output 1 of 3: 9"}));
}

TEST_F(ScriptMachineTest, WithoutATakerTheHostWaitsForWhatItReadsAndNothingIsObserved) {
  ShowNumberAt(0, -1);
  const std::vector<Operation> operations{UploadTo{{0, 0}, Content({5}), 0, 4}, ReadOnHost{2, 0}};
  ScriptMachine machine(device_, uploader_, script_);
  machine.Prepare();
  WaitClock clock;
  machine.Run(operations, nullptr, &clock);
  EXPECT_GT(clock.waited_ns, 0);
  Keeper keeper(device_);
  machine.Run(operations, &keeper, &clock);
  EXPECT_EQ(keeper.shown, (std::vector<std::string>{"host read 0 of 2: 5"}));
}

TEST_F(ScriptMachineTest, ContentsThatWereLoadedAheadAreNotReadAgain) {
  const std::vector<Operation> operations{UploadTo{{0, 0}, Content({5}), 0, 4}};
  ScriptMachine machine(device_, uploader_, script_);
  machine.Prepare();
  machine.Run(operations, nullptr, nullptr);
  machine.Run(operations, nullptr, nullptr);
  EXPECT_EQ(loads_, 2);
  machine.Load(operations);
  for (int i = 0; i < 3; ++i) machine.Run(operations, nullptr, nullptr);
  EXPECT_EQ(loads_, 3);
}

TEST_F(ScriptMachineTest, MemoryThatIsGivenIsUsedAndTheRestIsAllocated) {
  const Block own(device_, Block::Kind::kDevice, 64);
  script_.blocks.push_back({"given"});
  ShowNumberAt(0, 0);
  script_.outputs.back().spot.block = 1;
  ScriptMachine machine(device_, uploader_, script_);
  machine.Give(1, own.data());
  const std::vector<Operation> operations{UploadTo{{0, 0}, Content({6}), 0, 4},
                                          CopyBytes{{1, 0}, {0, 0}, 4}, Observe{0, 0, 1}};
  machine.Prepare();
  Keeper keeper(device_);
  machine.Run(operations, &keeper, nullptr);
  EXPECT_EQ(keeper.shown, (std::vector<std::string>{"output 0 of 0: 6"}));
}

TEST_F(ScriptMachineTest, AFailureEndsTheOpenCaptureSoThatTheDeviceCanBeUsedAgain) {
  script_.graphs = 1;
  const std::vector<Operation> fails{BeginCapture{0, ACL_MODEL_RI_CAPTURE_MODE_RELAXED},
                                     FillBytes{{0, 0}, 1, 4}, EndGroup{0, 0},  // no group was begun
                                     EndCapture{0}};
  script_.groups = 1;
  const std::vector<Operation> works{BeginCapture{0, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL},
                                     FillBytes{{0, 0}, 1, 4}, EndCapture{0}, ExecuteGraph{0, 0},
                                     Observe{0, 0, 1}};
  ShowNumberAt(0, 0);
  ScriptMachine machine(device_, uploader_, script_);
  machine.Prepare();
  EXPECT_THROW(machine.Run(fails, nullptr, nullptr), CallFailed);
  Keeper keeper(device_);
  machine.Run(works, &keeper, nullptr);
  EXPECT_EQ(keeper.shown, (std::vector<std::string>{"output 0 of 0: 16843009"}));
}

}  // namespace
}  // namespace acltape::replayer
