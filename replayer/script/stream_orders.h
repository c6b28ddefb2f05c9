// The orders in which the streams of a graph can run, on a device that can be told (the soft
// device's setting `order`). Every wait that a plan lacks shows in one of these orders.
#pragma once

#include <cstddef>
#include <vector>

#include "analyzer/plan/plan.h"
#include "replayer/script/planted_fault.h"

namespace acltape::replayer::script {

// Returns the number of streams of the plan's widest graph, 1 without a plan. A planted call that
// lacks a wait adds a stream.
int StreamsOf(const analyzer::plan::Plan* plan, const std::vector<PlantedFault>& faults);

// Asks the soft device for one order for each of `streams` streams. Does nothing if the environment
// already has ACLTAPE_SOFT_ORDER, or ACLTAPE_SOFT_JITTER, which draws orders. Returns the number of
// consecutive launches in which every order occurs; 1 if orders are not used. Must be called before
// the soft device is opened, because it reads its settings only once. Other devices do not read
// them.
int UseStreamOrders(int streams);

// Repeats the steps `run` until every order has occurred and the first order is next. A task that
// runs too early reads a value that the previous launch left. So two consecutive launches should be
// of different steps, and a single step takes turns with `other`.
std::vector<size_t> RunsOfOrders(std::vector<size_t> run, size_t other, int orders);

}  // namespace acltape::replayer::script
