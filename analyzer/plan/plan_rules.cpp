#include "analyzer/plan/plan_rules.h"

namespace acltape::analyzer::plan {
namespace {

constexpr PlanRuleRow kRules[] = {
    {"PLAN-01", "the file is JSON"},
    {"PLAN-02", "it has no key that the format lacks"},
    {"PLAN-03", "it has every key that the format demands"},
    {"PLAN-04", "every value is of its type and in its range"},
    {"PLAN-05", "its version is one that this build reads"},
    {"PLAN-06", "it was made for this trace and a step of it"},
    {"PLAN-07", "every call that it names is work of the step"},
    {"PLAN-08", "the operator written beside a call is the recorded one"},
    {"PLAN-09", "no call lies in two regions"},
    {"PLAN-10", "every call of the step lies in a region"},
    {"PLAN-11", "an eager region has neither placements nor waits"},
    {"PLAN-12", "no captured region holds a call that ends a capture"},
    {"PLAN-13", "what a row of a region names lies in that region"},
    {"PLAN-14", "no call is placed twice"},
    {"PLAN-15", "every call of a captured region is placed"},
    {"PLAN-16", "streams are numbered from 0 and below the plan's number of streams"},
    {"PLAN-17", "no call waits for itself"},
    {"PLAN-18", "waits and the order within streams make no cycle"},
    {"PLAN-19", "an event is recorded before it is waited for, in order of issue"},
    {"PLAN-20", "an event is recorded again only after all waits for its last record"},
    {"PLAN-21", "a call is issued after those on whose bytes it depends"},
    {"PLAN-22", "calls that touch the same bytes on two streams are ordered by waits"},
    {"PLAN-23", "the limits of its SoC are known"},
    {"PLAN-24", "captured streams are as many as the SoC has"},
    {"PLAN-25", "events are as many as the SoC has"},
    {"PLAN-26", "a captured stream has as many entries as its queue holds"},
    {"PLAN-27", "what is copied in is an input of the step"},
    {"PLAN-28", "an updated argument is a host value of its call"},
    {"PLAN-29", "an updated call is captured and of a kind that a task update takes"},
};
static_assert(std::size(kRules) == static_cast<size_t>(PlanRule::kNoUpdate) + 1);

}  // namespace

const PlanRuleRow& RowOf(PlanRule rule) { return kRules[static_cast<size_t>(rule)]; }

std::span<const PlanRuleRow> PlanRules() { return kRules; }

}  // namespace acltape::analyzer::plan
