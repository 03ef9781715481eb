/// Models through functions of C: what is given wrong is an error, and never read beyond its end.

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/c_api/c_api.h"

namespace tessera {
namespace {

using CallResult = nlohmann::json;

class CModel : public testing::Test {
 protected:
  CModel() {
    run_ = tessera_run_new();
    model_ = tessera_model_open(
        run_, text(R"({"init_from": ")", repo_file("tests/golden/hub/gpt2"), R"(", "threads": 1})")
                  .c_str());
    EXPECT_NE(model_, nullptr) << error();
    again();
  }
  ~CModel() override {
    tessera_run_free(run_);
    tessera_model_free(model_);
  }

  /// A run serves one call.
  void again() {
    tessera_run_free(run_);
    run_ = tessera_run_new();
  }
  std::string error() const {
    const char* const json = tessera_error(run_);
    return json == nullptr ? "none" : CallResult::parse(json)["message"].get<std::string>();
  }
  /// What is said of a call with these arrays.
  std::string said(const std::vector<tessera_array>& arrays) {
    again();
    const int code = tessera_model_call(run_, model_, arrays.data(), std::ssize(arrays));
    EXPECT_EQ(code == 0, tessera_error(run_) == nullptr);
    EXPECT_EQ(code == 0, tessera_array_count(run_) > 0);
    return error();
  }
  tessera_array ids(const char* name = "input_ids", const char* dtype = "i64") {
    return {name, dtype, 2, shape_, ids_};
  }

