/// What a command prints but cannot be written, and files that are taken away from a run.

#include <streambuf>

#include "apps/command_test.h"
#include "tessera/base/printable.h"
#include "tessera/train/metrics.h"

namespace tessera {
namespace {

/// A full disk, or a pipe that nobody reads.
struct Full : std::streambuf {
  int overflow(int) override { return traits_type::eof(); }
  int sync() override { return -1; }
};

Ran run_without_output(const Arguments& arguments) {
  Full full;
  std::ostream out(&full);
  std::ostringstream err;
  Console console{out, err};
  const int code = run_command(arguments, console);
  return {code, "", err.str()};
}

TEST(Output, ThatIsLostIsAnError) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const std::string train =
      "train --preset gpt2-tiny --data @/text.txt --layers 1 --steps 2 --output @/";
  ASSERT_EQ(run(words(folder.expand(train + "run"))).code, 0);
  for (const char* line : {"version", "help", "plan --preset gpt2-tiny --vocab-size 64 --layers 1",
                           "inspect @/run --digest", "inspect @/run", "inspect @/run --verify",
                           "sample @/run --tokens 3", "prepare @/text.txt --output @/prepared",
                           "verify --preset gpt2-tiny --layers 1 --steps 1"}) {
    const Ran ran = run_without_output(words(folder.expand(line)));
    EXPECT_EQ(ran.code, 5) << line;
    EXPECT_NE(ran.err.find("standard output"), std::string::npos) << line << ": " << ran.err;
  }
}

/// Training goes on, and the errors say what became of the run.
TEST(Output, OfTrainingThatIsLostLosesNothingElse) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Ran ran = run_without_output(words(folder.expand(
      "train --preset gpt2-tiny --data @/text.txt --layers 1 --steps 2 --output @/run")));
  EXPECT_EQ(ran.code, 5);
  EXPECT_NE(ran.err.find("done: step 2 of 2"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("standard output"), std::string::npos) << ran.err;
  EXPECT_EQ(run(words(folder.expand("inspect @/run --verify"))).code, 0);
}

TEST(Output, AMetricsFileThatIsGoneIsNoticed) {
  const Folder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsFile metrics(path, 0);
  metrics.valid(1, 2.0);
  EXPECT_EQ(metrics.file().removed(), "");
  std::filesystem::remove(path);
  EXPECT_NE(metrics.file().removed().find("was removed or replaced"), std::string::npos);
  folder.write("metrics.jsonl", "");
  EXPECT_NE(metrics.file().removed(), "") << "another file of that name";
}

TEST(Output, ALinkThatLeadsToItselfIsNamed) {
  const Folder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / ".");
  folder.write("text.txt", some_text());
  const Ran ran = run(words("train --preset gpt2-tiny --data text.txt --output loop"));
  std::filesystem::current_path(before);
  EXPECT_NE(ran.code, 0);
  EXPECT_NE(ran.err.find("'loop' leads nowhere: "), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("working folder"), std::string::npos) << ran.err;
}

TEST(Output, NamesMoveNoCursor) {
  EXPECT_EQ(printable("a\x1b[31mb\x7f\r"), "a\\x1b[31mb\\x7f\\x0d");
  EXPECT_EQ(printable("two\n\tlines, \xc3\xa9"), "two\n\tlines, \xc3\xa9");
  const Folder folder;
  const std::string header =
      R"({"a\u001b[31m\nb":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  folder.write("m.safetensors", bytes + header + std::string(4, '\0'));
  const Ran ran = run({"inspect", folder / "m.safetensors"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("a\\x1b[31m\\nb"), std::string::npos) << ran.out;
  const Ran bad = run({"inspect", folder / "\x1b[2Jnothing"});
  EXPECT_EQ(bad.err.find('\x1b'), std::string::npos) << bad.err;
}

/// Aliases of flags are flags, for commands that look at a flag's value themselves too.
TEST(Output, VerifyCountsStepsByAnyName) {
  const std::string verify = "verify --preset gpt2-tiny --layers 1 --devices 2 --json ";
  const auto steps = [&](const std::string& flags) {
    const Ran ran = run(words(verify + flags));
    EXPECT_EQ(ran.code, 0) << ran.err;
    const std::size_t at = ran.out.find("\"steps\"");
    return ran.out.substr(at, ran.out.find_first_of(",\n", at) - at);
  };
  EXPECT_EQ(steps("--steps 1"), steps("--train-iters 1"));
  EXPECT_NE(steps("--steps 1"), steps(""));
}

}  // namespace
}  // namespace tessera
