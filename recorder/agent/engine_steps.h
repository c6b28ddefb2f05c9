// Steps of an engine that runs in Python, as ranges; see engine_steps.py.
#pragma once

namespace acltape::agent {

// Leaves a call with the interpreter, if there is one, that sets up what follows the engine. Called
// once, when libtorch has been found.
void FollowEngineSteps();

}  // namespace acltape::agent
