#pragma once

// Text that somebody else wrote (an id, a title, a column's name, a path) as it may be shown on a
// terminal or in one cell of a table. Escape sequences could otherwise clear the screen, retitle
// the window or hide what is shown, and a tab or a newline would break the table.

#include <string>
#include <string_view>

namespace cfaa {

// The text with every control character (C0, DEL, C1, line separators, changes of direction) and
// every byte that is not UTF-8 written as \n, \t, \x1B or \u202E. All else stays as it is.
std::string printable(std::string_view text);

// Whether the text holds a control character of C0, C1 or DEL.
bool has_control(std::string_view text);

}  // namespace cfaa
