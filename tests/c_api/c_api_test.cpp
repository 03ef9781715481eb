/// Training through functions of C: results, events, stops and errors as values.

#include "tessera/c_api/c_api.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "apps/command_test.h"

namespace tessera {
namespace {

using JsonValue = nlohmann::json;

struct Heard {
  std::vector<JsonValue> events;
  std::vector<std::string> lines;
  std::int64_t stop_at = 0;  // 0: never

  tessera_listener listener() {
    return {
        this,
        [](void* user, const char* json) {
          auto& self = *static_cast<Heard*>(user);
          self.events.push_back(JsonValue::parse(json));
          return int{self.stop_at > 0 && self.events.back()["step"] == self.stop_at};
        },
        [](void* user, const char* line) { static_cast<Heard*>(user)->lines.emplace_back(line); }};
  }
};

struct OneCall {
  tessera_run* handle = tessera_run_new();
  ~OneCall() { tessera_run_free(handle); }
  int train(const JsonValue& flags, Heard& heard) {
    const tessera_listener listener = heard.listener();
    return tessera_call(handle, "train", flags.dump().c_str(), &listener);
  }
  JsonValue result() const { return JsonValue::parse(tessera_result(handle)); }
  JsonValue error() const { return JsonValue::parse(tessera_error(handle)); }
};

JsonValue tiny(const Folder& folder, const std::string& output) {
  return {{"preset", "gpt2-tiny"},
          {"layers", 1},
          {"data", folder / "text.txt"},
          {"steps", 4},
          {"eval_iters", 1},
          {"output", folder / output}};
}

/// The lines of metrics.jsonl, less what no two runs have alike.
std::vector<JsonValue> numbers(std::vector<JsonValue> lines) {
  std::erase_if(lines, [](const JsonValue& line) {
    return line["kind"] == "save" || line["kind"] == "start";
  });
  for (JsonValue& line : lines) line.erase("tokens_per_s"), line.erase("step_seconds");
  return lines;
}

std::vector<JsonValue> metrics_of(const std::string& output) {
  std::vector<JsonValue> out;
  for (const std::string& line : split(read(output + "/metrics.jsonl"), '\n'))
    if (!line.empty()) out.push_back(JsonValue::parse(line));
  return numbers(out);
}

TEST(CApi, TheNumbersOfTheCommandOnOneAndTwoDevices) {
  const Folder folder;
  folder.write("text.txt", some_text());
  for (const int devices : {1, 2}) {
    const std::string n = text(devices);
    const Ran ran = run(words(folder.expand(
        "train --preset gpt2-tiny --layers 1 --data @/text.txt --steps 4 --eval-iters 1 --output "
        "@/command" +
        n + " --devices " + n + " --tensor-model-parallel-size " + n)));
    ASSERT_EQ(ran.code, 0) << ran.err;
    JsonValue flags = tiny(folder, "c" + n);
    flags["devices"] = flags["tensor_model_parallel_size"] = devices;
    Heard heard;
    OneCall mine;
    ASSERT_EQ(mine.train(flags, heard), 0) << mine.error();
    EXPECT_EQ(tessera_error(mine.handle), nullptr);
    EXPECT_EQ(metrics_of(folder / ("c" + n)), metrics_of(folder / ("command" + n)));
    EXPECT_EQ(numbers(heard.events), metrics_of(folder / ("command" + n)));
    EXPECT_EQ(heard.events.front()["kind"], "start");
    EXPECT_EQ(heard.events.front()["steps"], 4);
    EXPECT_EQ(heard.events.front()["devices"], devices);
    EXPECT_EQ(mine.result()["ending"], "finished");
    EXPECT_EQ(mine.result()["output"], folder / ("c" + n));
    EXPECT_EQ(mine.result()["summary"]["steps"], 4);
    ASSERT_FALSE(heard.lines.empty());
    EXPECT_TRUE(starts_with(heard.lines.back(), "done: step 4 of 4")) << heard.lines.back();
  }
}

/// But for how long it took to compile, and what this process holds already.
TEST(CApi, ThePlanOfTheCommand) {
  const auto lasting = [](const std::string& json) {
    JsonValue out = JsonValue::parse(json);
    for (const char* key : {"compile_seconds", "passes", "outside_arena_bytes"}) out.erase(key);
    return out;
  };
  const Ran json =
      run(words("plan --preset gpt2-tiny --vocab-size 65 --zero-stage 1 --devices 2 --json"));
  ASSERT_EQ(json.code, 0) << json.err;
  OneCall mine;
  ASSERT_EQ(
      tessera_call(mine.handle, "plan",
                   R"({"preset":"gpt2-tiny","vocab_size":65,"zero_stage":1,"devices":2})", nullptr),
      0);
  EXPECT_EQ(lasting(mine.result()["report"].dump()), lasting(json.out));
  const Ran shown =
      run(words("plan --preset gpt2-tiny --vocab-size 65 --zero-stage 1 --devices 2"));
  EXPECT_EQ(mine.result()["text"], shown.out);

  for (const char* flags :
       {R"({"search_mode":"dynamic_programming"})", R"({"minimalloc":"a.csv"})"}) {
    OneCall other;
    EXPECT_EQ(tessera_call(other.handle, "plan", flags, nullptr), 2);
    EXPECT_NE(other.error()["message"].get<std::string>().find("leave it to the command"),
              std::string::npos);
  }
}

/// An event ends a run, which saves and can go on; signals stay what they were.
TEST(CApi, AnEventStopsARun) {
  const Folder folder;
  folder.write("text.txt", some_text());
  struct sigaction before = {}, after = {};
  sigaction(SIGINT, nullptr, &before);
  JsonValue flags = tiny(folder, "run");
  Heard heard;
  heard.stop_at = 2;
  OneCall first;
  EXPECT_EQ(first.train(flags, heard), kExitStopped);
  EXPECT_EQ(first.result()["ending"], "stopped");
  EXPECT_EQ(first.result()["summary"]["steps"], 2);
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);

