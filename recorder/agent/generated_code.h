// Python code that a compiler of the framework generated from a program's functions.
//
// torch.compile traces a function into a torch.fx graph whose nodes know the lines that they come
// from. The backends npugraph_ex and torchair make a Python module of the graph and forget them.
// In that module, as in the code of a torch.fx.GraphModule, each node is the variable that its line
// assigns; the graph itself is held by an object whose method is among the callers.
#pragma once

#include "recorder/agent/interpreter.h"

namespace acltape::agent {

// True when the code of the frame, which says that it is in this file, was generated. The caller
// holds the interpreter's lock.
bool IsGenerated(const Interpreter& py, Object* frame, const char* file);

// Tells where the lines of the frame's code come from. The text has a line for each: the generated
// line, the file, the line in that file and the function, with tabs between them. Files whose path
// contains a line of `passed_over` are skipped; the next frame outside of them is given. Null when
// nothing is known. The caller frees the text. The caller holds the interpreter's lock, which may
// be given away for a moment.
char* OriginsOf(const Interpreter& py, Object* frame, const char* passed_over);

}  // namespace acltape::agent
