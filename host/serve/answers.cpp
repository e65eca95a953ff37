#include "host/serve/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/terminal/printable.h"
#include "host/core/version.h"
#include "host/io/json_file.h"
#include "host/io/utf8.h"
#include "host/run/report/page.h"
#include "host/run/run_json.h"
#include "host/serve/page.h"

namespace cfaa {
namespace {

using nlohmann::json;

struct Route {
  std::string_view path;
  std::string_view methods;  // as the header Allow has them
  bool open;                 // to those without the token
};
constexpr std::array<Route, 11> kRoutes = {{{"/", "GET, HEAD", true},
                                            {"/page.js", "GET, HEAD", true},
                                            {"/page.css", "GET, HEAD", true},
                                            {"/healthz", "GET, HEAD", true},
                                            {"/openapi.json", "GET, HEAD", true},
                                            {"/metrics", "GET, HEAD", false},
                                            {"/runs", "GET, HEAD", false},
                                            {"/recommend", "GET, HEAD, POST", false},
                                            {"/similar", "GET, HEAD", false},
                                            {"/history", "GET, HEAD", false},
                                            {"/find", "GET, HEAD", false}}};

const Route* route_of(std::string_view path) {
  const auto found = std::find_if(kRoutes.begin(), kRoutes.end(),
                                  [&](const Route& route) { return route.path == path; });
  return found == kRoutes.end() ? nullptr : &*found;
}

Response json_response(const json& fields) {
  Response response;
  response.body = fields.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

// Takes as long for every token of the right length.
bool same_token(std::string_view given, std::string_view token) {
  if (given.size() != token.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < token.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(token[i]);
  }
  return difference == 0;
}

// "127.0.0.1" of "127.0.0.1:8080", "[::1]" of "[::1]:8080".
std::string_view without_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || host.find(']', colon) != std::string_view::npos) {
    return host;
  }
  return host.substr(0, colon);
}

std::string checked_id(const std::string& name, const std::string& text) {
  if (text.empty()) throw BadRequest(fmt::format("'{}' is empty", name));
  if (text.size() > RequestLimits::kIdBytes) {
    throw BadRequest(fmt::format("'{}' is longer than {} bytes", name, RequestLimits::kIdBytes));
  }
  if (!is_utf8(text)) throw BadRequest(fmt::format("'{}' is not UTF-8", name));
  return text;
}

int64_t checked_top(int64_t top) {
  if (top < 1 || top > RequestLimits::kTop) {
    throw BadRequest(fmt::format("'top' is not from 1 to {}", RequestLimits::kTop));
  }
  return top;
}

// The parameters of a query: each at most once, and none but those asked for.
class Query {
 public:
  explicit Query(const Request& request) : query_(request.query), used_(query_.size()) {}

  const std::string* find(const std::string& name) {
    const std::string* value = nullptr;
    for (std::size_t i = 0; i < query_.size(); ++i) {
      if (query_[i].first != name) continue;
      if (value != nullptr) throw BadRequest(fmt::format("'{}' was given twice", name));
      value = &query_[i].second;
      used_[i] = true;
    }
    return value;
  }
  std::string id(const std::string& name) {
    const std::string* value = find(name);
    if (value == nullptr) throw BadRequest(fmt::format("'{}' is missing", name));
    return checked_id(name, *value);
  }
  int64_t top() {
    const std::string* value = find("top");
    if (value == nullptr) return 10;
    int64_t number = 0;
    const char* end = value->data() + value->size();
    const auto [stopped, error] = std::from_chars(value->data(), end, number);
    if (error != std::errc() || stopped != end) throw BadRequest("'top' is not a whole number");
    return checked_top(number);
  }
  bool flag(const std::string& name) {
    const std::string* value = find(name);
    if (value == nullptr || *value == "false") return false;
    if (*value != "true") throw BadRequest(fmt::format("'{}' is not true or false", name));
    return true;
  }
  Place place() {
    Place place;
    if (const std::string* run = find("run")) place.run = checked_id("run", *run);
    if (const std::string* domain = find("domain")) place.domain = checked_domain(*domain);
    return place;
  }
  static std::string checked_domain(const std::string& name) {
    if (name == "target" || name == "source") return name;
    throw BadRequest("'domain' is not target or source");
  }
  // To be called when all were asked for.
  void check() const {
    for (std::size_t i = 0; i < query_.size(); ++i) {
      if (!used_[i]) throw BadRequest("there is a parameter that this path does not have");
    }
  }

 private:
  const std::vector<std::pair<std::string, std::string>>& query_;
  std::vector<bool> used_;
};

struct PostedReviews {
  Place place;
  std::vector<WrittenReview> reviews;
  int64_t top = 10;
  bool reasons = false;
};

std::string text_field(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return "";
  if (!found->is_string()) throw BadRequest(fmt::format("'{}' is not a text", name));
  return found->get<std::string>();
}

void check_names(const json& object, std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : object.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw BadRequest(fmt::format("there is a field that is none of {}", fmt::join(names, ", ")));
    }
  }
}

