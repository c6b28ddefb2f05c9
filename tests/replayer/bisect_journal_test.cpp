// Bisections that go on where they were stopped.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "replayer/bisect/element_text.h"
#include "replayer/bisect/journal.h"
#include "replayer/bisect/search.h"
#include "storage/error.h"

namespace acltape::replayer {
namespace {

constexpr char kSubject[] = R"({"trace": "t.db"})";

class BisectJournal : public testing::Test {
 protected:
  BisectJournal() {
    std::string folder = (std::filesystem::temp_directory_path() / "journal-XXXXXX").string();
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/j.jsonl";
  }
  ~BisectJournal() override { std::filesystem::remove_all(folder_); }

  std::string Text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> Lines() const {
    std::istringstream text(Text());
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  void Append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  std::string folder_;
  std::string path_;
};

// Fails when both of a pair are altered; ends its process in the middle of a given experiment.
class Killed : public script::Experiment {
 public:
  explicit Killed(int64_t number) : number_(number) {}
  size_t size() const override { return 200; }
  std::string Describe(size_t element) const override { return std::to_string(element); }
  std::string Command(const script::ElementSet& altered) const override {
    return bisect::ElementText(altered);
  }
  script::Outcome Try(const script::ElementSet& altered) override {
    if (tries++ == number_) raise(SIGKILL);
    script::Outcome outcome;
    outcome.executions = 1;
    if (std::binary_search(altered.begin(), altered.end(), size_t{41}) &&
        std::binary_search(altered.begin(), altered.end(), size_t{130})) {
      outcome.verdict = script::Outcome::Verdict::kBad;
      outcome.bad_executions = 1;
      outcome.fingerprint = "f";
      outcome.evidence = R"({"call":7})";
    }
    return outcome;
  }
  int64_t tries = 0;

