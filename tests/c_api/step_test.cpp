/// Steps that are compiled from graphs through functions of C: numbers in and out, states, errors.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/c_api/c_api.h"

namespace tessera {
namespace {

using StepJson = nlohmann::json;

struct OwnGraph {
  tessera_graph* handle = tessera_graph_new();
  ~OwnGraph() { tessera_graph_free(handle); }
  /// The id of its first value.
  std::string call(const StepJson& what) {
    EXPECT_EQ(tessera_graph_call(handle, what.dump().c_str()), 0) << tessera_graph_error(handle);
    const StepJson values = StepJson::parse(tessera_graph_result(handle)).at("values");
    return values.empty() ? "" : values[0].at("id").get<std::string>();
  }
};

struct OwnStep {
  tessera_step* handle = tessera_step_new();
  ~OwnStep() { tessera_step_free(handle); }
  int compile(OwnGraph& graph, const StepJson& how) {
    return tessera_step_compile(handle, &graph.handle, 1, how.dump().c_str());
  }
  int run(const std::vector<float>& x) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(x.size())};
    const tessera_array given = {"x", "f32", 1, shape, x.data()};
    return tessera_step_run(handle, "step", &given, 1);
  }
  float number(const char* name) {
    float out = -1;
    EXPECT_EQ(tessera_step_read(handle, name, &out, sizeof out), 0) << error();
    return out;
  }
  std::string error() const {
    const char* text = tessera_step_error(handle);
    return text == nullptr ? "" : StepJson::parse(text).at("message").get<std::string>();
  }
};

/// loss = mean((w x - 1)^2), w from 0.5.
void write_line(OwnGraph& graph) {
  const std::string x = graph.call({{"op", "batch"}, {"name", "x"}, {"shape", {4}}});
  const std::string w = graph.call({{"op", "parameter"},
                                    {"name", "w"},
                                    {"shape", StepJson::array()},
                                    {"init", {{"kind", "constant"}, {"value", 0.5}}}});
  const std::string product = graph.call({{"op", "mul"}, {"a", x}, {"b", w}});
  const std::string error = graph.call({{"op", "sub"}, {"a", product}, {"b", 1}});
  const std::string square = graph.call({{"op", "mul"}, {"a", error}, {"b", error}});
  const std::string loss = graph.call({{"op", "mean"}, {"x", square}});
  graph.call(
      {{"op", "update"},
       {"loss", loss},
       {"samples", 4},
       {"optimizer",
        {{"kind", "sgd"}, {"lr", 0.25}, {"momentum", 0}, {"weight_decay", 0}, {"clip", 0}}}});
  graph.call({{"op", "output"}, {"name", "loss"}, {"value", loss}});
}

TEST(CStep, ItTrains) {
  for (const int devices : {1, 2, 4}) {
    OwnGraph graph;
    write_line(graph);
    OwnStep step;
    ASSERT_EQ(step.compile(
                  graph, {{"names", {"step"}}, {"samples", 4}, {"flags", {{"devices", devices}}}}),
              0)
        << step.error();
    // d loss / d w = mean(2 (w x - 1) x): -1 at w = 0.5, -0.5 at 0.75, where x is 1.
    for (const float w : {0.5F, 0.75F, 0.875F}) {
      ASSERT_EQ(step.run({1, 1, 1, 1}), 0) << step.error();
      EXPECT_FLOAT_EQ(step.number("loss"), (w - 1) * (w - 1));
    }
    ASSERT_EQ(tessera_step_call(step.handle, R"({"do": "states"})"), 0);
    EXPECT_FLOAT_EQ(step.number("w"), 0.9375F);
    const float other = 2;
    const tessera_array given = {"w", "f32", 0, nullptr, &other};
    ASSERT_EQ(tessera_step_write(step.handle, &given, 1), 0) << step.error();
    ASSERT_EQ(step.run({1, 1, 1, 1}), 0);
    EXPECT_FLOAT_EQ(step.number("loss"), 1);
  }
}

TEST(CStep, WhatIsWrongIsSaidAndTheStepGoesOn) {
  OwnGraph graph;
  write_line(graph);
  OwnStep step;
  EXPECT_EQ(step.run({1}), 2);
  EXPECT_NE(step.error().find("not compiled"), std::string::npos);
  EXPECT_EQ(step.compile(graph, {{"names", {"step"}}, {"flags", {{"devise", 2}}}}), 2);
  EXPECT_NE(step.error().find("--devise"), std::string::npos) << step.error();
  EXPECT_EQ(step.compile(graph, {{"names", {"step"}}, {"meshh", {{"dp", 2}}}}), 2);
  EXPECT_NE(step.error().find("nearest is mesh"), std::string::npos) << step.error();
  ASSERT_EQ(step.compile(graph, {{"names", {"step"}}, {"samples", 4}}), 0) << step.error();
  EXPECT_EQ(step.compile(graph, {{"names", {"step"}}, {"samples", 4}}), 2);
  EXPECT_EQ(step.run({1, 2, 3}), 2);
  EXPECT_NE(step.error().find("input 'x' is f32[3], and the step takes f32[4]"), std::string::npos)
      << step.error();
  EXPECT_EQ(tessera_step_run(step.handle, "stepp", nullptr, 0), 2);
  EXPECT_EQ(tessera_step_run(step.handle, "init", nullptr, 0), 2);
  EXPECT_EQ(tessera_step_run(step.handle, "step", nullptr, 0), 2);
  EXPECT_NE(step.error().find("'x' is missing"), std::string::npos) << step.error();
  ASSERT_EQ(step.run({1, 1, 1, 1}), 0);
  double wide = 0;
  EXPECT_EQ(tessera_step_read(step.handle, "loss", &wide, sizeof wide), 2);
  EXPECT_FLOAT_EQ(step.number("loss"), 0.25F);
  EXPECT_EQ(tessera_step_read(step.handle, "loss", &wide, 4), 2);  // each can be read once
}

TEST(CStep, APlaceIsFoundWithoutDevices) {
  OwnGraph graph;
  const std::string x = graph.call({{"op", "batch"}, {"name", "x"}, {"shape", {1024, 1 << 20}}});
  const std::string y = graph.call({{"op", "linear"}, {"x", x}, {"name", "up"}, {"out", 1 << 20}});
  graph.call({{"op", "output"}, {"name", "y"}, {"value", y}});
  OwnStep step;
  const StepJson how = {{"names", {"step"}},
                        {"samples", 1024},
                        {"flags", {{"devices", 8}}},
                        {"search_mode", "dynamic_programming"}};
  ASSERT_EQ(tessera_step_place(step.handle, &graph.handle, 1, how.dump().c_str()), 0)
      << step.error();
  const StepJson found = StepJson::parse(tessera_step_result(step.handle));
  EXPECT_GT(found["search"]["step_seconds"], 0);
  EXPECT_TRUE(found["pins"].contains("up.weight"));
}

}  // namespace
}  // namespace tessera
