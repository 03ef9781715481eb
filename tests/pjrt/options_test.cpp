/// The bytes that are written for compilers, read back; and the bytes of plugins in which GPUs are found.

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "pjrt/plugin/wire.h"
#include "pjrt/test_plugin.h"
#include "tessera/pjrt/c/gpu_descriptions.h"
#include "tessera/pjrt/c/proto.h"
#include "tessera/pjrt/compile_options.h"

namespace tessera::pjrt {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(byte) >> 4];
    out += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return out;
}

struct OptionsCase {
  const char* name;
  CompileOptions options;
  const char* bytes;  // worked out by hand
};

TEST(Options, AreWrittenAsXlaReadsThem) {
  const OptionsCase cases[] = {
      {"one replica", {}, "1a0420012801"},
      {"two replicas", {2, 1, {}, {}}, "1a0420022801"},
      {"300 partitions: two bytes", {1, 300, {}, {}}, "1a05200128ac02"},
      {"an assignment: partition by partition, the devices of its replicas",
       {2, 2, {{0, 1}, {2, 300}}, {}},
       // 3: {4: 2, 5: 2, 9: {1: 2, 2: 2, 3: {1: [0, 2]}, 3: {1: [1, 300]}}}
       "1a17"
       "20022802"
       "4a11"
       "08021002"
       "1a040a020002"
       "1a050a0301ac02"},
      {"flags of each kind",
       {1,
        1,
        {},
        {{"s", std::string("x")}, {"b", true}, {"f", false}, {"i", std::int64_t{-1}}, {"d", 1.0f}}},
       "1a0420012801"
       "3a080a017312030a0178"
       "3a070a016212021001"
       "3a070a016612021000"
       "3a100a0169120b18ffffffffffffffffff01"
       "3a0e0a0164120921000000000000f03f"},
  };
  for (const OptionsCase& row : cases) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(hex(to_bytes(row.options)), row.bytes);
  }
}

TEST(Options, RefuseWhatCannotBe) {
  const auto error = [](const CompileOptions& options) -> std::string {
    return error_of([&] { to_bytes(options); });
  };
  EXPECT_TRUE(has(error({0, 1, {}, {}}), "0 replicas of 1 partitions"));
  EXPECT_TRUE(has(error({2, 1, {{0}}, {}}), "a device assignment of 1 replicas, and there are 2"));
  EXPECT_TRUE(has(error({1, 2, {{0}}, {}}), "a replica with 1 devices, and there are 2"));
  EXPECT_TRUE(has(error({1, 1, {}, {{"l", std::vector<std::int64_t>{1}}}}), "l = [1] is a list"));
}

/// Whatever is written is read back as it was.
TEST(Options, RandomFieldsComeBack) {
  std::mt19937_64 random(53);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    std::vector<std::int64_t> numbers;
    std::vector<std::string> texts;
    const int count = static_cast<int>(random() % 5);
    for (int i = 0; i < count; ++i) {
      numbers.push_back(static_cast<std::int64_t>(random() >> (random() % 64)));
      if (random() % 2 == 0) numbers.back() = -numbers.back();
      texts.emplace_back(random() % 200, static_cast<char>(random()));
      c::put_number(bytes, 1 + i, numbers.back());
      c::put_bytes(bytes, 100 + i, texts.back());
      c::put_double(bytes, 3000, static_cast<double>(numbers.back()));
    }
    const auto fields = read_message(bytes);
    ASSERT_TRUE(fields.has_value());
    ASSERT_EQ(fields->size(), 3 * numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(static_cast<std::int64_t>(fields->at(3 * i).value), numbers[i]);
      EXPECT_EQ(fields->at(3 * i + 1).bytes, texts[i]);
      EXPECT_EQ(std::bit_cast<double>(fields->at(3 * i + 2).value),
                static_cast<double>(numbers[i]));
    }
  }
}

std::string description(const std::string& name, const std::string& platform,
                        const std::string& more = "") {
  const std::string nul(1, '\0');
  return nul + "# words\n\ngpu_device_info {\n  core_count: 1\n" + more + "}\nplatform_name: \"" +
         platform + "\"\ndevice_description_str: \"" + name + "\"\n" + nul;
}

TEST(Gpus, AreFoundInAPlugin) {
  const std::string bytes = "\x7f ELF" + description("Two", "ROCM") + "code" +
                            description("One", "CUDA", "  device_memory_size: 80\n") +
                            std::string("\ngpu_device_info {\n cut");
  const auto found = c::find_gpu_descriptions(bytes);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name + " " + found[0].platform, "One CUDA");
  EXPECT_EQ(found[1].name + " " + found[1].platform, "Two ROCM");
  EXPECT_TRUE(starts_with(found[0].text, "# words"));
  EXPECT_EQ(found[0].memory_bytes, 80);
  EXPECT_EQ(found[1].memory_bytes, std::nullopt);
}

TEST(Gpus, DamagedBytesAreNoPlugin) {
  const std::string whole = description("One", "CUDA") + description("Two", "CUDA");
  std::mt19937_64 random(53);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = whole;
    for (std::uint64_t i = 0; i < 1 + random() % 4; ++i) {
      const std::size_t at = random() % bytes.size();
      if (random() % 3 == 0) {
        bytes.erase(at, random() % 20);
      } else {
        bytes[at] = static_cast<char>(random() % 4 == 0 ? 0 : random());
      }
      if (bytes.empty()) bytes = "x";
    }
    EXPECT_LE(c::find_gpu_descriptions(bytes).size(), 2u);
  }
  EXPECT_TRUE(c::find_gpu_descriptions("").empty());
}

}  // namespace
}  // namespace tessera::pjrt
