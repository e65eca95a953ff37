#pragma once

// Answers over HTTP, by libmicrohttpd. One thread reads and writes; whole requests wait in a queue
// of bounded length for the workers that answer them, each with a number of its own.
//
//   HttpServer server(answers, counters, {.port = 8080, .workers = served.workers()});
//   server.port();
//   server.stop();   // finishes what was asked, then returns

#include <cstdint>
#include <memory>
#include <string>

#include "host/serve/answers.h"
#include "host/serve/counters.h"

namespace cfaa {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // an address of this machine, IPv4 or IPv6
  int port = 8080;                 // 0: any that is free
  int workers = 1;
  int queue = 256;           // requests that may wait for a worker; more are refused with 503
  int connections = 1000;    // open at a time; more are closed
  int idle_seconds = 15;     // until a connection on which nothing moves is closed
  int request_seconds = 30;  // for the body of a request to arrive
  int wait_seconds = 10;     // in the queue, before a request is refused with 503
  int stop_seconds = 30;     // for what runs to finish after stop()
};

// Whether this program was built with libmicrohttpd.
bool has_http_server();

class HttpServer {
 public:
  // Error where the port is taken, the address is not this machine's, or there is no library. Both
  // must outlive it.
  HttpServer(Answers& answers, Counters& counters, const HttpServerOptions& options);
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// True for 127.0.0.0/8 and ::1: nobody else can reach it.
bool is_loopback(const std::string& host);

}  // namespace cfaa
