// cfaa_gpu serve runs...: lists over HTTP, for programs and for people with a browser.

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "host/core/error.h"
#include "host/core/log.h"
#include "host/core/terminal/stop_signal.h"
#include "host/io/json_file.h"
#include "host/serve/answers.h"
#include "host/serve/http_server.h"
#include "host/serve/served_runs.h"
#include "tools/command.h"

namespace cfaa::tools {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);
constexpr int kLooksBetweenReloads = 20;

struct Arguments {
  ServedRunsOptions runs;
  HttpServerOptions http;
  std::string domain = "target", token_file;
  DeviceFlags device;
};

// The first line of the file.
std::string read_token(const std::string& path) {
  std::string token = read_file(path);
  token.resize(std::min(token.find_first_of("\r\n"), token.size()));
  if (token.size() < 16) {
    throw Error(fmt::format("{}: a token has at least 16 characters", path));
  }
  return token;
}

void run(Arguments arguments) {
  if (!has_http_server()) {
    throw Error(
        "this program was built without libmicrohttpd, which serve needs: install "
        "libmicrohttpd-dev (tools/setup does) and build again");
  }
  AnswerOptions options;
  if (!arguments.token_file.empty()) options.token = read_token(arguments.token_file);
  const bool loopback = is_loopback(arguments.http.host);
  if (loopback) options.hosts = {"localhost", "127.0.0.1", "[::1]", arguments.http.host};
  arguments.runs.device = arguments.device.device;
  arguments.runs.workers = arguments.device.threads;
  if (arguments.domain == "both") {
    arguments.runs.domains = {"target", "source"};
  } else {
    arguments.runs.domains = {arguments.domain};
  }

  const StopSignal stop;
  ServedRuns served(arguments.runs);
  Counters counters;
  Answers answers(served, counters, options);
  arguments.http.workers = served.workers();
  HttpServer server(answers, counters, arguments.http);
  if (!loopback && options.token.empty()) {
    log_warning(fmt::format("{}: whoever reaches this machine can ask; give --token-file",
                            arguments.http.host));
  }
  if (!loopback) {
    log_warning("what is sent is not encrypted: put a proxy with TLS in front of it");
  }
  const bool ipv6 = arguments.http.host.find(':') != std::string::npos;
  print_line(fmt::format("http://{0}{1}{2}:{3}/ serves {4}; Ctrl-C stops it", ipv6 ? "[" : "",
                         arguments.http.host, ipv6 ? "]" : "", server.port(),
                         fmt::join(arguments.runs.runs, ", ")),
             stderr);
  for (int look = 1; !stop.requested(); ++look) {
    std::this_thread::sleep_for(kLook);
    if (look % kLooksBetweenReloads == 0) served.reload(counters);
  }
  log_info("finishing what was asked");
  server.stop();
}

}  // namespace

void add_serve(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("serve", "lists over HTTP: a page for a browser, JSON for programs");
  command
      ->add_option("runs", arguments->runs.runs,
                   "what train or 'baseline --out' wrote; the page shows two side by side")
      ->required();
  command->add_option("--port", arguments->http.port, "the port; 0: any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--host", arguments->http.host, "the address to listen at, 0.0.0.0: all")
      ->capture_default_str();
  command->add_option("--domain", arguments->domain, "whose users and items")
      ->check(CLI::IsMember({"target", "source", "both"}))
      ->capture_default_str();
  command->add_option("--token-file", arguments->token_file,
                      "a file whose first line every request must bring as a bearer token");
  command->add_option("--queue", arguments->http.queue, "requests that may wait for a worker")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--model", arguments->runs.encoder,
                      "for newcomers' reviews, to a run that reads vectors of reviews: the folder "
                      "of the encoder that made them");
  command->add_option("--data", arguments->runs.data, "where the runs' data is now");
  arguments->device.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace cfaa::tools
