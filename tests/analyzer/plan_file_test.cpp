#include "analyzer/plan/plan_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "analyzer/plan/validate.h"
#include "tests/analyzer/plan_fixture.h"

namespace acltape::analyzer {
namespace {

using Json = nlohmann::ordered_json;
using test::PlannedProgram;

TEST(PlanFile, TextReadsBackEqual) {
  const plan::Plan plan = PlannedProgram::MakePlan();
  EXPECT_EQ(plan::ParsePlan(plan::PlanText(plan)), plan);
  EXPECT_EQ(plan::PlanText(plan::ParsePlan(plan::PlanText(plan))), plan::PlanText(plan));
}

TEST(PlanFile, EveryRowOfARegionIsALine) {
  const std::string text = plan::PlanText(PlannedProgram::MakePlan());
  for (const char* line :
       {"\n        {\"call\":2,\"stream\":0,\"op\":\"aten::mm\"},\n",
        "\n        {\"record_after\":4,\"wait_before\":5,\"event\":0}\n",
        "\n    {\"call\":2,\"argument\":\"self\",\"bytes\":64}\n",
        "\n    {\"region\":1,\"kind\":\"eager\",\"first_call\":6,\"last_call\":6,"
        "\"reason\":\"host read\",\"gain_ns\":1250.5},\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(PlanFile, AnUnbrokenPlanIsAccepted) {
  const PlannedProgram program;
  EXPECT_TRUE(plan::ValidatePlan(PlannedProgram::MakePlan(), program.work).empty());
}

TEST(PlanFile, WhatIsNoFileOrNoPlanIsNamed) {
  const PlannedProgram program;
  try {
    plan::ReadPlan("/nowhere/plan.json", program.work);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("/nowhere/plan.json"), std::string::npos);
  }
  EXPECT_THROW(plan::WritePlan(PlannedProgram::MakePlan(), "/nowhere/plan.json", {}), Error);
}

TEST(PlanFile, APlanThatNobodyEditedIsKnown) {
  const test::TemporaryTrace file("plan-json");
  const plan::Plan plan = PlannedProgram::MakePlan();
  plan::WritePlan(plan, file.path(), plan::PlanRules("", true));
  EXPECT_TRUE(plan::IsWrittenPlan(file.path()));
  std::ifstream in(file.path());
  const std::string written{std::istreambuf_iterator<char>(in), {}};
  const auto holds = [&](const std::string& text) {
    std::ofstream(file.path()) << text;
    return plan::IsWrittenPlan(file.path());
  };
  EXPECT_TRUE(holds(written));
  EXPECT_FALSE(holds(written + "\n"));
  EXPECT_FALSE(holds(written.substr(0, written.size() - 5)));
  EXPECT_FALSE(holds(plan::PlanText(plan))) << "has no digest";
  EXPECT_FALSE(holds("{}"));
  EXPECT_FALSE(holds(""));
  const size_t position = written.find("relaxed");
  ASSERT_NE(position, std::string::npos);
  EXPECT_FALSE(holds(std::string(written).replace(position, 7, "global")));
}

TEST(PlanFile, AFileIsValidatedWhenItIsRead) {
  const PlannedProgram program;
  const test::TemporaryTrace file("plan-json");
  plan::Plan plan = PlannedProgram::MakePlan();
  plan::WritePlan(plan, file.path(), plan::PlanRules("", true));
  EXPECT_EQ(plan::ReadPlan(file.path(), program.work), plan);
  plan.regions[0].placements[2].stream = 7;
  plan::WritePlan(plan, file.path(), plan::PlanRules("", true));
  try {
    plan::ReadPlan(file.path(), program.work);
    FAIL();
  } catch (const plan::PlanError& error) {
    EXPECT_EQ(error.rule(), plan::PlanRule::kStreamRange);
    EXPECT_EQ(error.what(), file.path() +
                                ": region 0, placement 2 (call 4): stream 7 does not exist, the "
                                "plan has 2 from 0 on (PLAN-16)");
  }
}

// An edit of the unbroken plan's JSON, and the rule and row that refuse it.
struct BrokenEdit {
  const char* name;
  std::function<void(Json&)> edit;
  plan::PlanRule rule;
  const char* row;
};

void PrintTo(const BrokenEdit& edit, std::ostream* stream) { *stream << edit.name; }

class BrokenPlan : public testing::TestWithParam<BrokenEdit> {};

TEST_P(BrokenPlan, IsRefusedWithItsRowAndRule) {
  const PlannedProgram program;
  Json json = Json::parse(plan::PlanText(PlannedProgram::MakePlan()));
  GetParam().edit(json);
  try {
    plan::ValidatePlan(plan::ParsePlan(json.dump()), program.work);
    FAIL() << "accepted: " << json.dump(1);
  } catch (const plan::PlanError& error) {
    EXPECT_EQ(plan::RowOf(error.rule()).id, plan::RowOf(GetParam().rule).id) << error.what();
    EXPECT_EQ(error.row(), GetParam().row) << error.what();
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_EQ(text.find(". "), std::string::npos) << "one sentence: " << text;
    EXPECT_LT(text.size(), 500u) << text;
  }
}

Json& RegionOf(Json& plan, int region) { return plan["regions"][region]; }
Json& Placement(Json& plan, int placement) { return plan["regions"][0]["placements"][placement]; }
Json Wait(int64_t after, int64_t before, int event) {
  return {{"record_after", after}, {"wait_before", before}, {"event", event}};
}

const BrokenEdit kBroken[] = {
    {"UnknownKeyOfThePlan", [](Json& p) { p["colour"] = 1; }, plan::PlanRule::kUnknownKey, "plan"},
    {"UnknownKeyOfAPlacement", [](Json& p) { Placement(p, 1)["core"] = 1; },
     plan::PlanRule::kUnknownKey, "region 0, placement 1 (call 3)"},
    {"NoStreams", [](Json& p) { p.erase("streams"); }, plan::PlanRule::kMissingKey, "plan"},
    {"NoCallInAPlacement", [](Json& p) { Placement(p, 2).erase("call"); },
     plan::PlanRule::kMissingKey, "region 0, placement 2"},
    {"NoPlacementsOfACapturedRegion", [](Json& p) { RegionOf(p, 2).erase("placements"); },
     plan::PlanRule::kMissingKey, "region 2"},
    {"TextForAStream", [](Json& p) { Placement(p, 0)["stream"] = "one"; },
     plan::PlanRule::kWrongValue, "region 0, placement 0 (call 2)"},
    {"HalfAStream", [](Json& p) { Placement(p, 0)["stream"] = 0.5; }, plan::PlanRule::kWrongValue,
     "region 0, placement 0 (call 2)"},
    {"StreamBeyondThirtyTwoBits", [](Json& p) { Placement(p, 0)["stream"] = 4294967296; },
     plan::PlanRule::kWrongValue, "region 0, placement 0 (call 2)"},
    {"NegativeEvent", [](Json& p) { RegionOf(p, 0)["waits"][0]["event"] = -1; },
     plan::PlanRule::kWrongValue, "region 0, wait 0"},
    {"UnknownMode", [](Json& p) { p["capture_mode"] = "lax"; }, plan::PlanRule::kWrongValue,
     "plan"},
    {"UnknownKind", [](Json& p) { RegionOf(p, 1)["kind"] = "lazy"; }, plan::PlanRule::kWrongValue,
     "region 1"},
    {"LongTextForANumber", [](Json& p) { p["trace_calls"] = std::string(5000, 'a'); },
     plan::PlanRule::kWrongValue, "plan"},
    {"LongTextForARegion", [](Json& p) { p["regions"][1] = std::string(5000, 'a'); },
     plan::PlanRule::kWrongValue, "region 1"},
    {"LongMode", [](Json& p) { p["capture_mode"] = std::string(5000, 'a'); },
     plan::PlanRule::kWrongValue, "plan"},
    {"LongKey", [](Json& p) { p[std::string(5000, 'a')] = 1; }, plan::PlanRule::kUnknownKey,
     "plan"},
    {"LongOperator", [](Json& p) { Placement(p, 0)["op"] = std::string(5000, 'a'); },
     plan::PlanRule::kOtherOperator, "region 0, placement 0 (call 2)"},
    {"LongSoc", [](Json& p) { p["soc"] = std::string(5000, 'a'); }, plan::PlanRule::kUnknownSoc,
     "plan"},
    {"ListForAPlan", [](Json& p) { p = Json::array(); }, plan::PlanRule::kWrongValue, "plan"},
    {"RegionsOutOfOrder", [](Json& p) { std::swap(RegionOf(p, 0), RegionOf(p, 1)); },
     plan::PlanRule::kWrongValue, "region 0"},
    {"NewerVersion", [](Json& p) { p["version"] = 2; }, plan::PlanRule::kNewerVersion, "plan"},
    {"OtherTrace", [](Json& p) { p["trace_calls"] = 15; }, plan::PlanRule::kOtherTrace, "plan"},
    {"StepThatIsNot", [](Json& p) { p["step"] = 2; }, plan::PlanRule::kOtherTrace, "plan"},
    {"CallsOfAnotherStep", [](Json& p) { p["last_call"] = 9; }, plan::PlanRule::kOtherTrace,
     "plan"},
    {"CallThatIsNot", [](Json& p) { Placement(p, 3)["call"] = 99; }, plan::PlanRule::kUnknownCall,
     "region 0, placement 3 (call 99)"},
    {"CallOfTheNextStep", [](Json& p) { Placement(p, 3)["call"] = 10; },
     plan::PlanRule::kUnknownCall, "region 0, placement 3 (call 10)"},
    {"RegionThatBeginsWithAView", [](Json& p) { RegionOf(p, 0)["first_call"] = 1; },
     plan::PlanRule::kUnknownCall, "region 0"},
    {"AnotherOperator", [](Json& p) { Placement(p, 0)["op"] = "aten::bmm"; },
     plan::PlanRule::kOtherOperator, "region 0, placement 0 (call 2)"},
    {"RegionsOverlap", [](Json& p) { RegionOf(p, 1)["first_call"] = 5; },
     plan::PlanRule::kRegionOverlap, "region 1"},
    {"RegionInside", [](Json& p) { RegionOf(p, 0)["last_call"] = 8; }, plan::PlanRule::kBarrier,
     "region 0"},
    {"RegionBackwards",
     [](Json& p) {
       RegionOf(p, 2)["first_call"] = 8;
       RegionOf(p, 2)["last_call"] = 7;
     },
     plan::PlanRule::kRegionOverlap, "region 2"},
    {"GapBetweenRegions",
     [](Json& p) {
       p["regions"].erase(1);
       RegionOf(p, 1)["region"] = 1;
     },
     plan::PlanRule::kRegionGap, "region 1"},
    {"LastRegionMissing", [](Json& p) { p["regions"].erase(2); }, plan::PlanRule::kRegionGap,
     "plan"},
    {"PlacementInAnEagerRegion",
     [](Json& p) {
       RegionOf(p, 1)["placements"] = {{{"call", 6}, {"stream", 0}}};
     },
     plan::PlanRule::kEagerContents, "region 1"},
    {"HostReadInACapture",
     [](Json& p) {
       RegionOf(p, 1)["kind"] = "captured";
       RegionOf(p, 1)["placements"] = {{{"call", 6}, {"stream", 0}}};
     },
     plan::PlanRule::kBarrier, "region 1"},
    {"PlacementOfAnotherRegion", [](Json& p) { Placement(p, 3)["call"] = 7; },
     plan::PlanRule::kOutsideRegion, "region 0, placement 3 (call 7)"},
    {"WaitAcrossRegions", [](Json& p) { RegionOf(p, 2)["waits"] = {Wait(5, 7, 0)}; },
     plan::PlanRule::kOutsideRegion, "region 2, wait 0 (record after call 5, wait before call 7)"},
    {"CallTwice", [](Json& p) { Placement(p, 3)["call"] = 2; }, plan::PlanRule::kCallTwice,
     "region 0, placement 3 (call 2)"},
    {"CallNotPlaced", [](Json& p) { RegionOf(p, 0)["placements"].erase(3); },
     plan::PlanRule::kCallMissing, "region 0"},
    {"StreamThatIsNot", [](Json& p) { Placement(p, 1)["stream"] = 2; },
     plan::PlanRule::kStreamRange, "region 0, placement 1 (call 3)"},
    {"WaitForItself", [](Json& p) { RegionOf(p, 0)["waits"][0] = Wait(5, 5, 0); },
     plan::PlanRule::kSelfWait, "region 0, wait 0 (record after call 5, wait before call 5)"},
    {"WaitsInACircle", [](Json& p) { RegionOf(p, 0)["waits"].push_back(Wait(5, 4, 1)); },
     plan::PlanRule::kWaitCycle, "region 0, wait 1 (record after call 5, wait before call 4)"},
    {"WaitBeforeItsRecord", [](Json& p) { std::swap(Placement(p, 2), Placement(p, 3)); },
     plan::PlanRule::kWaitBackwards, "region 0, wait 0 (record after call 4, wait before call 5)"},
    {"EventRecordedAgainBeforeItsWaitIsIssued",
     [](Json& p) {
       RegionOf(p, 0)["waits"] = {Wait(2, 4, 0), Wait(3, 5, 0), Wait(4, 5, 1)};
     },
     plan::PlanRule::kEventReuse, "region 0, wait 1 (record after call 3, wait before call 5)"},
    {"EventRecordedAgainWhileItMayBeWaitedFor",
     [](Json& p) {
       std::swap(Placement(p, 1), Placement(p, 2));  // call 4 is issued before call 3
       RegionOf(p, 0)["waits"] = {Wait(2, 4, 0), Wait(3, 5, 0), Wait(4, 5, 1)};
     },
     plan::PlanRule::kEventReuse, "region 0, wait 1 (record after call 3, wait before call 5)"},
    {"IssuedBeforeWhatItReads", [](Json& p) { std::swap(Placement(p, 0), Placement(p, 1)); },
     plan::PlanRule::kIssueOrder, "region 0, placement 0 (call 3)"},
    {"NoWaitForAnotherStream", [](Json& p) { RegionOf(p, 0)["waits"].clear(); },
     plan::PlanRule::kRace, "region 0, placement 3 (call 5)"},
    {"UnknownSoc", [](Json& p) { p["soc"] = "Granite1"; }, plan::PlanRule::kUnknownSoc, "plan"},
    {"CopyOfWhatTheStepMakes", [](Json& p) { p["copies"][0]["call"] = 3; },
     plan::PlanRule::kNoInput, "copy 0 (call 3)"},
    {"CopyOfAResult", [](Json& p) { p["copies"][0]["argument"] = "out"; }, plan::PlanRule::kNoInput,
     "copy 0 (call 2)"},
    {"CopyOfNothing", [](Json& p) { p["copies"][0]["bytes"] = 0; }, plan::PlanRule::kWrongValue,
     "copy 0"},
    {"UpdateOfNoArgument", [](Json& p) { p["updates"][0]["argument"] = "beta"; },
     plan::PlanRule::kNoArgument, "update 0 (call 5)"},
    {"UpdateOfATensor", [](Json& p) { p["updates"][0]["argument"] = "self"; },
     plan::PlanRule::kNoArgument, "update 0 (call 5)"},
    {"UpdateOfAnEagerCall",
     [](Json& p) {
       RegionOf(p, 0)["kind"] = "eager";
       RegionOf(p, 0).erase("placements");
       RegionOf(p, 0).erase("waits");
     },
     plan::PlanRule::kNoUpdate, "update 0 (call 5)"},
};

INSTANTIATE_TEST_SUITE_P(Edits, BrokenPlan, testing::ValuesIn(kBroken),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PlanFile, WhatIsNoJsonIsRefusedWithItsByte) {
  try {
    plan::ParsePlan("{\"version\": 1,");
    FAIL();
  } catch (const plan::PlanError& error) {
    EXPECT_EQ(error.rule(), plan::PlanRule::kSyntax);
    EXPECT_EQ(error.row(), "byte 15");
  }
}

TEST(PlanFile, TheRaceNamesBothPlacementsAndTheMissingWait) {
  const PlannedProgram program;
  plan::Plan plan = PlannedProgram::MakePlan();
  plan.regions[0].waits.clear();
  std::string sentence;
  try {
    plan::ValidatePlan(plan, program.work);
  } catch (const plan::PlanError& error) {
    sentence = error.what();
  }
  for (const char* words : {"placement 3", "call 4 aten::relu (placement 2)", "RAW",
                            "add a wait with record_after 4 and wait_before 5", "PLAN-22"}) {
    EXPECT_NE(sentence.find(words), std::string::npos) << words << "\n" << sentence;
  }
}

TEST(PlanFile, ARaceIsAWarningWhereRacesAreAllowed) {
  const PlannedProgram program;
  plan::Plan plan = PlannedProgram::MakePlan();
  plan.regions[0].waits.clear();
  const std::vector<std::string> warnings =
      plan::ValidatePlan(plan, program.work, /*allow_races=*/true);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("PLAN-22"), std::string::npos);
  plan.regions[0].placements[1].stream = 9;  // other rules still hold
  EXPECT_THROW(plan::ValidatePlan(plan, program.work, true), plan::PlanError);
}

// A step of relu(x) many times over, placed on one stream with many waits.
TEST(PlanFile, MoreThanTheSocHasIsRefused) {
  const test::TemporaryTrace file("plan-budget");
  constexpr int kCalls = 600;
  {
    test::TraceBuilder trace(file.path());
    for (int i = 0; i < kCalls; ++i) {
      trace.Call("aten::relu", {test::In("self", trace.NewTensor({1}))},
                 {test::Out("out", trace.NewTensor({1}))});
    }
    trace.Finish();
  }
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  plan::Plan plan;
  plan.trace_calls = kCalls;
  plan.first_call = 1;
  plan.last_call = kCalls;
  plan.soc = "Ascend310B1";
  plan.streams = kCalls;
  plan::PlanRegion& region = plan.regions.emplace_back();
  region.captured = true;
  region.first_call = 1;
  region.last_call = kCalls;
  for (int i = 0; i < kCalls; ++i) region.placements.push_back({i + 1, i, ""});
  const auto rule_of = [&] {
    try {
      plan::ValidatePlan(plan, work);
    } catch (const plan::PlanError& error) {
      return std::string(plan::RowOf(error.rule()).id) + " " + error.row();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(rule_of(), "PLAN-24 region 0");  // 600 streams, 496 usable
  for (plan::PlanPlacement& place : region.placements) place.stream %= 400;
  EXPECT_EQ(rule_of(), "accepted");
  for (plan::PlanPlacement& place : region.placements) place.stream %= 2;
  for (int i = 0; i + 1 < kCalls; ++i) region.waits.push_back({i + 1, i + 2, i});
  EXPECT_EQ(rule_of(), "accepted");
  for (int copy = 0; copy < 2; ++copy) {
    for (int i = 0; i + 2 < kCalls; ++i) {
      region.waits.push_back({i + 1, i + 3, (copy + 1) * kCalls + i});
    }
  }
  EXPECT_EQ(rule_of(), "PLAN-25 region 0");  // 1795 events and two of the fork, 1023 are there
  region.waits.clear();
  for (int again = 0; again < 5; ++again) {
    for (int i = 0; i < kCalls - 1; ++i) {
      for (int later = i + 1; later < std::min(i + 110, kCalls); ++later) {
        region.waits.push_back({i + 1, later + 1, i});
      }
    }
  }
  EXPECT_EQ(rule_of(), "PLAN-26 region 0");  // a million entries
}

std::string Document() {
  std::ifstream file(std::string(ACLTAPE_SOURCE) + "/docs/plan_format.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(PlanFile, TheDocumentShowsAPlanThatIsAccepted) {
  const std::string text = Document();
  const size_t begin = text.find("```json\n") + 8;
  const PlannedProgram program;
  const plan::Plan plan = plan::ParsePlan(text.substr(begin, text.find("```", begin) - begin));
  EXPECT_TRUE(plan::ValidatePlan(plan, program.work).empty());
  EXPECT_EQ(plan.regions.size(), 3u);
  EXPECT_EQ(plan.updates.size(), 1u);
}

TEST(PlanFile, TheDocumentListsEveryRule) {
  const std::string text = Document();
  std::set<std::string_view> ids;
  for (const plan::PlanRuleRow& row : plan::PlanRules()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    const std::string line = "| " + std::string(row.id) + " | " + std::string(row.text) + " |";
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace acltape::analyzer
