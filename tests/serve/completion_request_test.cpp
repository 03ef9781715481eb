#include "tessera/serve/completion_request.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/serve/api_error.h"

namespace tessera {
namespace {

TEST(CompletionRequest, FieldsAreRead) {
  const CompletionRequest all = read_completion_request(
      R"({"model": "m", "prompt": "In", "max_tokens": 7, "temperature": 0.5, "top_p": 0.9,
          "top_k": 3, "seed": 9, "stop": ["a", "b"], "stream": true,
          "stream_options": {"include_usage": true}, "user": "me", "n": 1, "echo": false,
          "presence_penalty": 0.0, "logprobs": null, "logit_bias": {}})",
      false);
  EXPECT_EQ(all.model, "m");
  EXPECT_EQ(all.prompt, "In");
  EXPECT_EQ(all.max_tokens, 7);
  EXPECT_EQ(all.temperature, 0.5);
  EXPECT_EQ(all.top_p, 0.9);
  EXPECT_EQ(all.top_k, 3);
  EXPECT_EQ(all.seed, 9u);
  EXPECT_EQ(all.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(all.stream && all.include_usage);
  const CompletionRequest least = read_completion_request(R"({"prompt": ""})", false);
  EXPECT_FALSE(least.max_tokens || least.seed || least.stream);
  EXPECT_EQ(least.temperature, 1);
  EXPECT_EQ(read_completion_request(R"({"prompt": ["In"]})", false).prompt, "In");
  EXPECT_EQ(read_completion_request(R"({"prompt": [3, 4]})", false).prompt_ids,
            (std::vector<std::int32_t>{3, 4}));
  EXPECT_EQ(read_completion_request(R"({"prompt": [[3]]})", false).prompt_ids,
            (std::vector<std::int32_t>{3}));
  EXPECT_EQ(read_completion_request(R"({"prompt": "", "top_k": -1})", false).top_k, 0);
}

TEST(CompletionRequest, MessagesAreTextAlone) {
  const CompletionRequest out = read_completion_request(
      R"({"messages": [{"role": "system", "content": "S", "name": "n", "refusal": null},
          {"role": "user", "content": [{"type": "text", "text": "a"},
                                       {"type": "text", "text": "b"}]}],
          "max_completion_tokens": 5})",
      true);
  EXPECT_EQ(out.messages.dump(),
            R"([{"role":"system","content":"S","name":"n"},{"role":"user","content":"ab"}])");
  EXPECT_EQ(out.max_tokens, 5);
}

struct RefusedBody {
  std::string body;
  const char* message;
  bool chat = false;
};

TEST(CompletionRequest, WhatIsNotDoneIsRefusedByName) {
  const std::string deep(100, '[');
  std::string keys = "\"k\": 0", many = R"({"role": "user", "content": ""})";
  for (int i = 0; i < 256; ++i) keys += text(", \"k", i, "\": 0");
  for (int i = 0; i < 4096; ++i) many += R"(, {"role": "user", "content": ""})";
  const RefusedBody cases[] = {
      {"", "the body is no JSON: "},
      {"{", "the body is no JSON: "},
      {"[]", "the body is no JSON object"},
      {"{\"prompt\": \"\xFF\"}", "the body is no JSON: "},
      {"{\"prompt\": \"\\ud800\"}", "the body is no JSON: "},
      {"{\"prompt\": " + deep, "the body is JSON deeper than 32"},
      {"{\"prompt\": " + std::string(1 << 20, '['), "the body is JSON deeper than 32"},
      {R"({"prompt": "a", "prompt": "b"})", "the body has \"prompt\" twice"},
      {R"({"messages": [{"role": "a", "role": "b"}]})", "the body has \"role\" twice", true},
      // Either would take minutes in a body of 4 MiB.
      {"{\"prompt\": \"\", \"metadata\": {" + keys + "}}",
       "the body has an object of more than 256 keys"},
      {"{\"messages\": [" + many + "]}", "messages has 4097 messages; give at most 4096", true},
      {"{}", "prompt is missing"},
      {R"({"prompt": null})", "prompt is missing"},
      {R"({"messages": []})", "messages is no list of messages", true},
      {R"({"prompt": "a"})", "unknown field \"prompt\"", true},
      {R"({"messages": "a"})", "unknown field \"messages\""},
      {R"({"prompt": 1})", "prompt is neither one text nor one list of tokens"},
      {R"({"prompt": ["a", "b"]})", "prompt is neither one text nor one list of tokens"},
      {R"({"prompt": [1, "b"]})", "prompt is no whole number, or too large"},
      {R"({"prompt": [-1]})", "prompt is -1; it must be from 0 to 2147483647"},
      {R"({"prompt": "", "max_tokens": 0})", "max_tokens is 0; it must be from 1 to 2147483647"},
      {R"({"prompt": "", "max_tokens": 1.5})", "max_tokens is no whole number, or too large"},
      {R"({"prompt": "", "max_tokens": 1e400})", "the body is no JSON: "},
      {R"({"prompt": "", "temperature": "1"})", "temperature is no number"},
      {R"({"prompt": "", "temperature": -0.1})", "temperature is -0.1; it must be from 0 to 100"},
      {R"({"prompt": "", "top_p": 0})", "top_p is 0; it must be from "},
      {R"({"prompt": "", "seed": 18446744073709551615})", "seed is no whole number, or too large"},
      {R"({"prompt": "", "seed": -1})", "seed is -1; it must be from 0 to "},
      {R"({"prompt": "", "stop": ""})", "stop has a text that is empty or longer than 1024"},
      {R"({"prompt": "", "stop": [1]})", "stop is no text"},
      {R"({"prompt": "", "stream": 1})", "stream is neither true nor false"},
      {R"({"prompt": "", "stream_options": {}})", "stream_options is for \"stream\": true alone"},
      {R"({"prompt": "", "n": 2})", "n is not supported; leave it out, or give 1"},
      {R"({"prompt": "", "echo": true})", "echo is not supported; leave it out, or give false"},
      {R"({"prompt": "", "logprobs": 0})", "logprobs is not supported"},
      {R"({"prompt": "", "max_token": 3})", "unknown field \"max_token\""},
      {R"({"messages": [1]})", "messages[0] is no object", true},
      {R"({"messages": [{"content": "a"}]})", "messages[0].role is missing", true},
      {R"({"messages": [{"role": "user"}]})", "messages[0].content is missing", true},
      {R"({"messages": [{"role": "user", "content": 1}]})", "messages[0].content is no text", true},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       "messages[0].content[0] is no part of type text", true},
      {R"({"messages": [{"role": "assistant", "content": "", "tool_calls": []}]})",
       "messages[0].tool_calls is not supported", true},
      {R"({"messages": [{"role": "user", "content": "a"}], "tools": [{}]})",
       "tools is not supported; leave it out, or give []", true},
      {R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1,
           "max_completion_tokens": 2})",
       "max_completion_tokens differs from the other limit of tokens", true},
  };
  for (const RefusedBody& c : cases) {
    SCOPED_TRACE(c.body.substr(0, 200));
    try {
      read_completion_request(c.body, c.chat);
      ADD_FAILURE() << "taken";
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_EQ(std::string(error.what()).substr(0, std::string(c.message).size()), c.message);
      EXPECT_EQ(dump(error.json()).find("\n"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tessera
