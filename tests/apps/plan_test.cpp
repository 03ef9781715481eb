/// What `tessera plan` tells of a mesh.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "repo_file.h"
#include "tessera/base/cores.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/device/device.h"
#include "tessera/machines/find_machine.h"
#include "tessera/machines/machine_file.h"

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
  const std::string printed = run(words(kPlan + "--verbose")).out;
  for (const char* of_many : {"sends", "sent", "dp=", "each device", "all devices"})
    EXPECT_EQ(printed.find(of_many), std::string::npos) << of_many << " in\n" << printed;
}

TEST(PlanCommand, PlansForTheDeviceThatTrainingWillUse) {
  EXPECT_EQ(run(words(kPlan + "--verbose --no-amx")).out.find("amx:"), std::string::npos);
  EXPECT_EQ(run(words(kPlan + "--verbose")).out.find("amx:") != std::string::npos,
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
  const std::string printed = run(words(kPlan + "--verbose")).out;
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
  const Ran ran = run(words(kPlan + "--verbose " + mesh));
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* told :
       {"on             4 devices of 1 thread, in f32", "plan           dp=2 tp=2, recompute ",
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
  EXPECT_NE(
      one.err.find("--schedule-svg never.svg draws pipeline stages, but "
                   "pipeline-model-parallel-size is 1; raise it, or leave --schedule-svg out"),
      std::string::npos)
      << one.err;
  const Ran unnamed = run({"plan", "--preset", "gpt2-tiny", "--vocab-size", "64", "--devices", "2",
                           "--pipeline-model-parallel-size", "2", "--schedule-svg="});
  EXPECT_EQ(unnamed.code, static_cast<int>(Fault::Usage));
  EXPECT_NE(unnamed.err.find("--schedule-svg has an empty value, perhaps an unset variable"),
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

  const Ran ran = run(words(kPlan + "--verbose " + flags));
  for (const char* told : {"pipeline              1f1b: 2 stages",
                           "  stage  in flight  planned peak", "of a step, as priced\n",
                           ", the fullest, at its fullest moment\n", "what a device of stage "})
    EXPECT_NE(ran.out.find(told), std::string::npos) << told << " in\n" << ran.out;
}

/// The lines of the short output, with its first words. Flags decide which there are.
TEST(PlanCommand, SaysInAFewLinesWhatDecides) {
  struct Case {
    const char* flags;
    std::vector<std::string> names;
    std::vector<std::string> told;
  };
  const Case cases[] = {
      {"",
       {"model", "parameters", "on", "plan", "batch", "memory", "  at its most", "work", "time",
        "next"},
       {"model          gpt2, 4 layers, width 64, 8 heads, context 32, vocabulary 64\n",
        "parameters     206,208\n", "on             1 device of 1 thread, in f32",
        "plan           recompute elementwise\n",
        "batch          8 samples, 256 tokens a step, in 1 micro-batch of 8 samples\n",
        "time           give --machine NAME, or ",
        "next           tessera train with the same flags, --data FILE, --output FOLDER; "
        "--verbose prints"}},
      {"--bf16 --memory-cap 1GiB --micro-batch-size 2 --recompute-granularity full "
       "--recompute-layers 0-1 --save-every 3 --offload-optimizer --remote-device nvme "
       "--offload-folder .",
       {"model", "parameters", "on", "plan", "batch", "memory", "  at its most", "  in a file",
        "  beside it", "work", "time", "next"},
       {"in bf16 with parameters and updates in f32\n",
        "plan           recompute full of layers 0-1, offload optimizer\n",
        "in 4 micro-batches of 2 samples\n", " % of the cap of 1.00 GiB\n", " to save from\n"}},
      {"--devices 8 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --zero-stage 1 "
       "--micro-batch-size 4 --machine a100-1024 --output x",
       {"model", "parameters", "on", "plan", "pipeline",
        "  fewer micro-batches than stages: some "
        "always wait; lower --micro-batch-size",
        "batch", "memory", "  at its most", "work", "time", "  it goes to", "  known error", "sent",
        "next"},
       {"on             8 devices, in f32\n", "plan           pp=2 dp=2 tp=2, ZeRO-1, recompute ",
        "pipeline       1f1b: 2 stages, 1 chunk on each, 1 micro-batch, waiting ",
        "in 1 micro-batch of 4 samples on each of 2 data parallel ranks\n",
        " of a device of stage ", " % of the 80.0 GiB of a100-1024\n",
        " tokens/s, predicted for a100-1024\n", "products ", " a step by a device of stage ",
        " along tp",
        "next           --auto finds the fastest plan that fits; --verbose prints this"}},
  };
  for (const Case& c : cases) {
    const Ran ran = run(words(kPlan + c.flags)),
              all = run(words(text(kPlan, "--verbose ", c.flags)));
    ASSERT_EQ(ran.code, 0) << ran.err;
    std::vector<std::string> names;
    for (const std::string& line : split(ran.out, '\n')) {
      if (line.empty()) continue;
      const bool sentence = line.starts_with("  fewer");
      names.push_back(sentence ? line : std::string(line.substr(0, 15)));
      if (!sentence) names.back().resize(names.back().find_last_not_of(' ') + 1);
    }
    EXPECT_EQ(names, c.names) << ran.out;
    for (const std::string& told : c.told)
      EXPECT_NE(ran.out.find(told), std::string::npos) << told << " in\n" << ran.out;
    EXPECT_TRUE(all.out.starts_with(ran.out)) << "all of it begins with the few lines";
    EXPECT_NE(all.out.find("\ncompile time, ms\n"), std::string::npos);
  }
}

/// Workspaces, and so the memory, and how f32 is multiplied depend on the processor; all else is as
/// docs/guides/plan.md shows.
TEST(PlanCommand, TheDocumentShowsItsFewLines) {
  const Ran ran =
      run(words("plan --preset gpt2-tiny --vocab-size 65 --devices 4 --threads 1 "
                "--tensor-model-parallel-size 2 --zero-1-memory-optimization"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string page = read(repo_file("docs/guides/plan.md"));
  int lines = 0;
  for (const std::string& line : split(ran.out, '\n')) {
    const std::string name(line.substr(0, line.find("  ", 2)));
    if (name == "memory" || name == "  at its most" || name == "on") continue;
    EXPECT_NE(page.find(line + "\n"), std::string::npos) << line;
    ++lines;
  }
  EXPECT_GT(lines, 8);
}

/// What a plan takes against what there is: tokens and bytes are those of --json.
TEST(PlanCommand, ItsFewLinesHaveTheNumbersOfItsJson) {
  const std::string flags = "--devices 2 --machine a100-1024 ";
  const nlohmann::json json = json_of(flags);
  const std::string few = run(words(kPlan + flags)).out;
  const auto bytes = json["planned_peak_bytes"].get<std::int64_t>();
  const double seconds = json["predicted_step_seconds"], tokens = json["tokens_per_step"];
  for (const std::string& told :
       {text("memory         ", bytes_text(bytes), " of each device, "),
        text(" a step, ", grouped(std::llround(tokens / seconds)), " tokens/s"),
        std::string("  known error  25 % too short on average"),
        text("sent           ", bytes_text(json["sent_bytes_per_step"]["dp"]), " a step by each ")})
    EXPECT_NE(few.find(told), std::string::npos) << told << " in\n" << few;
  EXPECT_EQ(few.find("does not fit"), std::string::npos);
}

TEST(PlanCommand, SaysWhereAMachineHasTooLittleMemory) {
  const Folder folder;
  std::string machine = machine_file_text(find_machine("a100-1024"));
  const std::size_t at = machine.find("80 GiB");
  ASSERT_NE(at, std::string::npos) << machine;
  folder.write("small.toml", machine.replace(at, 6, "1 MiB"));
  const Ran ran = run(words(folder.expand(kPlan + "--machine @/small.toml")));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find(": it does not fit; --auto looks for a plan that does\n"),
            std::string::npos)
      << ran.out;
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
  for (const char* name : {"json", "verbose", "placements", "schedule-svg", "config", "preset",
                           "data", "valid-data", "epochs"})
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
