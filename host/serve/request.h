#pragma once

// A request over HTTP and its response, without sockets: what the library of host/serve/
// http_server.cpp reads and writes, and what host/serve/answers.h makes of one the other.

#include <string>
#include <utility>
#include <vector>

namespace cfaa {

struct Request {
  std::string method = "GET";
  std::string path;                                        // decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in the order they came
  std::string host, authorization, content_type;           // headers; "" where absent
  std::string body;
};

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // beside Content-Type
};

}  // namespace cfaa