 private:
  int64_t number_;
};

bisect::SearchResult Bisect(const std::string& path, Killed& program,
                            bisect::Trials** trials_seen = nullptr) {
  bisect::Journal journal(path, kSubject, false);
  static std::unique_ptr<bisect::Trials> trials;
  trials = std::make_unique<bisect::Trials>(program, bisect::TrialOptions{}, &journal);
  if (trials_seen != nullptr) *trials_seen = trials.get();
  return bisect::FindCauses(*trials, program.size(), {});
}

TEST_F(BisectJournal, AfterAKillAnywhereTheAnswerIsTheSameAndNothingIsDoneTwice) {
  Killed whole(-1);
  const bisect::SearchResult expected = Bisect(folder_ + "/whole.jsonl", whole);
  ASSERT_EQ(expected.causes.at(0).elements, (script::ElementSet{41, 130}));
  const int64_t experiments = whole.tries;
  ASSERT_GT(experiments, 15);

  for (int64_t kill_at = 0; kill_at < experiments; ++kill_at) {
    std::filesystem::remove(path_);
    const pid_t child = fork();
    if (child == 0) {
      Killed program(kill_at);
      Bisect(path_, program);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    ASSERT_EQ(Lines().size(), static_cast<size_t>(kill_at) + 1);

    Killed program(-1);
    bisect::Trials* trials = nullptr;
    const bisect::SearchResult result = Bisect(path_, program, &trials);
    EXPECT_EQ(result.causes.at(0).elements, expected.causes[0].elements);
    EXPECT_EQ(result.causes[0].outcome.evidence, expected.causes[0].outcome.evidence);
    EXPECT_EQ(result.causes[0].experiments, expected.causes[0].experiments);
    EXPECT_EQ(program.tries, experiments - kill_at) << "killed at " << kill_at;
    EXPECT_EQ(trials->from_journal(), kill_at);
    const std::vector<std::string> lines = Lines();
    EXPECT_EQ(lines.size(), static_cast<size_t>(experiments) + 1);
    EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), lines.size());
  }
}

TEST_F(BisectJournal, ATornLastLineIsDropped) {
  {
    bisect::Journal journal(path_, kSubject, false);
    journal.Append("search", {1, 2, 3}, {}, 0.5);
  }
  const std::string whole = Text();
  Append(R"({"experiment":"search","altered":"1-)");
  bisect::Journal journal(path_, kSubject, false);
  EXPECT_EQ(journal.found(), 1);
  EXPECT_EQ(Text(), whole);
  journal.Append("search", {4}, {}, 0.5);
  EXPECT_EQ(Lines().size(), 3U);
}

TEST_F(BisectJournal, ATornFirstLineIsANewJournal) {
  Write(R"({"acltape_jou)");
  const bisect::Journal journal(path_, kSubject, false);
  EXPECT_EQ(journal.found(), 0);
  EXPECT_EQ(Lines().size(), 1U);
}

TEST_F(BisectJournal, ExperimentsOfOneSetComeBackInTheirOrder) {
  script::Outcome good;
  good.executions = 3;
  script::Outcome bad = good;
  bad.verdict = script::Outcome::Verdict::kUnstable;
  bad.bad_executions = 2;
  bad.fingerprint = "abc";
  bad.evidence = R"({"output":0})";
  {
    bisect::Journal journal(path_, kSubject, false);
    journal.Append("search", {1}, good, 0);
    journal.Append("one_stream", {1}, good, 0);
    journal.Append("search", {1}, bad, 0);
  }
  bisect::Journal journal(path_, kSubject, false);
  EXPECT_EQ(journal.Take("search", {1})->verdict, script::Outcome::Verdict::kGood);
  const auto second = journal.Take("search", {1});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->verdict, bad.verdict);
  EXPECT_EQ(second->executions, 3);
  EXPECT_EQ(second->bad_executions, 2);
  EXPECT_EQ(second->fingerprint, "abc");
  EXPECT_EQ(second->evidence, bad.evidence);
  EXPECT_FALSE(journal.Take("search", {1}));
  EXPECT_FALSE(journal.Take("search", {2}));
}

void ExpectRefusal(const std::string& path, const char* subject, ErrorKind kind,
                   const char* words) {
  try {
    const bisect::Journal journal(path, subject, false);
    ADD_FAILURE() << "no error with " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST_F(BisectJournal, AnotherBisectionIsRefusedUnlessItBeginsAnew) {
  { const bisect::Journal journal(path_, kSubject, false); }
  ExpectRefusal(path_, R"({"trace": "other.db"})", ErrorKind::kUsage, "another bisection");
  const bisect::Journal journal(path_, R"({"trace": "other.db"})", true);
  EXPECT_EQ(Lines().size(), 1U);
}

TEST_F(BisectJournal, WhatIsNoJournalIsSaidToBeNoneAndStays) {
  for (const std::string text : {"hello\n", "no line's end", "{}\n"}) {
    Write(text);
    ExpectRefusal(path_, kSubject, ErrorKind::kTrace, "does not begin as a journal");
    EXPECT_THROW(bisect::Journal(path_, kSubject, true), Error);
    EXPECT_EQ(Text(), text);
  }
  std::filesystem::remove(path_);
  { const bisect::Journal journal(path_, kSubject, false); }
  Append("{\"altered\": 1}\n");
  ExpectRefusal(path_, kSubject, ErrorKind::kTrace, "line 2 is no experiment");
}

TEST_F(BisectJournal, TwoBisectionsDoNotShareAJournal) {
  const bisect::Journal journal(path_, kSubject, false);
  ExpectRefusal(path_, kSubject, ErrorKind::kUsage, "in use by another");
}

TEST_F(BisectJournal, AFolderThatIsNotThereIsSaid) {
  ExpectRefusal(folder_ + "/none/j.jsonl", kSubject, ErrorKind::kDevice, "cannot open the journal");
}

}  // namespace
}  // namespace acltape::replayer
