// Templates against Jinja as transformers sets it up (tools/golden/chat.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "repo_file.h"
#include "tessera/base/error.h"
#include "tessera/chat/chat_template.h"
#include "tessera/chat/messages.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

const std::tm kThen = {.tm_sec = 6,
                       .tm_min = 5,
                       .tm_hour = 14,
                       .tm_mday = 3,
                       .tm_mon = 1,
                       .tm_year = 124,
                       .tm_wday = 6,
                       .tm_yday = 33,
                       .tm_isdst = 0,
                       .tm_gmtoff = 0,
                       .tm_zone = nullptr};

std::string golden(const std::string& name) {
  return read_file(repo_file("tests/golden/chat/" + name));
}

/// {"text", "generated"} or {"error"}.
Json result_of(const std::string& source, const Json& variables) {
  try {
    const RenderedChat out = ChatTemplate::parse(source, "template").render(variables, kThen);
    return {{"text", out.text}, {"generated", out.generated}};
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Data) << error.what();
    return {{"error", error.what()}};
  }
}

/// Both refuse, or both make the same.
void expect_same(const Json& expected, const Json& got) {
  ASSERT_EQ(expected.contains("error"), got.contains("error")) << expected << "\n" << got;
  if (!expected.contains("error")) {
    EXPECT_EQ(expected["text"], got["text"]);
    if (expected.contains("generated")) {
      EXPECT_EQ(expected["generated"], got["generated"]);
    }
  } else if (const std::string what = expected["error"]; !what.empty()) {
    EXPECT_EQ(got["error"], "template refuses the dialogue: " + what);
  }
}

TEST(GoldenChat, Dialogues) {
  const Json expected = Json::parse(golden("expected.json")),
             dialogues = Json::parse(golden("dialogues.json"));
  ASSERT_GT(expected["dialogues"].size(), 300u);
  for (const Json& row : expected["dialogues"]) {
    SCOPED_TRACE(row["template"].get<std::string>() + ", " + row["dialogue"].get<std::string>());
    Json variables = dialogues[row["dialogue"].get<std::string>()];
    variables["messages"] = chat_messages(variables["messages"]);
    if (!variables.contains("tools")) variables["tools"] = nullptr;
    variables["documents"] = nullptr;
    variables["add_generation_prompt"] = row["add_generation_prompt"];
    for (const auto& [name, token] : expected["tokens"].items()) variables[name] = token;
    expect_same(row, result_of(golden(row["template"]), variables));
  }
}

TEST(GoldenChat, Constructs) {
  const Json expected = Json::parse(golden("expected.json")),
             variables = Json::parse(golden("constructs.json"))["variables"];
  ASSERT_GT(expected["constructs"].size(), 150u);
  for (const Json& row : expected["constructs"]) {
    SCOPED_TRACE(row["template"]);
    expect_same(row, result_of(row["template"], variables));
  }
}

}  // namespace

}  // namespace tessera
