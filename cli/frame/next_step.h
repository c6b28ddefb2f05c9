// Says what a user most likely does after a command, as one line: `next: acltape ...`.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace acltape::cli {

// The command line that comes after `command`, which has ended with this code, or an empty text.
// Taken from a table of rows (next_step.cpp), unless the command itself knew better.
std::string NextStep(const CLI::App& command, int code);

// The next command after one that found that one graph cannot serve the steps of a trace: in what
// these differ. Empty where there are no steps.
std::string NextWithoutCapture(const std::string& trace, int64_t steps);

// Names the process that a command looked at, where the trace has several and nobody picked one;
// else empty.
std::string ChosenProcess(const CLI::App& command);

// Called by a command whose results decide what comes next; an empty text: nothing does.
void SuggestNext(std::string command_line);

// True when the command printed tables for people and was not told to be quiet.
bool SpeaksToPeople(const CLI::App& command);

}  // namespace acltape::cli
