#include "replayer/acl_level/rank_meeting.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "storage/database.h"
#include "storage/error.h"

namespace acltape::replayer::acl_level {
namespace {

namespace fs = std::filesystem;

// Only for a process that was ended so that nobody could tell.
constexpr auto kPatience = std::chrono::minutes(10);
constexpr const char* kFailed = "failed";

struct Member {
  int64_t id = 0;
  std::string name;
  uint32_t rank = 0;
  uint32_t ranks = 0;
};

// The communicators of a process in the order of their names, which all ranks share: so no two
// ranks wait for each other in different ones.
std::vector<Member> MembersOf(const storage::Reader& trace) {
  storage::Statement rows(
      trace.database(),
      "SELECT c.communicator_id, c.name, c.rank, c.ranks, (SELECT count(DISTINCT o.rank) FROM "
      "communicator o WHERE o.name = c.name), EXISTS (SELECT 1 FROM collective k WHERE "
      "k.communicator = c.name) FROM communicator c WHERE c.process_id = ?1 "
      "ORDER BY c.name, c.communicator_id");
  rows.Bind(1, trace.process());
  std::vector<Member> members;
  while (rows.Next()) {
    Member member{rows.Integer(0), std::string(rows.Text(1)),
                  static_cast<uint32_t>(rows.Integer(2)), static_cast<uint32_t>(rows.Integer(3))};
    // A program may have asked for the name of a communicator on some ranks alone, and run nothing
    // on it.
    if (rows.Integer(4) != member.ranks && rows.Integer(5) == 0) continue;
    if (rows.Integer(4) != member.ranks) {
      throw Error(
          ErrorKind::kTrace,
          fmt::format("{} has {} of {} ranks of communicator {}, so they cannot be replayed "
                      "together; replay each alone",
                      trace.path(), rows.Integer(4), member.ranks, member.name));
    }
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace

void EndMeeting(const std::string& folder) { std::ofstream(folder + "/" + kFailed) << '\n'; }

RankMeeting::RankMeeting(const storage::Reader& trace, const Device& device,
                         const std::string& folder)
    : device_(device), functions_(LoadHccl(device.library())) {
  // A replay may meet more than once, with new communicators each time.
  static int meetings = 0;
  const int meeting = ++meetings;
  std::map<std::string, int> of_name;
  for (const Member& member : MembersOf(trace)) {
    const std::string file = fmt::format("{}/communicator.{}.{}.{}", folder, member.name,
                                         ++of_name[member.name], meeting);
    const HcclRootInfo info = RootInfo(folder, file, member.rank == 0);
    Check(functions_.CommInitRootInfo(member.ranks, &info, member.rank, &communicators_[member.id]),
          "HcclCommInitRootInfo for communicator " + member.name);
    char name[COMM_NAME_MAX_LENGTH + 1] = {};
    Check(functions_.GetCommName(communicators_[member.id], name), "HcclGetCommName");
    names_[member.name] = name;
  }
}

RankMeeting::~RankMeeting() {
  for (const auto& [id, communicator] : communicators_) {
    if (communicator != nullptr) functions_.CommDestroy(communicator);
  }
}

HcclRootInfo RankMeeting::RootInfo(const std::string& folder, const std::string& file,
                                   bool first) const {
  HcclRootInfo info{};
  if (first) {
    Check(functions_.GetRootInfo(&info), "HcclGetRootInfo");
    const std::string unfinished = file + ".new";
    std::ofstream(unfinished, std::ios::binary)
        .write(reinterpret_cast<const char*>(&info), sizeof(info));
    fs::rename(unfinished, file);
    return info;
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!fs::exists(file)) {
    if (fs::exists(folder + "/" + kFailed) || std::chrono::steady_clock::now() > until) {
      throw Error(ErrorKind::kDevice, "another rank did not come to the replay");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&info), sizeof(info));
  return info;
}

const std::string& RankMeeting::NameOf(const std::string& recorded, const std::string& call) const {
  const auto found = names_.find(recorded);
  if (found != names_.end()) return found->second;
  throw Error(ErrorKind::kTrace,
              fmt::format("{} names the group {}, and the trace does not know the ranks of such a "
                          "communicator: it saw neither collectives of it nor that each rank asked "
                          "for its name; replay each rank alone",
                          call, recorded));
}

void RankMeeting::Issue(const CollectiveCall& call, aclrtStream stream) const {
  const auto communicator = communicators_.find(call.communicator);
  if (communicator == communicators_.end()) {
    throw Error(ErrorKind::kTrace,
                call.function +
                    " names a communicator that the trace does not know; record the "
                    "program again, with this version of acltape");
  }
  Check(acl_level::Issue(functions_, call, communicator->second, stream), call.function);
}

void RankMeeting::Check(HcclResult code, const std::string& what) const {
  if (code == HCCL_SUCCESS) return;
  const char* text =
      device_.api().aclGetRecentErrMsg == nullptr ? nullptr : device_.api().aclGetRecentErrMsg();
  throw Error(ErrorKind::kDevice,
              fmt::format("{} failed with code {}{}{}", what, static_cast<int>(code),
                          text == nullptr ? "" : ": ", text == nullptr ? "" : text));
}

}  // namespace acltape::replayer::acl_level