  flags["resume"] = "auto";
  Heard nothing;
  OneCall second;
  EXPECT_EQ(second.train(flags, nothing), 0);
  EXPECT_EQ(second.result()["summary"]["steps"], 4);
}

TEST(CApi, FunctionsAreNamed) {
  const struct {
    const char *what, *flags, *message;
  } cases[] = {
      {"trian", "{}", "no function 'trian'; there are train, plan, verify"},
      {nullptr, "{}", "no function or no flags"},
      {"train", nullptr, "no function or no flags"},
  };
  for (const auto& c : cases) {
    OneCall mine;
    EXPECT_EQ(tessera_call(mine.handle, c.what, c.flags, nullptr), 2);
    EXPECT_NE(mine.error()["message"].get<std::string>().find(c.message), std::string::npos)
        << mine.error();
  }
}

TEST(CApi, ErrorsAreValues) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const auto with = [&](const char* key, const JsonValue& value) {
    JsonValue out = tiny(folder, "run");
    out[key] = value;
    return out;
  };
  const struct {
    JsonValue flags;
    int code;
    const char *kind, *message;
  } cases[] = {
      {with("preset", "gpt2-tinny"), 2, "Usage", "gpt2-tiny"},
      {with("stesp", 3), 2, "Usage", "--steps"},
      {with("data", folder / "txet.txt"), 3, "Data", "text.txt"},
      {with("help", true), 2, "Usage", "--help"},
      {JsonValue("no flags"), 2, "Usage", "no JSON"},
  };
  for (const auto& c : cases) {
    Heard heard;
    OneCall mine;
    EXPECT_EQ(mine.train(c.flags, heard), c.code);
    EXPECT_EQ(tessera_result(mine.handle), nullptr);
    EXPECT_EQ(mine.error()["kind"], c.kind);
    EXPECT_EQ(mine.error()["code"], c.code);
    EXPECT_NE(mine.error()["message"].get<std::string>().find(c.message), std::string::npos)
        << mine.error();
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  }
}

}  // namespace
}  // namespace tessera
