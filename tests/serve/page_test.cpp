// The page of `cfaa_gpu serve`, used by a scripted browser as a person would.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "host/data/dataset.h"
#include "host/device/make_context.h"
#include "host/run/newcomers.h"
#include "host/serve/http_server.h"
#include "tests/paths.h"
#include "tests/program.h"
#include "tests/serve/started_program.h"

namespace cfaa::test {
namespace {

using nlohmann::json;

constexpr const char* kScript = "<script>document.title='broken'</script>";

// A headless Chromium, by the protocol of WebDriver.
class Browser {
 public:
  Browser() : driver_({"chromedriver", "--port=0"}, "started successfully on port (\\d+)") {
    const json options = {{"args", {"--headless=new", "--no-sandbox", "--disable-gpu"}}};
    const json wanted = {{"goog:chromeOptions", options},
                         {"goog:loggingPrefs", {{"browser", "ALL"}}}};
    // A machine that does much else may not start a browser in the driver's time.
    for (int tried = 0; tried < 3 && !started(); ++tried) {
      const json made = post("/session", {{"capabilities", {{"alwaysMatch", wanted}}}});
      if (made.is_object()) session_ = "/session/" + made.value("sessionId", "");
      refusal_ = made.dump();
    }
  }
  ~Browser() {
    if (started()) ask(driver_.port(), session_, "", "DELETE");
  }
  bool started() const { return session_.size() > 10; }
  // What the driver said last, and all that it printed.
  std::string refusal() const { return refusal_ + "\n" + driver_.said(); }

  void open(const std::string& address) const { post(session_ + "/url", {{"url", address}}); }
  // The value of a script that ends in return.
  json run(const std::string& script) const {
    return post(session_ + "/execute/sync", {{"script", script}, {"args", json::array()}});
  }
  // Whether it becomes true within ten seconds.
  bool waits_for(const std::string& condition) const {
    for (int i = 0; i < 200; ++i) {
      if (run("return Boolean(" + condition + ");") == true) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  void type(const std::string& css, const std::string& text) const {
    post(element(css) + "/value", {{"text", text}});
  }
  // In one step: what is there may be replaced while a key is being answered.
  void click(const std::string& css) const {
    run("document.querySelector('" + css + "').click();");
  }
  json log() const { return post(session_ + "/se/log", {{"type", "browser"}}); }

 private:
  json post(const std::string& path, const json& body) const {
    const json answer = json::parse(ask(driver_.port(), path, body.dump()).body, nullptr, false);
    return answer.is_object() ? answer.value("value", json()) : json();
  }
  std::string element(const std::string& css) const {
    const json found = post(session_ + "/element", {{"using", "css selector"}, {"value", css}});
    return session_ + "/element/" +
           (found.is_object() ? found.begin()->get<std::string>() : "none");
  }

  StartedProgram driver_;
  std::string session_, refusal_;
};

std::vector<std::string> shown_items(const Browser& browser, const std::string& css) {
  return browser.run("return [...document.querySelectorAll('" + css +
                     " li[data-item]')].map(li => li.dataset.item);");
}

TEST(ServedPage, ShowsListsAndChangesWithWhatIsTyped) {
  if (!has_http_server()) GTEST_SKIP() << "built without libmicrohttpd";
  if (std::system("command -v chromium >/dev/null && command -v chromedriver >/dev/null") != 0) {
    GTEST_SKIP() << "chromium and chromedriver are not installed; tools/setup test installs them";
  }
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return folder.path(name); };
  ASSERT_EQ(run_program("synthesize --users 100 --items 120 --interactions 1000 --topics 4 --out " +
                        path("raw"))
                .code,
            0);
  ASSERT_EQ(run_program("prepare --source " + path("raw/source.jsonl") + " --target " +
                        path("raw/target.jsonl") + " --out " + path("data"))
                .code,
            0);
  const Domain domain = load_domain(path("data"), "target");
  const std::string user(domain.users[3]), item(domain.items[5]);
  write_text(path("data/target/item_titles.tsv"),
             "item_id\ttitle\n" + item + "\t" + kScript + "\n");
  ASSERT_EQ(run_program("train " + path("data") + " --out " + path("run")).code, 0);
  ASSERT_EQ(run_program("baseline " + path("data") + " popularity --out " + path("pop")).code, 0);
  const StartedProgram server(
      {program_path(), "serve", path("run"), path("pop"), "--port", "0", "--threads", "1"},
      "http://127\\.0\\.0\\.1:(\\d+)/");
  ASSERT_GT(server.port(), 0) << server.said();
  const Browser browser;
  ASSERT_TRUE(browser.started()) << browser.refusal();
  const auto context = make_context("cpu", {.threads = 1});
  const auto model = open_model(*context, path("run"));
  const auto items_of = [](const Recommendation& list) {
    std::vector<std::string> items;
    for (const RecommendedItem& item : list.items) items.push_back(item.item);
    return items;
  };

  // A user's lists, of two runs.
  browser.open("http://127.0.0.1:" + std::to_string(server.port()) + "/");
  ASSERT_TRUE(browser.waits_for("document.querySelector('#you input')"));
  browser.type("#user input", user);
  ASSERT_TRUE(browser.waits_for("document.querySelector('#user .choices button')"));
  browser.click("#user .choices button");
  ASSERT_TRUE(
      browser.waits_for("document.querySelectorAll('#user-lists [data-run] ol').length === 2"));
  EXPECT_EQ(shown_items(browser, "#user-lists [data-run=run]"),
            items_of(recommend(*context, *model, user)));

  // Somebody new, who likes something and then writes about it.
  const Newcomers newcomers(*context, *model);
  const std::string text = std::string("Spices, noodles, lunar galaxy and starlight. ") + kScript;
  const auto expected = [&](const std::string& written) {
    const std::vector<NewReview> reviews = {{"", item, written, 5}};
    return items_of(newcomers.lists(*context, reviews).users[0]);
  };
  ASSERT_NE(expected(""), expected(text)) << "or there is nothing to see";
  browser.type("#you input", "broken");
  ASSERT_TRUE(browser.waits_for("document.querySelector('#you .choices button')"));
  browser.click("#you .choices button");
  const std::string mine = "#your-lists [data-run=run]";
  ASSERT_TRUE(browser.waits_for("document.querySelector('" + mine + " ol')"));
  EXPECT_EQ(shown_items(browser, mine), expected(""));
  browser.type("#you textarea", text);
  const std::string last = json(expected(text)).dump();
  EXPECT_TRUE(browser.waits_for("JSON.stringify([...document.querySelectorAll('" + mine +
                                " li[data-item]')].map(li => li.dataset.item)) === '" + last +
                                "'"));
  EXPECT_EQ(shown_items(browser, mine), expected(text));

  EXPECT_EQ(browser.run("return document.title;"), "cfaa_gpu") << "a title or a review ran";
  EXPECT_EQ(browser.run("return document.querySelector('#you strong').textContent;"),
            std::string(kScript) + " (" + item + ")");
  for (const json& entry : browser.log()) {
    const std::string message = entry.value("message", "");
    // What popularity cannot answer is a 400, and the icon that browsers ask for is not there.
    EXPECT_TRUE(message.find("400") != std::string::npos ||
                message.find("favicon") != std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace cfaa::test
