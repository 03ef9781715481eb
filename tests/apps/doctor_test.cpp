#include "tessera/apps/doctor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "tessera/machines/find_machine.h"

namespace tessera {
namespace {

/// A machine with nothing wrong.
DoctorFacts healthy() {
  DoctorFacts out;
  out.version = "1.0", out.build = "Release", out.product_library = "oneDNN 2.6.3";
  out.mpi = true;
  out.processor = "A Processor", out.isa = Isa::Avx512;
  out.cores = out.cores_of_machine = 8;
  out.load = 0.1;
  out.memory = 16LL << 30, out.free_memory = 12LL << 30;
  out.huge_pages = "madvise";
  out.open_files = 65536, out.locked_memory = 8 << 20, out.address_space = -1;
  out.shared_memory = out.free_shared_memory = 8LL << 30;
  out.folder = "runs", out.free_disk = 100LL << 30;
  out.launched = "none";
  return out;
}

std::string problems_of(const DoctorFacts& facts) {
  std::string out;
  for (const DoctorLine& line : examine(facts))
    if (!line.problem.empty()) out += text(line.name, ": ", line.problem, "\n");
  return out;
}

TEST(Doctor, FindsEachThingThatIsWrong) {
  EXPECT_EQ(problems_of(healthy()), "");
  const struct {
    const char* name;
    void (*spoil)(DoctorFacts&);
    const char* told;
  } cases[] = {
      {"a build for debuggers", [](DoctorFacts& f) { f.build = "Debug"; },
       "version: it was built without optimization"},
      {"an old processor", [](DoctorFacts& f) { f.isa = Isa::Baseline; },
       "instruction set: without AVX2, kernels are slow"},
      {"a program that was compiled for another processor alone",
       [](DoctorFacts& f) { f.isa = Isa::Baseline, f.left_out = "avx2"; },
       "instruction set: this program has no fast kernels for this processor, because it was "
       "compiled without avx2; run ./dev build here"},
      {"a container with less time than cores", [](DoctorFacts& f) { f.group_cores = 2.5; },
       "cores: a control group allows 2.5 cores' time, shared by 8 threads; give "
       "--threads 2,"},
      {"neighbours", [](DoctorFacts& f) { f.load = 4; }, "load: other programs use about 4.0 of 8"},
      {"little memory", [](DoctorFacts& f) { f.free_memory = 100 << 20; },
       "memory: little is left"},
      {"no huge pages", [](DoctorFacts& f) { f.huge_pages = "never"; }, "huge pages: the system"},
      {"few files", [](DoctorFacts& f) { f.open_files = 256; },
       "open files (ulimit -n): each rank"},
      {"a small address space", [](DoctorFacts& f) { f.address_space = 4LL << 30; },
       "address space (ulimit -v): it is below the 12.0 GiB"},
      {"docker's /dev/shm of an earlier program", [](DoctorFacts& f) { f.free_shared_memory = 0; },
       "/dev/shm: MPI ranks"},
      {"a full disk", [](DoctorFacts& f) { f.free_disk = 1 << 20; },
       "folder runs: little space is left"},
      {"a folder of another user", [](DoctorFacts& f) { f.folder_problem = "not yours"; },
       "folder runs: not yours"},
      {"half of a launcher", [](DoctorFacts& f) { f.launch_problem = "RANK without WORLD_SIZE"; },
       "launcher: RANK without WORLD_SIZE"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    DoctorFacts facts = healthy();
    c.spoil(facts);
    const std::string told = problems_of(facts);
    EXPECT_TRUE(told.starts_with(c.told)) << told;
    EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  }
}

TEST(Doctor, ReadsThisMachine) {
  const Folder folder;
  const DoctorFacts facts = doctor_facts(folder / "", [](const char*) { return nullptr; });
  EXPECT_GE(facts.cores, 1);
  EXPECT_GE(facts.cores_of_machine, facts.cores);
  EXPECT_GT(facts.memory, facts.free_memory);
  EXPECT_GT(facts.free_memory, 0);
  EXPECT_EQ(facts.folder_problem, "");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "")) << "it leaves nothing behind";
  EXPECT_EQ(facts.launch_problem, "");
  EXPECT_TRUE(facts.launcher.empty());
  const DoctorFacts elsewhere = doctor_facts(folder / "no", [](const char* name) {
    return std::string_view(name) == "RANK" ? "1" : nullptr;
  });
  EXPECT_NE(elsewhere.folder_problem.find("No such file"), std::string::npos);
  EXPECT_EQ(elsewhere.launcher, std::vector<std::string>{"RANK=1"});
  EXPECT_NE(elsewhere.launch_problem.find("WORLD_SIZE"), std::string::npos)
      << elsewhere.launch_problem;
}

TEST(Doctor, MeasuresAndPrintsJson) {
  const Folder folder;
  const Ran ran = run({"doctor", "--json", folder / ""});
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(ran.code, json.at("problems") == 0 ? 0 : 5) << ran.out;
  EXPECT_GT(json.at("product_flops_per_s"), 1e8);
  EXPECT_GT(json.at("memory_bytes_per_s"), 1e8);
  const Ran text = run({"doctor", "--no-measure", folder / ""});
  EXPECT_NE(text.out.find("instruction set"), std::string::npos);
  EXPECT_EQ(text.out.find("GFLOP/s"), std::string::npos);
}

/// What was measured is a machine for plans; it has so many devices.
TEST(Doctor, AFileWithoutANameIsOneProblem) {
  const Ran ran = run({"doctor", "--calibrate="});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err,
            "error: --calibrate has an empty value, perhaps an unset variable; give --calibrate "
            "FILE, or leave it out\n");
}

TEST(Doctor, Calibrates) {
  const Folder folder;
  const std::string file = folder / "here.toml";
  const Ran measured = run({"doctor", "--calibrate", file, "--devices", "2", "--threads", "1"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  const Machine here = find_machine(file);
  EXPECT_EQ(here.name, "here");
  EXPECT_EQ(here.devices(), 2);
  EXPECT_GT(here.device.f32.gigaflops_per_s, 0.1);
  EXPECT_GT(here.weights.alpha, 0);
  EXPECT_NE(here.known_error.find(" % at most, of the 9 short runs used to fit its weights"),
            std::string::npos)
      << here.known_error;
  EXPECT_NE(measured.out.find("# Measured by `tessera doctor --calibrate`"), std::string::npos);
  const Ran plan = run({"plan", "--preset", "gpt2-tiny", "--vocab-size", "256", "--devices", "2",
                        "--machine", file, "--json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_GT(nlohmann::json::parse(plan.out).at("predicted_step_seconds"), 0);
  const Ran more = run({"plan", "--preset", "gpt2-tiny", "--vocab-size", "256", "--devices", "4",
                        "--machine", file});
  EXPECT_EQ(more.code, 2);
  EXPECT_NE(more.err.find("devices 4 are more than the 2 of machine here"), std::string::npos)
      << more.err;
  std::filesystem::remove(file);
  const Ran both = run({"doctor", folder / "", "--json", "--no-measure", "--calibrate", file});
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(both.out, "");
  const std::vector<std::string> unread = {"the folder '" + folder / "" + "' does", "--json does",
                                           "--no-measure does"};
  for (const std::string& what : unread)
    EXPECT_NE(both.err.find(what + " nothing with --calibrate"), std::string::npos) << both.err;
  EXPECT_FALSE(std::filesystem::exists(file)) << "nothing is measured";
  const Ran alone = run({"doctor", "--devices", "2"});
  EXPECT_NE(alone.err.find("do nothing without --calibrate FILE"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace tessera
