#pragma once

namespace cfaa {

// "0.2.0", as CMakeLists.txt says: of the library and of the program.
const char* version();

}  // namespace cfaa