WrittenReview written_review(const json& fields) {
  if (!fields.is_object()) throw BadRequest("a review is not an object");
  check_names(fields, {"item", "rating", "text"});
  WrittenReview review;
  review.item = checked_id("item", text_field(fields, "item"));
  review.text = text_field(fields, "text");
  if (review.text.size() > RequestLimits::kTextBytes) {
    throw BadRequest(
        fmt::format("the text of a review is longer than {} bytes", RequestLimits::kTextBytes));
  }
  if (const auto rating = fields.find("rating"); rating != fields.end()) {
    if (!rating->is_number()) throw BadRequest("'rating' is not a number");
    review.rating = rating->get<double>();
    if (!(std::abs(*review.rating) <= RequestLimits::kRating)) {
      throw BadRequest(fmt::format("'rating' is not from {0} to {1}", -RequestLimits::kRating,
                                   RequestLimits::kRating));
    }
  }
  return review;
}

PostedReviews posted_reviews(const Request& request) {
  if (!request.query.empty()) {
    throw BadRequest("a POST has its parameters in its body, not behind the path");
  }
  const json body = parse_json(request.body);
  if (!body.is_object()) throw BadRequest("the body is not a JSON object");
  check_names(body, {"reviews", "top", "why", "run", "domain"});
  const auto reviews = body.find("reviews");
  if (reviews == body.end() || !reviews->is_array()) {
    throw BadRequest("'reviews' is missing, or not a list");
  }
  if (reviews->empty() || std::ssize(*reviews) > RequestLimits::kReviews) {
    throw BadRequest(fmt::format("'reviews' are not from 1 to {}", RequestLimits::kReviews));
  }
  PostedReviews posted;
  for (const json& review : *reviews) posted.reviews.push_back(written_review(review));
  if (const auto top = body.find("top"); top != body.end()) {
    // 24.0 is a whole number, too.
    const double number = top->is_number() ? top->get<double>() : 0.5;
    if (number != std::floor(number)) throw BadRequest("'top' is not a whole number");
    posted.top = checked_top(static_cast<int64_t>(
        std::clamp(number, -1.0, static_cast<double>(RequestLimits::kTop) + 1)));
  }
  if (const auto why = body.find("why"); why != body.end()) {
    if (!why->is_boolean()) throw BadRequest("'why' is not true or false");
    posted.reasons = why->get<bool>();
  }
  if (body.contains("run")) posted.place.run = checked_id("run", text_field(body, "run"));
  if (body.contains("domain")) {
    posted.place.domain = Query::checked_domain(text_field(body, "domain"));
  }
  return posted;
}

json runs_json(const std::vector<ServedRun>& runs) {
  json fields = {{"runs", json::array()}};
  for (const ServedRun& run : runs) {
    json domains = json::array();
    for (const ServedDomain& domain : run.domains) {
      domains.push_back({{"domain", domain.name},
                         {"users", domain.users},
                         {"items", domain.items},
                         {"newcomers", domain.newcomers}});
    }
    fields["runs"].push_back({{"run", run.name}, {"domains", domains}});
  }
  return fields;
}

Response text_response(const char* type, std::string text) {
  Response response;
  response.type = type;
  response.body = std::move(text);
  return response;
}

bool is_json(std::string_view content_type) {
  constexpr std::string_view kJson = "application/json";
  if (!content_type.starts_with(kJson)) return false;
  content_type.remove_prefix(kJson.size());
  return content_type.empty() || content_type[0] == ';' || content_type[0] == ' ';
}

// For whoever loads it in a browser.
void add_headers(Response& response) {
  const auto add = [&](const char* name, const char* value) {
    response.headers.emplace_back(name, value);
  };
  add("Cache-Control", "no-store");
  add("Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  add("Cross-Origin-Resource-Policy", "same-origin");
  add("Referrer-Policy", "no-referrer");
  add("X-Content-Type-Options", "nosniff");
  add("X-Frame-Options", "DENY");
}

Response plain_refusal(int status, const std::string& sentence) {
  Response response = json_response({{"error", sentence}});
  response.status = status;
  return response;
}

}  // namespace

Answers::Answers(Served& served, Counters& counters, AnswerOptions options)
    : served_(served), counters_(counters), options_(std::move(options)) {}

Response Answers::refusal(int status, const std::string& sentence) {
  Response response = plain_refusal(status, sentence);
  add_headers(response);
  return response;
}

