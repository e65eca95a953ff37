#pragma once

// Requests to responses: paths, parameters, limits, the token, JSON. No sockets here, and no
// thread.
//
//   Answers answers(served, {.token = "..."});
//   const Response response = answers.answer(request, worker);
//
// | GET /            | the page, with /page.js and /page.css                                    |
// | GET /recommend   | user, top, why; run and domain where several are served                   |
// | POST /recommend  | {"reviews": [{"item", "rating", "text"}], "top", "why", "run", "domain"}  |
// | GET /similar     | item, top                                                                 |
// | GET /history     | user: what the user liked in training                                     |
// | GET /find        | kind=users or items, text, top                                            |
// | GET /runs, /healthz, /metrics, /openapi.json                                                 |
//
// What cannot be answered is {"error": "a sentence"} with a status of 400, 401, 403, 404, 405, 413,
// 415, or 500 where the fault is the server's, which then says why in its log.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/serve/counters.h"
#include "host/serve/request.h"
#include "host/serve/served.h"

namespace cfaa {

// What a request may be at most.
struct RequestLimits {
  static constexpr int64_t kTop = 100;
  static constexpr int64_t kReviews = 100;
  static constexpr double kRating = 1000;             // and not below less that
  static constexpr std::size_t kTextBytes = 20'000;   // of one review
  static constexpr std::size_t kIdBytes = 1024;       // of a user, an item or what is searched
  static constexpr std::size_t kBodyBytes = 1 << 20;  // of a POST
};

struct AnswerOptions {
  std::string token;  // "": none is asked for
  // What the header Host may name, without a port; empty: anything. A page of somebody else whose
  // name was made to mean this machine has another.
  std::vector<std::string> hosts;
};

class Answers {
 public:
  // Both must outlive it.
  Answers(Served& served, Counters& counters, AnswerOptions options = {});

  // From several threads at a time, each with another worker < served.workers().
  Response answer(const Request& request, int worker);

  // Whether a request is answered without the runs, in no time: such need not wait for a worker.
  static bool is_quick(const Request& request);

  // A response without its headers but those that every response has.
  static Response refusal(int status, const std::string& sentence);
  // The path as counters know it: one of those above, or "other".
  static std::string_view counted_path(std::string_view path);

 private:
  Response dispatch(const Request& request, int worker);

  Served& served_;
  Counters& counters_;
  AnswerOptions options_;
};

}  // namespace cfaa
