// The orders in which a graph's streams are let run, where the device can be told (the soft
// device's setting `order`): every wait that a plan lacks shows in one of them.
#pragma once

#include <cstddef>
#include <vector>

#include "analyzer/plan/plan.h"
#include "replayer/script/planted_fault.h"

namespace acltape::replayer {

// Streams of the plan's widest graph, 1 without a plan. A planted call that lacks a wait runs on a
// stream of its own.
int StreamsOf(const analyzer::Plan* plan, const std::vector<PlantedFault>& faults);

// Asks for an order of its own for each of `streams` streams, unless the environment asks for
// something already: ACLTAPE_SOFT_ORDER, or ACLTAPE_SOFT_JITTER, which draws instead. Returns how
// many launches in a row see every order; 1 when orders are not used. Call it before the soft
// device is opened, which reads its settings once; other devices do not read them.
int UseStreamOrders(int streams);

// The steps `run`, as often in a row as it takes until every order has come, and the first one
// comes next. A task that runs too early reads what the launch before left there, so that two
// launches in a row should be of different steps: a single step takes turns with `other`.
std::vector<size_t> RunsOfOrders(std::vector<size_t> run, size_t other, int orders);

}  // namespace acltape::replayer