bool Answers::is_quick(const Request& request) {
  const Route* route = route_of(request.path);
  return route == nullptr || route->open || request.path == "/metrics" || request.path == "/runs";
}

std::string_view Answers::counted_path(std::string_view path) {
  const Route* route = route_of(path);
  return route == nullptr ? "other" : route->path;
}

Response Answers::answer(const Request& request, int worker) {
  Response response;
  try {
    response = dispatch(request, worker);
  } catch (const BadRequest& error) {
    response = plain_refusal(400, error.what());
  } catch (const NotFound& error) {
    response = plain_refusal(404, error.what());
  } catch (const std::exception& error) {
    log_warning(fmt::format("{}: {}", counted_path(request.path), printable(error.what())));
    response = plain_refusal(500, "this could not be answered; the server's log says why");
  }
  add_headers(response);
  return response;
}

Response Answers::dispatch(const Request& request, int worker) {
  if (!options_.hosts.empty()) {
    const std::string_view host = without_port(request.host);
    if (std::find(options_.hosts.begin(), options_.hosts.end(), host) == options_.hosts.end()) {
      return plain_refusal(403, "this server does not go by the name that was asked for");
    }
  }
  const Route* route = route_of(request.path);
  if (route == nullptr) return plain_refusal(404, "there is nothing at this path");
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const bool posts = request.method == "POST" && route->methods.ends_with("POST");
  if (!reads && !posts) {
    Response response = plain_refusal(405, "this path is not asked in this way");
    response.headers.emplace_back("Allow", route->methods);
    return response;
  }
  if (!route->open && !options_.token.empty()) {
    constexpr std::string_view kBearer = "Bearer ";
    const std::string_view given = request.authorization;
    if (!given.starts_with(kBearer) || !same_token(given.substr(kBearer.size()), options_.token)) {
      Response response = plain_refusal(401, "this needs the header Authorization: Bearer TOKEN");
      response.headers.emplace_back("WWW-Authenticate", "Bearer");
      return response;
    }
  }
  if (posts) {
    if (request.body.size() > RequestLimits::kBodyBytes) {
      return plain_refusal(413, "the body is too long");
    }
    if (!is_json(request.content_type)) {
      return plain_refusal(415, "the body must be application/json");
    }
    const PostedReviews posted = posted_reviews(request);
    const NewcomerList found =
        served_.recommend(worker, posted.place, posted.reviews, posted.top, posted.reasons);
    json fields = to_json(found.list);
    fields["unknown_items"] = found.unknown_items;
    return json_response(fields);
  }
  Query query(request);
  if (route->open || request.path == "/metrics" || request.path == "/runs") {
    query.check();
    if (request.path == "/") return text_response("text/html", std::string(kServePage));
    if (request.path == "/page.js") {
      return text_response("text/javascript",
                           std::string(kPageElements) + std::string(kServeScript));
    }
    if (request.path == "/page.css") {
      return text_response("text/css", std::string(kPageStyle) + std::string(kServeStyle));
    }
    if (request.path == "/openapi.json") {
      return text_response("application/json", std::string(kServeDescription));
    }
    if (request.path == "/metrics") return text_response("text/plain", counters_.text());
    if (request.path == "/runs") return json_response(runs_json(served_.runs()));
    return json_response({{"status", "ok"}, {"version", version()}});
  }
  const Place place = query.place();
  const int64_t top = request.path == "/history" ? 0 : query.top();
  if (request.path == "/recommend") {
    const std::string user = query.id("user");
    const bool reasons = query.flag("why");
    query.check();
    return json_response(to_json(served_.recommend(worker, place, user, top, reasons)));
  }
  if (request.path == "/similar") {
    const std::string item = query.id("item");
    query.check();
    json fields = {{"item", item}, {"items", json::array()}};
    for (const SimilarItem& similar : served_.similar(place, item, top)) {
      fields["items"].push_back({{"rank", fields["items"].size() + 1},
                                 {"item", similar.item},
                                 {"title", similar.title},
                                 {"score", similar.score}});
    }
    return json_response(fields);
  }
  if (request.path == "/history") {
    const std::string user = query.id("user");
    query.check();
    json fields = {{"user", user}, {"items", json::array()}};
    for (const HistoryItem& item : served_.history(place, user)) {
      fields["items"].push_back(
          {{"item", item.item}, {"title", item.title}, {"review", item.words}});
    }
    return json_response(fields);
  }
  const std::string kind = query.id("kind"), text = query.id("text");
  if (kind != "users" && kind != "items") throw BadRequest("'kind' is not users or items");
  query.check();
  json fields = {{kind, json::array()}};
  for (const NamedId& found : served_.find(place, kind == "items", text, top)) {
    fields[kind].push_back({{"id", found.id}, {"title", found.title}});
  }
  return json_response(fields);
}

}  // namespace cfaa
