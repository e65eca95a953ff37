#pragma once

// The files of host/serve/page, as the build embeds them.

#include <string_view>

namespace cfaa {

extern const std::string_view kServePage;         // page.html
extern const std::string_view kServeScript;       // page.js, behind the elements of every page
extern const std::string_view kServeStyle;        // page.css, behind the style of every page
extern const std::string_view kServeDescription;  // openapi.json

}  // namespace cfaa
