#pragma once

// The page of a report as host/run/report/page.html has it: what the build makes of that file.

#include <string_view>

namespace cfaa {

// With REPORT_DATA where the data belongs.
extern const std::string_view kReportPage;

}  // namespace cfaa
