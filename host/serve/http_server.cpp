#include "host/serve/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "host/core/error.h"

#if CFAA_HAS_MICROHTTPD
#include <microhttpd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "host/core/log.h"
#endif

namespace cfaa {
namespace {

struct Address {
  sockaddr_storage storage{};
  bool ipv6 = false;
};

bool parse_address(const std::string& host, int port, Address& address) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(port));
    return true;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return false;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<uint16_t>(port));
  address.ipv6 = true;
  return true;
}

}  // namespace

bool is_loopback(const std::string& host) {
  Address address;
  if (!parse_address(host, 0, address)) return false;
  if (address.ipv6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<sockaddr_in6&>(address.storage).sin6_addr);
  }
  return ntohl(reinterpret_cast<sockaddr_in&>(address.storage).sin_addr.s_addr) >> 24 == 127;
}

#if CFAA_HAS_MICROHTTPD

bool has_http_server() {
  return true;
}

namespace {

using Clock = std::chrono::steady_clock;

// A request on its way; owned by its connection.
struct Exchange {
  Request request;
  Response response;
  bool answered = false;  // written by a worker before it resumes the connection
  bool too_long = false;
  MHD_Connection* connection = nullptr;
  Clock::time_point began = Clock::now(), whole;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string header(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

MHD_Result take_parameter(void* query, MHD_ValueKind, const char* key, std::size_t key_size,
                          const char* value, std::size_t value_size) {
  static_cast<decltype(Request::query)*>(query)->emplace_back(
      std::string(key, key_size),
      value == nullptr ? std::string() : std::string(value, value_size));
  return MHD_YES;
}

}  // namespace

struct HttpServer::State {
  State(Answers& to, Counters& to_count, const HttpServerOptions& given)
      : answers(to), counters(to_count), options(given) {
    Address address;
    if (!parse_address(options.host, options.port, address)) {
      throw Error(
          fmt::format("--host {}: is not an address such as 127.0.0.1 or ::1", options.host));
    }
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    if (address.ipv6) flags |= MHD_USE_IPv6;
    daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &State::handle, this,               //
                              MHD_OPTION_SOCK_ADDR, &address.storage,                         //
                              MHD_OPTION_CONNECTION_LIMIT, unsigned(options.connections),     //
                              MHD_OPTION_CONNECTION_TIMEOUT, unsigned(options.idle_seconds),  //
                              MHD_OPTION_CONNECTION_MEMORY_LIMIT, std::size_t{32} << 10,      //
                              MHD_OPTION_NOTIFY_COMPLETED, &State::completed, this,           //
                              MHD_OPTION_LISTEN_BACKLOG_SIZE, 512u,                           //
                              MHD_OPTION_STRICT_FOR_CLIENT, 1,                                //
                              MHD_OPTION_END);
    if (daemon == nullptr) {
      throw Error(fmt::format("{} port {}: cannot be listened at ({}); choose another with --port",
                              options.host, options.port, std::strerror(errno)));
    }
    for (int worker = 0; worker < options.workers; ++worker) {
      workers.emplace_back([this, worker] { work(worker); });
    }
  }

  // A request is whole; the connection's thread.
  MHD_Result whole_request(Exchange& exchange) {
    exchange.whole = Clock::now();
    if (Answers::is_quick(exchange.request)) {
      exchange.response = answers.answer(exchange.request, 0);
      return send(exchange);
    }
    std::unique_lock lock(mutex);
    if (std::ssize(queue) >= options.queue) {
      lock.unlock();
      return refuse_for_now(exchange);
    }
    // Before a worker can resume it.
    MHD_suspend_connection(exchange.connection);
    queue.push_back(&exchange);
    counters.queued = std::ssize(queue);
    lock.unlock();
    ready.notify_one();
    return MHD_YES;
  }

  MHD_Result refuse_for_now(Exchange& exchange) {
    busy(exchange);
    return send(exchange);
  }
  static void busy(Exchange& exchange) {
    exchange.response = Answers::refusal(503, "there is too much to do; ask again later");
    exchange.response.headers.emplace_back("Retry-After", "1");
  }

  MHD_Result send(Exchange& exchange) {
    const Response& response = exchange.response;
    MHD_Response* made = MHD_create_response_from_buffer(
        response.body.size(), const_cast<char*>(response.body.data()), MHD_RESPMEM_MUST_COPY);
    if (made == nullptr) return MHD_NO;
    const bool text = response.type.starts_with("text/");
    MHD_add_response_header(made, "Content-Type",
                            (response.type + (text ? "; charset=utf-8" : "")).c_str());
    for (const auto& [name, value] : response.headers) {
      MHD_add_response_header(made, name.c_str(), value.c_str());
    }
    if (stopping) MHD_add_response_header(made, "Connection", "close");
    const MHD_Result result =
        MHD_queue_response(exchange.connection, static_cast<unsigned>(response.status), made);
    MHD_destroy_response(made);
    counters.count(Answers::counted_path(exchange.request.path), response.status,
                   seconds_since(exchange.whole));
    return result;
  }

