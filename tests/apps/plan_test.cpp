/// What `tessera plan` tells of a mesh.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "tessera/base/cores.h"
#include "tessera/device/device.h"
#include "tessera/train/family_fields.h"
#include "tessera/train/fields.h"

namespace tessera {
namespace {

const std::string kPlan = "plan --preset gpt2-tiny --vocab-size 64 --threads 1 ";

nlohmann::json json_of(const std::string& flags) {
  const Ran ran = run(words(kPlan + "--json " + flags));
  EXPECT_EQ(ran.code, 0) << ran.err;
  return nlohmann::json::parse(ran.out);
}

TEST(PlanCommand, OneDeviceSendsNothingAndSaysNothingOfIt) {
  const nlohmann::json one = json_of("");
  EXPECT_EQ(one["devices"], 1);
  EXPECT_EQ(one["sent_bytes_per_step"], nlohmann::json::object());
  EXPECT_EQ(one["collectives"], nlohmann::json::array());
  EXPECT_FALSE(one.contains("placements"));
  EXPECT_EQ(run(words(kPlan)).out.find("sends"), std::string::npos);
}

TEST(PlanCommand, PlansForTheDeviceThatTrainingWillUse) {
  EXPECT_EQ(run(words(kPlan + "--no-amx")).out.find("amx:"), std::string::npos);
  EXPECT_EQ(run(words(kPlan)).out.find("amx:") != std::string::npos,
            machine_choices().isa == Isa::Amx);
}

/// Each call is counted in every micro-batch that runs it: their FLOPs are those of the step.
TEST(PlanCommand, TellsKernelsAndTheirWork) {
  const auto calls_of = [](const nlohmann::json& plan, const std::string& op) {
    std::int64_t calls = 0;
    for (const nlohmann::json& use : plan["kernels"]) {
      if (use["op"] == op) calls += use["calls"].get<std::int64_t>();
    }
    return calls;
  };
  const auto flops_of = [](const nlohmann::json& plan) {
    double flops = 0;
    for (const nlohmann::json& use : plan["kernels"]) flops += use["flops"].get<double>();
    return flops;
  };
  const nlohmann::json one = json_of(""), two = json_of("--devices 2"),
                       four = json_of("--micro-batch-size 1");
  EXPECT_EQ(calls_of(one, "attention"), 4);
  EXPECT_EQ(calls_of(two, "attention"), 4) << "on one of them";
  EXPECT_EQ(calls_of(four, "attention"), 4 * four["micro_batches"].get<std::int64_t>());
  EXPECT_GT(four["micro_batches"], 1);
  EXPECT_DOUBLE_EQ(flops_of(one), one["flops_per_step"].get<double>());
  EXPECT_DOUBLE_EQ(2 * flops_of(two), two["flops_per_step"].get<double>());
  const std::string printed = run(words(kPlan)).out;
  EXPECT_NE(printed.find("  attention (hwy:attention)\n"), std::string::npos) << printed;
}

/// Workspaces depend on the number of threads, and training shares the cores out over its devices.
TEST(PlanCommand, PlansWithTheThreadsThatTrainingWillUse) {
  const std::string plan = "plan --preset gpt2-tiny --vocab-size 64 --devices 2 --json";
  const int threads = std::max(1, num_usable_cores() / 2);
  const auto peak = [](const std::string& command) {
    return nlohmann::json::parse(run(words(command)).out)["planned_peak_bytes"];
  };
  EXPECT_EQ(peak(plan), peak(text(plan, " --threads ", threads)));
}

TEST(PlanCommand, TellsBuckets) {
  const nlohmann::json each = json_of("--devices 4"),
                       joined = json_of("--devices 4 --bucket-mb 25"),
                       two = json_of("--devices 4 --bucket-cap-mb 1 --width 128");
  EXPECT_FALSE(each.contains("buckets"));
  ASSERT_EQ(joined["buckets"].size(), 1u);
  EXPECT_EQ(joined["buckets"][0], (nlohmann::json{{"region", "backward"},
                                                  {"all_reduces", 52},
                                                  {"bytes", 4 * joined["parameters"].get<int>()},
                                                  {"copied_bytes", 0}}));
  EXPECT_EQ(joined["sent_bytes_per_step"], each["sent_bytes_per_step"]);
  EXPECT_GT(two["buckets"].size(), 1u);
  for (const nlohmann::json& bucket : two["buckets"]) EXPECT_LE(bucket["bytes"], 1 << 20);
}

/// Layers that have the parameters of the first one have no gradients of their own to group.
TEST(PlanCommand, GroupsGradientsOfSharedLayers) {
  const Ran ran =
      run(words("plan --preset bert-tiny --family albert --vocab-size 64 --threads 1 "
                "--devices 2 --gradient-aggregation-group 2"));
  EXPECT_EQ(ran.code, 0) << ran.err;
}

/// gpt2-tiny has activations of 8 x 32 x 64 numbers, 32 KiB on each of two data parallel devices.
TEST(PlanCommand, TellsCollectivesByBlockAndBytesByAxis) {
  const std::string mesh = "--devices 4 --tensor-model-parallel-size 2";
  const Ran ran = run(words(kPlan + mesh));
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* told :
       {"mesh                  dp=2 tp=2: 4 devices\n",
        "each of layers.0 ... layers.3 (4 blocks)\n",
        "    forward   all_reduce      tp            2      32.0 KiB      64.0 KiB\n",
        "    backward  all_reduce      tp            2      32.0 KiB      64.0 KiB\n"})
    EXPECT_NE(ran.out.find(told), std::string::npos) << told << " in\n" << ran.out;
  const nlohmann::json json = json_of(mesh);
  EXPECT_EQ(json["mesh"], "dp=2 tp=2");
  std::map<std::string, std::int64_t> sent;
  for (const auto& flows : json["collectives"]) {
    for (const auto& call : flows["calls"])
      sent[call["axes"].get<std::string>()] += call["bytes"].get<std::int64_t>() *
                                               call["calls"].get<std::int64_t>() *
                                               static_cast<std::int64_t>(flows["blocks"].size());
  }
  EXPECT_EQ(nlohmann::json(sent), json["sent_bytes_per_step"]);
  EXPECT_GT(sent["dp"], 0);
}

TEST(PlanCommand, ADeviceOfManyHoldsLess) {
  const auto parameters = [](const std::string& flags) {
    return json_of(flags)["memory"]["parameters"].get<std::int64_t>();
  };
  const std::int64_t one = parameters("");
  EXPECT_EQ(parameters("--devices 4"), one);
  EXPECT_EQ(parameters("--devices 4 --zero-3-memory-optimization"), one / 4);
}

TEST(PlanCommand, TellsWhereValuesLie) {
  const nlohmann::json json = json_of(
      "--devices 4 --tensor-model-parallel-size 2 --zero-3-memory-optimization --placements");
  int found = 0;
  for (const auto& blocks : json["placements"]) {
    for (const auto& value : blocks["values"]) {
      if (value["path"] == "attn.qkv.weight" && value["kind"] == "parameter") {
        EXPECT_EQ(value["placement"], "[tp.dp,-]");
        EXPECT_EQ(value["read_as"], "[tp,-]");
        ++found;
      }
      if (value["path"] == "mlp.down" && value["kind"] == "forward" && value["op"] == "matmul") {
        EXPECT_EQ(value["placement"], "[dp,-,-]+tp");
      }
    }
  }
  EXPECT_GT(found, 0);
}

TEST(PlanCommand, DrawsPipelinesAlone) {
  const Ran one = run(words(kPlan + "--schedule-svg never.svg"));
  EXPECT_EQ(one.code, static_cast<int>(Fault::Usage));
  EXPECT_NE(one.err.find("--schedule-svg never.svg draws the stages of a pipeline, and "
                         "pipeline-model-parallel-size is 1; raise that, or leave --schedule-svg "
                         "out"),
            std::string::npos)
      << one.err;
  const Ran unnamed = run({"plan", "--preset", "gpt2-tiny", "--vocab-size", "64", "--devices", "2",
                           "--pipeline-model-parallel-size", "2", "--schedule-svg="});
  EXPECT_EQ(unnamed.code, static_cast<int>(Fault::Usage));
  EXPECT_NE(unnamed.err.find("--schedule-svg has an empty value, as of a variable that is not set"),
            std::string::npos)
      << unnamed.err;
}

/// The second stage has the head, a third layer less and nothing of the positions.
TEST(PlanCommand, TellsOfTheFullestStage) {
  const Folder folder;
  const std::string flags =
      "--devices 4 --layers 3 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2 "
      "--micro-batch-size 2 ";
  const nlohmann::json json = json_of(text(flags, "--schedule-svg ", folder / "schedule.svg")),
                       stages = json["pipeline"];
  EXPECT_EQ(read(folder / "schedule.svg").substr(0, 4), "<svg");
  EXPECT_EQ(json["mesh"], "pp=2 tp=2");
  EXPECT_EQ(json["devices"], 4);
  for (const char* key : {"planned_peak_bytes", "lower_bound_bytes"}) {
    ASSERT_EQ(stages[key].size(), 2u);
    EXPECT_NE(stages[key][0], stages[key][1]) << key;
    EXPECT_EQ(json[key], *std::max_element(stages[key].begin(), stages[key].end())) << key;
  }
  const std::size_t fullest = json["planned_peak_bytes"] == stages["planned_peak_bytes"][0] ? 0 : 1;
  EXPECT_EQ(json["memory"], stages["memory"][fullest]);
  EXPECT_EQ(json["state_bytes"], stages["state_bytes"][fullest]);
  EXPECT_EQ(json["state_bytes"].get<std::int64_t>() + json["work_bytes"].get<std::int64_t>(),
            json["planned_peak_bytes"]);
  EXPECT_EQ(json["flops_per_step"], 2 * (stages["flops_per_step"][0].get<double>() +
                                         stages["flops_per_step"][1].get<double>()));
  const auto sum = [](const nlohmann::json& sent) {
    std::int64_t out = 0;
    for (const auto& [axes, bytes] : sent.items()) out += bytes.get<std::int64_t>();
    return out;
  };
  const nlohmann::json& sent = stages["sent_bytes_per_step"];
  EXPECT_GT(sent[0]["pp"], 0);
  EXPECT_EQ(sum(json["sent_bytes_per_step"]), std::max(sum(sent[0]), sum(sent[1])));
  EXPECT_GT(stages["bubble"], stages["bubble_ideal"]) << "messages and uneven stages cost time";
  EXPECT_LT(stages["bubble"], 1);

  const Ran ran = run(words(kPlan + flags));
  for (const char* told : {"pipeline              1f1b: 2 stages",
                           "  stage  in flight  planned peak", "of a step, as priced\n",
                           ", the fullest, at its fullest moment\n", "what a device of stage "})
    EXPECT_NE(ran.out.find(told), std::string::npos) << told << " in\n" << ran.out;
}

/// All that is reported but times and what this process holds.
std::string report(const std::string& flags) {
  nlohmann::json json = json_of(flags);
  for (const char* key : {"compile_seconds", "outside_arena_bytes"}) json.erase(key);
  for (auto& pass : json["passes"]) pass.erase("seconds");
  return json.dump();
}

bool in_help(std::string_view name) {
  static const std::string kHelp = run({"plan", "--help"}).out;
  return kHelp.find(text("  --", name, "\n")) != std::string::npos ||
         kHelp.find(text("  --", name, " ")) != std::string::npos;
}

TEST(PlanCommand, ItsHelpListsTheFlagsThatMatter) {
  for (const char* name :
       {"json", "placements", "schedule-svg", "config", "preset", "data", "valid-data", "epochs"})
    EXPECT_TRUE(in_help(name)) << name;
  struct Row {
    const char *name, *flags, *beside;
  };
  for (const Row& row : {
           Row{"steps", "--steps 1", "--layers 1 --save-every 2"},
           Row{"eval-at-end", "--no-eval-at-end", "--layers 1"},
           Row{"lr-decay-style", "--lr-decay-style constant", "--layers 1"},
           Row{"lamb-min-trust-ratio", "--lamb-min-trust-ratio 0.5", "--layers 1 --optimizer lamb"},
           Row{"lamb-max-trust-ratio", "--lamb-max-trust-ratio 5", "--layers 1 --optimizer lamb"},
           Row{"layers", "--layers 2", ""},
       }) {
    EXPECT_TRUE(in_help(row.name)) << row.name;
    EXPECT_NE(report(row.beside), report(text(row.beside, " ", row.flags))) << row.name;
  }
}

/// Values like 0 and 1, with which an operation falls away, are left out.
TEST(PlanCommand, FlagsThatItsHelpLeavesOutChangeNothing) {
  std::map<std::string, std::string> bases;  // reports without the flag
  for (const Field& field : fields()) {
    if (in_help(field.name)) continue;
    const auto families = model_families();
    const auto reader = std::ranges::find_if(
        families, [&](const ModelFamily* family) { return is_read(field, *family); });
    ASSERT_NE(reader, families.end()) << field.name;
    const std::vector<std::string> optimizers =
        split(kind_text(*find_field("optimizer").field), '|');
    std::size_t kind = 0;
    while (!reads_option(static_cast<OptimizerKind>(kind), field.name)) ++kind;
    const std::string readers =
        text("--layers 1 --family ", (*reader)->name, " --optimizer ", optimizers.at(kind));
    const auto [found, is_new] = bases.try_emplace(readers);
    if (is_new) found->second = report(readers);
    const std::string name = text(readers, " --", field.name), base = found->second;
    const Slot slot = read_slot(field, {});
    if (std::holds_alternative<bool*>(slot)) {
      EXPECT_EQ(report(name + " true"), base) << field.name;
      EXPECT_EQ(report(name + " false"), base) << field.name;
    } else if (std::holds_alternative<std::int64_t*>(slot)) {
      EXPECT_EQ(report(name + " 30"), base) << field.name;
    } else if (std::holds_alternative<double*>(slot)) {
      EXPECT_EQ(report(name + (field.low >= 1 ? " 3" : " 0.0003")), base) << field.name;
    } else if (!std::holds_alternative<std::string*>(slot) && !is_list(field)) {
      for (const std::string& value : split(kind_text(field), '|'))
        EXPECT_EQ(report(text(name, " ", value)), base) << field.name;
    }
  }
}

}  // namespace
}  // namespace tessera
