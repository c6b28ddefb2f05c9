// Python code that a compiler of the framework generated from a program's functions.
//
// torch.compile traces a function into a torch.fx graph whose nodes know the lines that they come
// from. The backends npugraph_ex and torchair make a Python module of the graph and forget them.
// In that module, as in the code of a torch.fx.GraphModule, each node is the variable that its line
// assigns; the graph itself is held by an object whose method is among the callers.
#pragma once

#include "recorder/acl/interpreter.h"

namespace acltape::acl_agent {

// Whether the code of the frame, of that file name, is generated. With the interpreter's lock held.
bool IsGenerated(const Interpreter& py, Object* frame, const char* file);

// Where the lines of the frame's code come from, a line of text each: the generated line, the file,
// the line in it and the function, with tabs between them. Origins whose file has a part in
// `passed_over` (a part a line) are not given: the next frame outside is. Null: not known. The
// caller frees it. With the interpreter's lock held, which may be given away for a moment.
char* OriginsOf(const Interpreter& py, Object* frame, const char* passed_over);

}  // namespace acltape::acl_agent
