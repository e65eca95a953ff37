#pragma once

// What a server is asked, behind the library that reads HTTP: a line each for the method, the path,
// the headers Host, Authorization and Content-Type and the query, then the body.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "host/core/error.h"
#include "host/io/utf8.h"
#include "host/serve/answers.h"
#include "tests/serve/stand_in.h"

namespace cfaa::fuzz {

inline void http_request(std::string_view bytes) {
  const auto line = [&] {
    const std::size_t end = bytes.find('\n');
    const std::string text(bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    return text;
  };
  Request request;
  request.method = line();
  request.path = line();
  request.host = line();
  request.authorization = line();
  request.content_type = line();
  const std::string query = line();
  for (std::size_t at = 0; at < query.size();) {
    const std::size_t end = std::min(query.find('&', at), query.size());
    const std::string pair = query.substr(at, end - at);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    request.query.emplace_back(pair.substr(0, equals),
                               equals < pair.size() ? pair.substr(equals + 1) : "");
    at = end + 1;
  }
  request.body = std::string(bytes);

  test::StandIn served;
  Counters counters;
  Answers answers(served, counters, {.token = "0123456789abcdef", .hosts = {"localhost"}});
  const Response response = answers.answer(request, 0);
  counters.count(Answers::counted_path(request.path), response.status, 0);

  const auto holds = [](bool promise, const char* what) {
    if (!promise) assertion_failed(what, __FILE__, __LINE__);
  };
  holds(is_utf8(response.body), "a response is UTF-8");
  holds(response.status == 200 || response.status >= 400, "a status is of those documented");
  bool breaks = false;  // the user of the stand-in that does
  for (const auto& [name, value] : request.query) breaks = breaks || value == "broken";
  holds(response.status != 500 || breaks, "nothing but the runs fails");
  if (response.type == "application/json") {
    holds(nlohmann::json::accept(response.body), "JSON is JSON");
  }
  for (const auto& [name, value] : response.headers) {
    holds(value.find_first_of("\r\n") == std::string::npos, "a header is one line");
  }
}

}  // namespace cfaa::fuzz
