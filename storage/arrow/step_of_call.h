// The SQL function step_of_call: the step whose calls include a call, as the view `call` has it.
#pragma once

namespace acltape::storage {

class Database;

namespace arrow {

// Adds the function to the connection. It is quickest for calls in their order: then a call costs a
// comparison, where the view looks into an index.
void AddStepOfCall(Database& database);

}  // namespace arrow

}  // namespace acltape::storage
