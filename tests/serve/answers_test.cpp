// Requests and their responses, without sockets and without a run.

#include "host/serve/answers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/serve/stand_in.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

class ServedAnswers : public testing::Test {
 protected:
  Response get(const std::string& path, decltype(Request::query) query = {}) {
    Request request;
    request.path = path;
    request.query = std::move(query);
    return ask(request);
  }
  Response post(const std::string& body, const std::string& type = "application/json") {
    Request request;
    request.method = "POST";
    request.path = "/recommend";
    request.content_type = type;
    request.body = body;
    return ask(request);
  }
  Response ask(const Request& request) {
    return Answers(served_, counters_, options_).answer(request, 0);
  }
  static std::string error(const Response& response) {
    return json::parse(response.body).at("error");
  }
  static std::string header(const Response& response, const std::string& name) {
    for (const auto& [its, value] : response.headers) {
      if (its == name) return value;
    }
    return "";
  }

  StandIn served_;
  Counters counters_;
  AnswerOptions options_;
};

TEST_F(ServedAnswers, AListHasAsManyItemsAsWereAskedFor) {
  const Response response = get("/recommend", {{"user", "ann"}, {"top", "1"}, {"why", "true"}});

  ASSERT_EQ(response.status, 200);
  const json list = json::parse(response.body);
  EXPECT_EQ(list["user"], "ann");
  ASSERT_EQ(list["items"].size(), 1u);
  EXPECT_EQ(list["items"][0]["item"], "i1");
  EXPECT_EQ(list["items"][0]["signal"], "popularity");
}

TEST_F(ServedAnswers, WhatIsWrongWithAQueryIsNamed) {
  const auto refused = [&](decltype(Request::query) query) {
    const Response response = get("/recommend", std::move(query));
    EXPECT_EQ(response.status, 400);
    return error(response);
  };

  EXPECT_EQ(refused({}), "'user' is missing");
  EXPECT_EQ(refused({{"user", ""}}), "'user' is empty");
  EXPECT_EQ(refused({{"user", "ann"}, {"user", "bob"}}), "'user' was given twice");
  EXPECT_EQ(refused({{"user", "\xff"}}), "'user' is not UTF-8");
  EXPECT_EQ(refused({{"user", std::string(2000, 'x')}}), "'user' is longer than 1024 bytes");
  for (const char* top : {"0", "101", "-1", "99999999999999999999", "1x", "", "1.5"}) {
    EXPECT_NE(refused({{"user", "ann"}, {"top", top}}).find("'top' is not"), std::string::npos);
  }
  EXPECT_EQ(refused({{"user", "ann"}, {"why", "yes"}}), "'why' is not true or false");
  EXPECT_EQ(refused({{"user", "ann"}, {"domain", "both"}}), "'domain' is not target or source");
  EXPECT_EQ(refused({{"user", "ann"}, {"file", "/etc/passwd"}}),
            "there is a parameter that this path does not have");
}

TEST_F(ServedAnswers, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(get("/recommend", {{"user", "eve"}}).status, 404);
  EXPECT_EQ(get("/recommend", {{"user", "ann"}, {"run", "../run"}}).status, 404);
  EXPECT_EQ(get("/similar", {{"item", "i9"}}).status, 404);
  for (const char* path : {"/etc/passwd", "/../run.json", "//", "/recommend/", "", "/page.js/.."}) {
    EXPECT_EQ(get(path).status, 404) << path;
  }
}

TEST_F(ServedAnswers, AFaultOfTheServerTellsNothingOfIt) {
  const Response response = get("/recommend", {{"user", "broken"}});

  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body.find("secret"), std::string::npos);
}

TEST_F(ServedAnswers, PostedReviewsMakeAList) {
  const Response response =
      post(R"({"reviews": [{"item": "i1", "rating": 2, "text": "dull"}, {"item": "zz"}],
               "top": 2, "why": true, "domain": "target"})",
           "application/json; charset=utf-8");

  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(json::parse(response.body)["items"].size(), 2u);
  EXPECT_EQ(json::parse(response.body)["unknown_items"], json({"zz"}));
  ASSERT_EQ(served_.last.size(), 2u);
  EXPECT_EQ(served_.last[0].text, "dull");
  EXPECT_EQ(served_.last[0].rating, 2);
  EXPECT_FALSE(served_.last[1].rating.has_value());
}