  tessera_run* run_;
  tessera_model* model_;
  std::int64_t shape_[2] = {2, 3}, ids_[6] = {1, 2, 3, 4, 5, 6};
};

TEST_F(CModel, IsCalledWithArrays) {
  EXPECT_EQ(said({ids()}), "none");
  ASSERT_EQ(tessera_array_count(run_), 1);
  const tessera_array& logits = *tessera_array_at(run_, 0);
  EXPECT_STREQ(logits.name, "logits");
  EXPECT_STREQ(logits.dtype, "f32");
  ASSERT_EQ(logits.ndim, 3);
  EXPECT_EQ(logits.shape[0], 2);
  EXPECT_EQ(logits.shape[1], 3);
  EXPECT_EQ(tessera_array_at(run_, 1), nullptr);
  EXPECT_EQ(tessera_array_at(run_, -1), nullptr);
  std::vector<std::int32_t> narrow(std::begin(ids_), std::end(ids_));
  EXPECT_EQ(said({{"input_ids", "i32", 2, shape_, narrow.data()}}), "none");
}

TEST_F(CModel, WhatIsNoArrayIsRefused) {
  const std::int64_t huge[] = {std::numeric_limits<std::int64_t>::max(),
                               std::numeric_limits<std::int64_t>::max()},
                     many[20] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                     none[] = {0, 3}, below[] = {-1, 3};
  const auto shaped = [&](const std::int64_t* shape, std::int64_t ndim) {
    return tessera_array{"input_ids", "i64", ndim, shape, ids_};
  };
  EXPECT_EQ(said({}), "the call has no tensors; the model reads input_ids, labels, attention_mask");
  EXPECT_EQ(said({shaped(huge, 2)}),
            "input_ids has a dim of 9223372036854775807, which is no size of an array in memory");
  EXPECT_EQ(said({shaped(below, 2)}),
            "input_ids has a dim of -1, which is no size of an array in memory");
  EXPECT_EQ(said({shaped(many, 20)}), "input_ids has 20 dims; give at most 14");
  EXPECT_EQ(said({shaped(many, -1)}), "input_ids has -1 dims; give at most 14");
  EXPECT_EQ(said({shaped(nullptr, 2)}), "input_ids has no shape");
  EXPECT_EQ(said({shaped(none, 2)}), "input_ids is i32[0,3], without any rows");
  EXPECT_EQ(said({{"input_ids", "i64", 2, shape_, nullptr}}), "input_ids has no data");
  EXPECT_EQ(said({ids(nullptr)}), "array 0 has no name");
  EXPECT_EQ(said({ids("")}), "array 0 has no name");
  EXPECT_EQ(said({ids(), ids()}), "there are two arrays called input_ids");
  EXPECT_EQ(said({ids("input_ids", nullptr)}), "input_ids is of dtype ''; give f32, i32 or i64");
  EXPECT_EQ(said({ids("input_ids", "f64")}), "input_ids is of dtype 'f64'; give f32, i32 or i64");
  ids_[4] = std::int64_t{1} << 40;
  EXPECT_EQ(said({ids()}), "input_ids has 1099511627776 as number 4, which 32 bits do not hold");
  again();
  EXPECT_NE(tessera_model_call(run_, model_, nullptr, 3), 0);
  EXPECT_EQ(error(), "no arrays were given");
  again();
  EXPECT_NE(tessera_model_call(run_, nullptr, nullptr, 0), 0);
  EXPECT_EQ(error(), "there is no model: it is closed, or was never opened");
}

TEST_F(CModel, WritesBehindIds) {
  struct Case {
    const char *prompts, *flags, *says;
  };
  const Case kCases[] = {
      {"[[1, 2], [3]]", R"({"tokens": 3, "temperature": 0})", "none"},
      {"[]", "{}", "there are no prompts; give a text, ids, or a list of these"},
      {"[[]]", "{}", "the prompt has no ids; give at least one"},
      {"[[61]]", "{}", "the prompt has id 61; the model has ids from 0 to 60"},
      {"[[-1]]", "{}", "a prompt has the id -1; give whole numbers of at least 0"},
      {"[[1.5]]", "{}", "a prompt has the id 1.5; give whole numbers of at least 0"},
      {"[[\"1\"]]", "{}", "a prompt has the id \"1\"; give whole numbers of at least 0"},
      {"[{}]", "{}", "a prompt is {}; give a text, or a list of ids"},
      {"[[1]", "{}", "prompts are no JSON"},
      {"3", "{}", "the prompts are no list; give [\"a text\"]"},
      {"[[1]]", R"({"tokens": 0})", "--tokens is 0; it must be 1 or more"},
      {"[[1]]", R"({"devices": 2})", "'devices' is not about texts; there are "},
      {"[[1]]", "[", "the flags are no JSON"},
      {nullptr, "{}", "no prompts were given"},
      {"[[1]]", nullptr, "no flags were given"},
  };
  for (const auto& [prompts, flags, says] : kCases) {
    SCOPED_TRACE(says);
    again();
    tessera_model_write(run_, model_, prompts, flags, nullptr);
    EXPECT_TRUE(error().starts_with(says)) << error();
  }
  again();
  EXPECT_EQ(tessera_model_write(run_, model_, "[[1, 2], [3]]", R"({"tokens": 3})", nullptr), 0);
  const CallResult texts = CallResult::parse(tessera_result(run_));
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[1]["ids"].size(), 3u);
  EXPECT_EQ(texts[1]["text"], "");  // there is no tokenizer
}

TEST_F(CModel, SavesAndSpells) {
  struct Case {
    int (*call)(tessera_run* run, tessera_model* model, const char* json);
    const char *json, *says;
  };
  const Case kCases[] = {
      {tessera_model_save, "{}", "folder is missing; give one, like exported"},
      {tessera_model_save, "[]", "the flags are no object; give {\"folder\": \"exported\"}"},
      {tessera_model_save, R"({"folder": 3})", "'folder' is 3; there are folder, a text, dtype"},
      {tessera_model_save, R"({"folder": "a", "dtype": "f64"})",
       "dtype is \"f64\"; it is f32, bf16 or f16"},
      {tessera_model_save, nullptr, "no flags were given"},
      {tessera_model_tokens, R"({"text": "a"})", "the model has no tokenizer"},
  };
  for (const auto& [call, json, says] : kCases) {
    SCOPED_TRACE(says);
    again();
    EXPECT_NE(call(run_, model_, json), 0);
    EXPECT_TRUE(error().starts_with(says)) << error();
  }
  again();
  EXPECT_EQ(tessera_model_parameters(run_, model_, 1), 0);
  EXPECT_EQ(tessera_array_count(run_), 28);
}

TEST_F(CModel, WhatIsNoModelIsNotOpened) {
  for (const char* const flags :
       {"{}", "[", R"({"init_from": 3})", R"({"init_from": "nowhere"})",
        R"({"preset": "gpt2-tiny", "steps": 3})", R"({"preset": "gpt2-tiny", "vocab_size": -3})"}) {
    again();
    EXPECT_EQ(tessera_model_open(run_, flags), nullptr) << flags;
    EXPECT_NE(error(), "none") << flags;
  }
}

}  // namespace
}  // namespace tessera
