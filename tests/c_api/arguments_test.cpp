#include "tessera/c_api/arguments.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

TEST(Arguments, OfJson) {
  constexpr struct {
    const char *json, *arguments;
  } kCases[] = {
      {"{}", ""},
      {R"({"steps": 8, "zero_stage": 1})", "--steps=8 --zero-stage=1"},  // in their order
      {R"({"bf16": true, "fsdp": false, "seed": null})", "--bf16=true --fsdp=false"},
      {R"({"lr": 0.001, "clip_grad": 1e-9})", "--lr=0.001 --clip-grad=1e-09"},
      {R"({"valid_data": ["a", "b"], "offload": ["--x"]})", "--valid-data=a b --offload=--x"},
      {R"({"data": "\u00e9=1"})", "--data=\xc3\xa9=1"},
      {R"({"": "--x", "data": ["a"], "seed": 1})", "--data=a --seed=1 -- --x"},
      {R"({"": null})", ""},
      {R"({"": ["--a", "b"], "seed": 1})", "--seed=1 -- --a b"},
      {R"(["--steps", "8"])", "--steps 8"},
  };
  for (const auto& c : kCases) EXPECT_EQ(join(arguments_of(c.json), " "), c.arguments);
}

TEST(Arguments, WhatIsNoneIsRefusedByName) {
  constexpr struct {
    const char *json, *message;
  } kCases[] = {
      {"", "the flags are no JSON"},
      {"{\"steps\": 8", "the flags are no JSON"},
      {"8", "the flags are no JSON"},
      {R"({"lr": {"a": 1}})", "--lr is {\"a\":1}; give a number, a text"},
      {R"({"lr": [[1]]})", "--lr is [1]; give a number, a text"},
      {R"({"offload": []})", "--offload is an empty list"},
      {R"({"data": ["a", "--steps"]})", "--data has a value '--steps'"},
      {R"({"": [["a"]]})", "PATH is [\"a\"]; give a number, a text"},
      {R"([null])", "an argument is null"},
  };
  for (const auto& c : kCases) {
    try {
      arguments_of(c.json);
      ADD_FAILURE() << c.json;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      EXPECT_TRUE(std::string_view(error.what()).starts_with(c.message)) << error.what();
    }
  }
}

}  // namespace
}  // namespace tessera
