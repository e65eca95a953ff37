#pragma once

// What pages are made of: the files of host/run/report/page, as the build embeds them. The style
// and the script's elements are every page's, the server's too.

#include <string_view>

namespace cfaa {

extern const std::string_view kPageStyle;     // style.css
extern const std::string_view kPageElements;  // elements.js: elements, cells, buttons that save
extern const std::string_view kReportPage;    // page.html, with places for the rest
extern const std::string_view kReportCharts, kReportScript;

}  // namespace cfaa
