#pragma once

// A program that goes on while a test asks it, and a client that says exactly what it is told to.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/temporary_folder.h"

namespace cfaa::test {

class StartedProgram {
 public:
  // `port_said` finds the port, its first group, in what the program says; it is waited for.
  StartedProgram(const std::vector<std::string>& command, const std::string& port_said) {
    pid_ = ::fork();
    if (pid_ == 0) {
      const int file = ::open(folder_.path("said").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
      ::dup2(file, 1);
      ::dup2(file, 2);
      ::setenv("HOME", folder_.path("home").c_str(), 1);
      std::vector<char*> arguments;
      for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    std::smatch found;
    for (int waited = 0; waited < 6000 && running(); ++waited) {
      const std::string text = said();
      if (std::regex_search(text, found, std::regex(port_said))) {
        port_ = std::stoi(found[1]);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~StartedProgram() {
    if (running()) ::kill(pid_, SIGKILL);
    wait();
  }
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  int port() const { return port_; }  // 0 where it ended before it said one
  std::string said() const {
    const std::string path = folder_.path("said");
    return std::filesystem::exists(path) ? read_text(path) : "";
  }
  void signal(int number) const { ::kill(pid_, number); }
  // For its end; the exit code, or 128 and the signal.
  int wait() {
    if (pid_ < 0) return code_;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ended(status);
    return code_;
  }

 private:
  bool running() {
    int status = 0;
    if (pid_ >= 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) ended(status);
    return pid_ >= 0;
  }
  void ended(int status) {
    pid_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  TemporaryFolder folder_;
  int pid_ = -1, port_ = 0, code_ = -1;
};

// A connection to a port of this machine.
class Connection {
 public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    open_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool open() const { return open_; }
  void send(const std::string& bytes) const {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<std::size_t>(sent);
    }
  }
  // What comes until the answer is whole, the other side closes, or is silent for so long.
  std::string receive(int milliseconds = 30'000) const {
    std::string bytes;
    pollfd ready{socket_, POLLIN, 0};
    while (!is_whole(bytes) && ::poll(&ready, 1, milliseconds) > 0) {
      char part[16384];
      const ssize_t count = ::recv(socket_, part, sizeof(part), 0);
      if (count <= 0) break;
      bytes.append(part, static_cast<std::size_t>(count));
    }
    return bytes;
  }

 private:
  // Whether as many bytes follow the head as it says.
  static bool is_whole(const std::string& bytes) {
    const std::size_t end = bytes.find("\r\n\r\n");
    std::smatch length;
    const std::string head = bytes.substr(0, end);
    return end != std::string::npos &&
           std::regex_search(head, length,
                             std::regex("content-length: *(\\d+)", std::regex::icase)) &&
           bytes.size() >= end + 4 + std::stoul(length[1]);
  }

  int socket_;
  bool open_ = false;
};

struct Answer {
  int status = 0;
  std::string head, body;
};

inline Answer parse_answer(const std::string& bytes) {
  Answer answer;
  if (bytes.size() > 12) answer.status = std::atoi(bytes.c_str() + 9);
  const std::size_t end = bytes.find("\r\n\r\n");
  answer.head = bytes.substr(0, end);
  if (end != std::string::npos) answer.body = bytes.substr(end + 4);
  return answer;
}

// A GET, or a POST where there is a body; the connection is closed afterwards.
inline Answer ask(int port, const std::string& path, const std::string& body = "",
                  const std::string& method = "") {
  const Connection connection(port);
  const std::string how = !method.empty() ? method : body.empty() ? "GET" : "POST";
  connection.send(how + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
                  (body.empty() ? ""
                                : "Content-Type: application/json\r\nContent-Length: " +
                                      std::to_string(body.size()) + "\r\n") +
                  "\r\n" + body);
  return parse_answer(connection.receive());
}

}  // namespace cfaa::test