  // Called by the library when the headers of a request have come, for each part of its body, when
  // it is whole, and again when its connection is resumed.
  static MHD_Result handle(void* self, MHD_Connection* connection, const char* path,
                           const char* method, const char*, const char* body, std::size_t* size,
                           void** kept) {
    State& state = *static_cast<State*>(self);
    if (*kept == nullptr) {
      auto exchange = std::make_unique<Exchange>();
      exchange->connection = connection;
      Request& request = exchange->request;
      request.method = method;
      request.path = path;
      request.host = header(connection, "Host");
      request.authorization = header(connection, "Authorization");
      request.content_type = header(connection, "Content-Type");
      MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, &take_parameter,
                                  &request.query);
      const std::string length = header(connection, "Content-Length");
      // Before it is read, and the connection is closed. A length has digits only, or the library
      // has refused it.
      const bool too_long =
          length.size() > 12 || (!length.empty() && std::strtoull(length.c_str(), nullptr, 10) >
                                                        RequestLimits::kBodyBytes);
      ++state.under_way;
      Exchange& its = *exchange;
      *kept = exchange.release();
      if (!too_long) return MHD_YES;
      its.whole = Clock::now();
      its.response = Answers::refusal(413, "the body is too long");
      return state.send(its);
    }
    Exchange& exchange = *static_cast<Exchange*>(*kept);
    if (*size > 0) {
      if (seconds_since(exchange.began) > state.options.request_seconds) return MHD_NO;
      if (exchange.request.body.size() + *size > RequestLimits::kBodyBytes) return MHD_NO;
      exchange.request.body.append(body, *size);
      *size = 0;
      return MHD_YES;
    }
    if (exchange.answered) return state.send(exchange);
    return state.whole_request(exchange);
  }

  static void completed(void* self, MHD_Connection*, void** kept, MHD_RequestTerminationCode) {
    if (*kept == nullptr) return;
    delete static_cast<Exchange*>(*kept);
    *kept = nullptr;
    State& state = *static_cast<State*>(self);
    --state.under_way;
  }

  void work(int worker) {
    for (;;) {
      std::unique_lock lock(mutex);
      ready.wait(lock, [this] { return finished || !queue.empty(); });
      if (queue.empty()) return;
      Exchange& exchange = *queue.front();
      queue.pop_front();
      counters.queued = std::ssize(queue);
      lock.unlock();
      if (seconds_since(exchange.whole) > options.wait_seconds) {
        busy(exchange);
      } else {
        exchange.response = answers.answer(exchange.request, worker);
      }
      exchange.answered = true;
      MHD_resume_connection(exchange.connection);
    }
  }

  void stop() {
    if (daemon == nullptr) return;
    stopping = true;
    const MHD_socket listening = MHD_quiesce_daemon(daemon);
    const auto start = Clock::now();
    while (under_way > 0 && seconds_since(start) < options.stop_seconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    {
      const std::lock_guard lock(mutex);
      finished = true;
    }
    ready.notify_all();
    // Each empties the queue first: no connection is left suspended.
    for (std::thread& worker : workers) worker.join();
    MHD_stop_daemon(daemon);
    daemon = nullptr;
    if (listening != MHD_INVALID_SOCKET) ::close(listening);
  }

  Answers& answers;
  Counters& counters;
  const HttpServerOptions options;
  std::mutex mutex;
  std::condition_variable ready;
  std::deque<Exchange*> queue;
  bool finished = false;  // nothing is queued any more
  std::atomic<bool> stopping{false};
  std::atomic<int64_t> under_way{0};
  std::vector<std::thread> workers;
  MHD_Daemon* daemon = nullptr;
};

HttpServer::HttpServer(Answers& answers, Counters& counters, const HttpServerOptions& options)
    : state_(std::make_unique<State>(answers, counters, options)) {}
HttpServer::~HttpServer() {
  stop();
}

int HttpServer::port() const {
  const MHD_DaemonInfo* info = MHD_get_daemon_info(state_->daemon, MHD_DAEMON_INFO_BIND_PORT);
  return info == nullptr ? 0 : info->port;
}

void HttpServer::stop() {
  state_->stop();
}

#else

struct HttpServer::State {};

bool has_http_server() {
  return false;
}
HttpServer::HttpServer(Answers&, Counters&, const HttpServerOptions&) {
  throw Error(
      "this program was built without libmicrohttpd, which serve needs: install "
      "libmicrohttpd-dev (tools/setup does) and build again");
}
HttpServer::~HttpServer() = default;
int HttpServer::port() const {
  return 0;
}
void HttpServer::stop() {}

#endif

}  // namespace cfaa
