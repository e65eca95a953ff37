// `cfaa_gpu serve` as it is started: what it answers, what it refuses, how it stops, and what a
// person with a browser sees.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "host/serve/http_server.h"
#include "tests/paths.h"
#include "tests/run/small_runs.h"
#include "tests/serve/started_program.h"

namespace cfaa::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kPortSaid = "http://127\\.0\\.0\\.1:(\\d+)/";
constexpr const char* kScript = "<script>document.title='broken'</script>";

class ServeProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_domain(*folder_, "source");
    write_domain(*folder_, "target");
    write_text(path("data/target/item_titles.tsv"),
               std::string("item_id\ttitle\ni100\t") + kScript + "\n");
    ASSERT_EQ(run_program("train " + path("data") + " --out " + path("run")).code, 0);
    ASSERT_EQ(run_program("baseline " + path("data") + " popularity --out " + path("pop")).code, 0);
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override {
    if (!has_http_server()) GTEST_SKIP() << "built without libmicrohttpd";
  }
  static std::string path(const std::string& name) { return folder_->path(name); }
  static std::vector<std::string> command(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {program_path(), "serve", path("run"), "--port", "0",
                                      "--threads",    "2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static json get(const StartedProgram& server, const std::string& at) {
    return json::parse(ask(server.port(), at).body, nullptr, false);
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* ServeProgram::folder_ = nullptr;

TEST_F(ServeProgram, AnswersWhatRecommendAnswers) {
  const StartedProgram server(command({path("pop")}), kPortSaid);
  ASSERT_GT(server.port(), 0) << server.said();
  for (const std::string run : {"run", "pop"}) {
    json expected =
        json::parse(run_program("recommend " + path(run) + " --user u103 --top 5 --json").out);
    expected.erase("domain");

    EXPECT_EQ(get(server, "/recommend?user=u103&top=5&why=true&run=" + run), expected);
  }

  EXPECT_EQ(get(server, "/runs")["runs"].size(), 2u);
  EXPECT_EQ(get(server, "/history?user=u103")["items"].size(), 6u);
  EXPECT_EQ(get(server, "/find?kind=items&text=I10&top=3")["items"].size(), 3u);
  EXPECT_EQ(get(server, "/find?kind=items&text=broken")["items"][0]["title"], kScript);
  EXPECT_EQ(ask(server.port(), "/similar?item=i100&run=pop").status, 400);
  const json similar = get(server, "/similar?item=i100&top=4");
  ASSERT_EQ(similar["items"].size(), 4u);
  // Of the same group and the same maker.
  EXPECT_EQ((std::set<std::string>{similar["items"][0]["item"], similar["items"][1]["item"]}),
            (std::set<std::string>{"i103", "i106"}));
  EXPECT_GE(similar["items"][0]["score"], similar["items"][1]["score"]);
}

TEST_F(ServeProgram, RefusesWhatIsTooMuchAndGoesOn) {
  const StartedProgram server(command(), kPortSaid);
  ASSERT_GT(server.port(), 0) << server.said();
  const auto sent = [&](const std::string& bytes) {
    const Connection connection(server.port());
    connection.send(bytes);
    return parse_answer(connection.receive(500)).status;
  };
  const std::string host = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";

  EXPECT_EQ(sent("POST /recommend" + host + "Content-Length: 99999999\r\n\r\n"), 413);
  EXPECT_EQ(sent("GET /" + std::string(40'000, 'a') + host + "\r\n") / 100, 4);
  EXPECT_EQ(sent("GET /healthz" + host + "X: " + std::string(40'000, 'a') + "\r\n\r\n") / 100, 4);
  EXPECT_EQ(sent("GET /runs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"), 403);
  EXPECT_EQ(sent("GET /../../../../etc/passwd" + host + "\r\n"), 404);
  EXPECT_EQ(sent("GET /%2e%2e/%2e%2e/etc/passwd%00" + host + "\r\n"), 404);
  sent(std::string(100, '\0') + "\r\n\r\n");
  sent("POST /recommend" + host + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n");

  EXPECT_EQ(ask(server.port(), "/recommend?user=u103").status, 200);
}

TEST_F(ServeProgram, FinishesWhatWasAskedWhenItIsStopped) {
  StartedProgram server(command(), kPortSaid);
  ASSERT_GT(server.port(), 0) << server.said();
  const Connection begun(server.port());
  begun.send(
      "POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 4\r\n\r\n{");
  ASSERT_EQ(ask(server.port(), "/healthz").status, 200);  // so the other one has been read
  server.signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  begun.send("   ");
  const Answer answer = parse_answer(begun.receive());

  EXPECT_EQ(answer.status, 400) << answer.head;
  EXPECT_NE(answer.head.find("Connection: close"), std::string::npos) << answer.head;
  EXPECT_EQ(server.wait(), 0) << server.said();
}

TEST_F(ServeProgram, ServesARunThatTookThePlaceOfAnother) {
  const std::string place = path("replaced");
  fs::copy(path("run"), place, fs::copy_options::recursive);
  const StartedProgram server({program_path(), "serve", place, "--port", "0", "--threads", "1"},
                              kPortSaid);
  ASSERT_GT(server.port(), 0) << server.said();
  const std::string question = "/recommend?user=u103&why=true";
  ASSERT_EQ(get(server, question)["items"][0].count("signal"), 1u);
  fs::remove_all(place);
  EXPECT_EQ(ask(server.port(), question).status, 200) << "what was opened is still served";
  fs::copy(path("pop"), place, fs::copy_options::recursive);
  int failed = 0;
  for (int i = 0; i < 500 && get(server, question)["items"][0].count("signal") == 1; ++i) {
    failed += ask(server.port(), question).status != 200;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  EXPECT_EQ(failed, 0);
  EXPECT_EQ(get(server, question)["items"][0].count("signal"), 0u) << server.said();
  EXPECT_NE(ask(server.port(), "/metrics").body.find("cfaa_reloads_total{result=\"ok\"} 1"),
            std::string::npos);
}

TEST_F(ServeProgram, SaysWhyItDoesNotStart) {
  const StartedProgram first(command(), kPortSaid);
  ASSERT_GT(first.port(), 0) << first.said();
  const Outcome taken =
      run_program("serve " + path("pop") + " --port " + std::to_string(first.port()));
  const Outcome nowhere = run_program("serve " + path("pop") + " --host example");
  write_text(path("token"), "short\n");
  const Outcome weak = run_program("serve " + path("pop") + " --token-file " + path("token"));

  EXPECT_EQ(taken.code, 2);
  EXPECT_NE(taken.err.find("choose another with --port"), std::string::npos) << taken.err;
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("is not an address"), std::string::npos) << nowhere.err;
  EXPECT_EQ(weak.code, 2);
  EXPECT_NE(weak.err.find("at least 16 characters"), std::string::npos) << weak.err;
}

}  // namespace
}  // namespace cfaa::test
