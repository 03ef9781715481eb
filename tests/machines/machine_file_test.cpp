// Machine files: what they say, and how they are refused.
#include "tessera/machines/machine_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/machines/find_machine.h"

namespace tessera {
namespace {

constexpr const char* kFile = R"(name = "lab"
kernels = "cpu"

[links.core]
bandwidth = "12.5 GB/s"
latency = "800 ns"
units = 4

[links.socket]
bandwidth = "10 GB/s"
latency = "2 us"
units = 2
sharing = 4

[links.host]
bandwidth = "100 Gb/s"
latency = "5 us"
units = 3
sharing = 8

[links.rack]
bandwidth = "500 MB/s"
latency = "0.02 ms"
units = 1

[device]
memory = "32 GiB"
memory_bandwidth = "1.2 TB/s"
kernel_start = "3 us"
other_arithmetic = "2 TFLOP/s"
overlap = true
f32 = { peak = "900 GFLOP/s" }
f16 = { peak = "2 PFLOP/s", half_k = 16.5 }
bf16 = { peak = "256 TFLOP/s", half_m = 64, half_n = 32 }

[host]
bandwidth = "16 GB/s"
latency = "10 us"

[weights]
beta2 = 1.25
)";

/// The file with one text in place of another.
std::string with(const std::string& old_text, const std::string& new_text) {
  std::string out = kFile;
  const std::size_t at = out.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return out.replace(at, old_text.size(), new_text);
}

std::string refused(const std::string& file) {
  try {
    parse_machine_file(file, "lab.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    return error.what();
  }
  return "";
}

TEST(MachineFile, SaysWhatItSays) {
  const Machine m = parse_machine_file(kFile, "lab.toml");
  EXPECT_EQ(m.name, "lab");
  EXPECT_EQ(m.kernels, KernelSource::Cpu);
  EXPECT_EQ(m.core, (LinkSpeed{12.5, 0.8, 4, 1}));
  EXPECT_EQ(m.socket, (LinkSpeed{10, 2, 2, 4}));
  EXPECT_EQ(m.host, (LinkSpeed{12.5, 5, 3, 8}));
  EXPECT_EQ(m.rack, (LinkSpeed{0.5, 20, 1, 1}));
  EXPECT_EQ(m.devices(), 24);
  EXPECT_EQ(m.device.memory_bytes, std::int64_t{32} << 30);
  EXPECT_EQ(m.device.memory_gigabytes_per_s, 1200);
  EXPECT_EQ(m.device.f16, (FloatSpeed{2e6, 0, 0, 16.5}));
  EXPECT_EQ(m.device.bf16, (FloatSpeed{256e3, 64, 32, 0}));
  EXPECT_EQ(m.memory, (HostSpeed{0, 16, 10}));
  EXPECT_EQ(m.weights, (CostWeights{1, 1, 1.25, 1}));
}

TEST(MachineFile, RoundTrips) {
  const Machine m = parse_machine_file(kFile, "lab.toml");
  EXPECT_EQ(parse_machine_file(machine_file_text(m), "again"), m);
  for (const NamedMachine& named : named_machines())
    EXPECT_EQ(parse_machine_file(machine_file_text(named.machine), "again"), named.machine)
        << named.name;
}

/// doctor --calibrate names the machine as its file, which may have any name.
TEST(MachineFile, NamesRoundTrip) {
  Machine m = parse_machine_file(kFile, "lab.toml");
  for (const char* name : {"m\"x", "C:\\new", "Gr\xC3\xBC\xC3\x9F'e", "#=[a]"}) {
    m.name = name;
    EXPECT_EQ(parse_machine_file(machine_file_text(m), "again"), m) << name;
    EXPECT_EQ(machine_name_text(name), name);
  }
  EXPECT_EQ(machine_name_text("a\nb\tc\x1b[1m"), "a b c\\x1b[1m");
  EXPECT_EQ(machine_name_text(" "), "machine");
}

TEST(MachineFile, AKnownErrorRoundTrips) {
  const std::string kernels = "kernels = \"cpu\"";
  const Machine m =
      parse_machine_file(with(kernels, kernels + "\nknown_error = \"3 %\""), "lab.toml");
  EXPECT_EQ(m.known_error, "3 %");
  EXPECT_EQ(parse_machine_file(machine_file_text(m), "again"), m);
  EXPECT_EQ(
      refused(with(kernels, kernels + "\nknown_error = 3")),
      "lab.toml:3: known_error is 3; give a text in quotes, on one line, as known_error = \"5 "
      "% on average\"");
}

/// Memory of which nothing is told is not written as 0.
TEST(MachineFile, MemoryMayBeLeftOpen) {
  Machine m = parse_machine_file(kFile, "lab.toml");
  m.device.memory_bytes = 0;
  EXPECT_EQ(parse_machine_file(machine_file_text(m), "again"), m);
}

TEST(MachineFile, Refusals) {
  const struct {
    const char *old_text, *new_text, *message;
  } cases[] = {
      {"latency = \"800 ns\"", "latency = \"800 GB/s\"",
       "lab.toml:6: links.core.latency is \"800 GB/s\"; give a number 0 or more with one of the "
       "units us, ns, ms, as links.core.latency = \"5 us\""},
      {"bandwidth = \"12.5 GB/s\"", "bandwidth = 12.5",
       "lab.toml:5: links.core.bandwidth is 12.5; give a number above 0 with one of the units "
       "GB/s, MB/s, TB/s, Gb/s, as links.core.bandwidth = \"100 Gb/s\""},
      {"bandwidth = \"12.5 GB/s\"", "bandwidth = \"0 GB/s\"",
       "lab.toml:5: links.core.bandwidth is \"0 GB/s\"; give a number above 0 with"},
      {"bandwidth = \"12.5 GB/s\"", "bandwidth = \"-1 GB/s\"",
       "lab.toml:5: links.core.bandwidth is \"-1 GB/s\"; give a number above 0 with"},
      {"bandwidth = \"12.5 GB/s\"", "bandwidth = \"nan GB/s\"",
       "lab.toml:5: links.core.bandwidth is \"nan GB/s\"; give"},
      {"bandwidth = \"12.5 GB/s\"", "bandwidth = \"1e20 GB/s\"",
       "lab.toml:5: links.core.bandwidth is \"1e20 GB/s\"; give a number of at most 1e+15 GB/s "
       "with one of the units GB/s, MB/s, TB/s, Gb/s, as links.core.bandwidth = \"100 Gb/s\""},
      {"bandwidth = \"12.5 GB/s\"", "bandwidth = \"1e-300 GB/s\"",
       "lab.toml:5: links.core.bandwidth is \"1e-300 GB/s\"; give a number of at least 1e-06 GB/s "
       "with one of the units GB/s"},
      {"latency = \"800 ns\"", "latency = \"1e12 ms\"",
       "links.core.latency is \"1e12 ms\"; give a number of at most 1e+09 us with"},
      {"memory = \"32 GiB\"", "memory = \"0 GiB\"",
       "device.memory is \"0 GiB\"; give a number 1 B or more with one of the units B, MB"},
      {"units = 4", "units = 4.0", "links.core.units is 4.0; give a whole number, 0 or more, as"},
      {"name = \"lab\"", "name = \"la\\nb\"",
       "lab.toml:1: name is \"la\\u000ab\"; give a text in quotes, on one line"},
      {"units = 4", "units = 2000000000000000",
       "links.core.units is 2000000000000000; give a whole number, of at most 1e+15, as"},
      {"units = 4", "units = 4.5",
       "lab.toml:7: links.core.units is 4.5; give a whole number, 0 or more, as links.core.units "
       "= 8"},
      {"units = 4", "unit = 4",
       "lab.toml:7: unknown key links.core.unit; known in links.core are bandwidth, latency, "
       "units, sharing\nlab.toml: links.core.units is missing; give it, as links.core.units = 8"},
      {"[links.rack]", "[links.row]",
       "unknown table links.row; known in links are core, socket, host, rack\nlab.toml: table "
       "[links.rack] is missing; give its bandwidth, latency, units, sharing, with units = 1 if "
       "the machine has no such level"},
      {"sharing = 4", "sharing = 5",
       "lab.toml: links.socket.sharing is 5, and core has 4; give 4 or fewer"},
      {"units = 4", "units = 4\nsharing = 2",
       "lab.toml: links.core.sharing is 2, and a device has 1; give 1 or fewer"},
      {"units = 3", "units = 3000000000",
       "lab.toml: with links.host.units 3000000000 the machine has more than 4294967296 devices; "
       "lower the units of its levels"},
      {"kernels = \"cpu\"", "kernels = \"gpu\"",
       "lab.toml:2: kernels is \"gpu\"; give \"cpu\" or \"described\", as kernels = "
       "\"described\""},
      {"overlap = true", "overlap = 1",
       "device.overlap is 1; give true or false, as device.overlap = true"},
      {"name = \"lab\"", "name = \" \"",
       "lab.toml:1: name is \" \"; give a text in quotes, on one line, as"},
      {"beta2 = 1.25", "beta2 = -1",
       "weights.beta2 is -1; give a number, 0 or more, as weights.beta2 = 1"},
      {"beta2 = 1.25", "delta = 1", "unknown key weights.delta; known in weights are alpha, beta1"},
      {"name = \"lab\"", "name = \"lab", "lab.toml:1:"},
  };
  for (const auto& c : cases) {
    const std::string message = refused(with(c.old_text, c.new_text));
    EXPECT_NE(message.find(c.message), std::string::npos) << c.message << "\nis not in\n"
                                                          << message;
  }
}

TEST(MachineFile, SharingOfOneDevice) {
  EXPECT_EQ(refused(with("units = 4", "units = 4\nsharing = 1")), "");
}

/// True where `pattern` is `path` or the beginning of it, word by word; * is any word or end of
/// one.
bool matches(const std::string& pattern, const std::string& path) {
  const std::vector<std::string> wanted = split(pattern, '.'), words = split(path, '.');
  if (wanted.size() > words.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t star = wanted[i].find('*');
    if (star == std::string::npos ? wanted[i] != words[i]
                                  : !words[i].starts_with(wanted[i].substr(0, star)))
      return false;
  }
  return true;
}

TEST(FindMachine, SourcesNameKeysOfFiles) {
  for (const NamedMachine& named : named_machines()) {
    std::set<std::string> open;  // keys of which no source speaks
    for (const MachineKey& key : machine_keys()) open.insert(key.path);
    for (const NumberSource& source : named.sources) {
      for (const std::string& word : split(source.keys, ',')) {
        const std::string pattern(trim(word));
        bool known = false;
        for (const MachineKey& key : machine_keys()) {
          if (!matches(pattern, key.path)) continue;
          known = true;
          open.erase(key.path);
        }
        EXPECT_TRUE(known) << named.name << ": " << pattern;
      }
    }
    std::erase_if(open, [](const std::string& path) {  // what nobody measures or publishes
      return path == "name" || path == "kernels" || path == "known_error" ||
             path == "device.overlap" || path.ends_with(".sharing") || path.starts_with("weights.");
    });
    EXPECT_TRUE(open.empty()) << named.name << ": " << *open.begin();
  }
}

TEST(FindMachine, ALinkThatLeadsToItselfIsNoFile) {
  const std::string path = testing::TempDir() + "tessera-machine-loop.toml";
  std::filesystem::remove(path);
  std::filesystem::create_symlink(path, path);
  try {
    find_machine(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    EXPECT_NE(std::string(error.what()).find("' cannot be accessed: "), std::string::npos)
        << error.what();
  }
  std::filesystem::remove(path);
}

TEST(FindMachine, ByName) {
  EXPECT_EQ(machine_names(),
            (std::vector<std::string>{"ascend910-2048", "a100-1024", "h100-256", "tpuv4-4096"}));
  for (const NamedMachine& named : named_machines()) {
    const Machine m = find_machine(named.name);
    EXPECT_EQ(m, named.machine);
    EXPECT_TRUE(named.name.ends_with(text("-", m.devices()))) << named.name << " " << m.devices();
    EXPECT_EQ(m.kernels, KernelSource::Described);
    EXPECT_FALSE(named.sources.empty()) << named.name;
  }
  try {
    find_machine("a100");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("machine 'a100' is neither a known machine nor a file; known are "
                        "ascend910-2048, a100-1024"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tessera