TEST_F(ServedAnswers, APostThatIsNoneIsRefused) {
  const auto refused = [&](const std::string& body) {
    const Response response = post(body);
    EXPECT_EQ(response.status, 400) << body;
    return response.status == 400 ? error(response) : "";
  };

  EXPECT_EQ(refused("nothing"), "the body is not a JSON object");
  EXPECT_EQ(refused("[]"), "the body is not a JSON object");
  EXPECT_EQ(refused(std::string(100000, '[')), "the body is not a JSON object");
  EXPECT_EQ(refused("{}"), "'reviews' is missing, or not a list");
  EXPECT_EQ(refused(R"({"reviews": []})"), "'reviews' are not from 1 to 100");
  EXPECT_EQ(refused(R"({"reviews": [3]})"), "a review is not an object");
  EXPECT_EQ(refused(R"({"reviews": [{"item": 3}]})"), "'item' is not a text");
  EXPECT_EQ(refused(R"({"reviews": [{"text": "x"}]})"), "'item' is empty");
  EXPECT_EQ(refused(R"({"reviews": [{"item": "i1", "rating": 1e9}]})"),
            "'rating' is not from -1000 to 1000");
  EXPECT_EQ(refused(R"({"reviews": [{"item": "i1", "rating": null}]})"),
            "'rating' is not a number");
  EXPECT_EQ(refused(R"({"reviews": [{"item": "i1", "x": 1}]})"),
            "there is a field that is none of item, rating, text");
  EXPECT_EQ(refused(R"({"reviews": [{"item": "i1"}], "top": 1.5})"), "'top' is not a whole number");
  EXPECT_EQ(refused(R"({"reviews": [{"item": "i1"}], "top": 1e300})"),
            "'top' is not from 1 to 100");
  EXPECT_EQ(post(R"({"reviews": [{"item": "i1"}], "top": 2.0})").status, 200);
  EXPECT_EQ(
      refused(json({{"reviews", {{{"item", "i1"}, {"text", std::string(20001, 'x')}}}}}).dump()),
      "the text of a review is longer than 20000 bytes");
  EXPECT_EQ(post("{}", "text/plain").status, 415);
  EXPECT_EQ(post("{}", "application/jsonp").status, 415);
  EXPECT_EQ(post(std::string((1 << 20) + 1, ' ')).status, 413);
}

TEST_F(ServedAnswers, AnotherMethodIsToldWhichThereAre) {
  Request request;
  request.path = "/recommend";
  request.method = "DELETE";
  const Response refused = ask(request);
  request.path = "/similar";
  request.method = "POST";

  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(header(refused, "Allow"), "GET, HEAD, POST");
  EXPECT_EQ(ask(request).status, 405);
}

TEST_F(ServedAnswers, ATokenIsAskedForByAllThatSaysSomethingOfTheData) {
  options_.token = "0123456789abcdef";
  Request request;
  request.path = "/recommend";
  request.query = {{"user", "ann"}};
  const auto with = [&](const std::string& authorization) {
    request.authorization = authorization;
    return ask(request).status;
  };

  for (const char* path : {"/recommend", "/similar", "/history", "/find", "/runs", "/metrics"}) {
    EXPECT_EQ(get(path).status, 401) << path;
    EXPECT_EQ(header(get(path), "WWW-Authenticate"), "Bearer");
  }
  for (const char* path : {"/", "/page.js", "/page.css", "/healthz", "/openapi.json"}) {
    EXPECT_EQ(get(path).status, 200) << path;
  }
  EXPECT_EQ(with("Bearer 0123456789abcdef"), 200);
  EXPECT_EQ(with("Bearer 0123456789abcdeF"), 401);
  EXPECT_EQ(with("Bearer 0123456789abcdef0"), 401);
  EXPECT_EQ(with("Bearer "), 401);
  EXPECT_EQ(with("0123456789abcdef"), 401);
}

// A page of somebody else that made its own name mean this machine.
TEST_F(ServedAnswers, AnotherHostIsRefused) {
  options_.hosts = {"localhost", "127.0.0.1", "[::1]"};
  Request request;
  request.path = "/runs";
  const auto with = [&](const std::string& host) {
    request.host = host;
    return ask(request).status;
  };

  for (const char* host : {"localhost:8080", "127.0.0.1", "[::1]:80", "[::1]"}) {
    EXPECT_EQ(with(host), 200) << host;
  }
  for (const char* host : {"evil.example:8080", "", "localhost.evil.example", ":80"}) {
    EXPECT_EQ(with(host), 403) << host;
  }
}

TEST_F(ServedAnswers, EveryResponseTellsABrowserToLoadNothingElse) {
  for (const char* path : {"/", "/healthz", "/nothing", "/history"}) {
    const Response response = get(path, {});

    EXPECT_NE(header(response, "Content-Security-Policy").find("default-src 'none'"),
              std::string::npos);
    EXPECT_EQ(header(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(header(response, "X-Frame-Options"), "DENY");
    EXPECT_EQ(header(response, "Cache-Control"), "no-store");
    EXPECT_EQ(header(response, "Referrer-Policy"), "no-referrer");
  }
  EXPECT_EQ(get("/history", {{"user", "ann"}}).type, "application/json");
}

TEST_F(ServedAnswers, TheDescriptionHasEveryPathForPrograms) {
  const json description = json::parse(get("/openapi.json").body);

  for (const char* path : {"/recommend", "/similar", "/history", "/find", "/runs", "/healthz"}) {
    EXPECT_TRUE(description["paths"].contains(path)) << path;
  }
  EXPECT_TRUE(description["paths"]["/recommend"].contains("post"));
}

TEST_F(ServedAnswers, CountersAreThoseOfPrometheus) {
  counters_.count("/recommend", 200, 0.002);
  counters_.count("/recommend", 200, 7);
  counters_.count(Answers::counted_path("/no\"thing\n"), 404, 0);
  counters_.count_reload(true);
  const std::string text = get("/metrics").body;

  for (const char* line : {"cfaa_requests_total{path=\"/recommend\",status=\"200\"} 2\n",
                           "cfaa_request_seconds_bucket{path=\"/recommend\",le=\"0.0025\"} 1\n",
                           "cfaa_request_seconds_bucket{path=\"/recommend\",le=\"+Inf\"} 2\n",
                           "cfaa_requests_total{path=\"other\",status=\"404\"} 1\n",
                           "cfaa_reloads_total{result=\"ok\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace cfaa::test
