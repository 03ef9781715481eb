/// Files that are no plugins, plugins of other versions, and what plugins tell of themselves.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "pjrt/test_plugin.h"
#include "repo_file.h"
#include "tessera/pjrt/compile_options.h"

namespace tessera::pjrt {
namespace {

std::string load_error(const std::string& file) {
  return error_of([&] { load_plugin(file); });
}

TEST(Load, OncePerFileAndSeveralAtATime) {
  const TestPlugin one, two;
  const Plugin& first = one.load();
  EXPECT_EQ(&first, &one.load());
  std::filesystem::create_symlink(one.file(), one.folder() + "/other.so");
  EXPECT_EQ(&first, &load_plugin(one.folder() + "/other.so"));
  EXPECT_NE(&first, &two.load());
  EXPECT_EQ(to_text(first.version()), "0.106");
  EXPECT_EQ(one.control().alive, 0);
}

/// Threads of a plugin may use what destructors end: a process ends without those, and with its code.
TEST(Load, AProcessEndsWithoutDestructors) {
  const TestPlugin plugin;
  EXPECT_EXIT(
      {
        std::atexit([] { _exit(9); });
        plugin.load();
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
}

TEST(Load, SaysWhatIsWrongWithAFile) {
  const TestPlugin plugin;
  const std::string missing = load_error(plugin.folder() + "/none.so");
  EXPECT_TRUE(has(missing, "none.so: no such plugin")) << missing;
  EXPECT_TRUE(has(missing, "./dev accelerator")) << missing;
  const std::string folder = load_error(plugin.folder());
  EXPECT_TRUE(has(folder, "is no file")) << folder;
  const std::string words = plugin.folder() + "/words.so";
  std::ofstream(words) << "these are words";
  const std::string no_library = load_error(words);
  EXPECT_TRUE(has(no_library, "words.so: cannot be loaded")) << no_library;
  const std::string cut = plugin.folder() + "/cut.so";
  std::filesystem::copy_file(plugin.file(), cut);
  for (const std::uintmax_t left : {std::filesystem::file_size(cut) / 2, std::uintmax_t{1000}}) {
    std::filesystem::resize_file(cut, left);
    const std::string error = load_error(cut);
    EXPECT_TRUE(has(error, text("cut.so: has ", left, " bytes"))) << error;
    EXPECT_TRUE(has(error, "it was cut off")) << error;
  }
  Dl_info libm;
  double (*const function)(double) = std::cos;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(function), &libm), 0);
  const std::string other = load_error(std::filesystem::canonical(libm.dli_fname).string());
  EXPECT_TRUE(has(other, "it has no GetPjrtApi")) << other;
  EXPECT_EQ(fault_of([&] { load_plugin(words); }), Fault::Resource);
}

/// A table that cannot be worked with, and what is said of it.
struct BadTable {
  const char* name;
  void (*spoil)(c::Api& api);
  const char* words;
};
const BadTable kBadTables[] = {
    {"older than is supported", [](c::Api& api) -> void { api.version.minor = 40; },
     "its interface is 0.40, and Tessera needs 0.54"},
    {"another major version", [](c::Api& api) -> void { api.version.major = 1; },
     "its interface is 1.106"},
    {"no room for a version", [](c::Api& api) -> void { api.head.size = 16; }, "no table"},
    {"ends before the first call that is needed",
     [](c::Api& api) -> void { api.head.size = offsetof(c::Api, calls) + 8; },
     "has no PJRT_Plugin_Initialize"},
};

TEST(Load, RefusesTables) {
  for (const BadTable& row : kBadTables) {
    SCOPED_TRACE(row.name);
    const TestPlugin plugin;
    row.spoil(*plugin.control().api);
    const std::string error = load_error(plugin.file());
    EXPECT_TRUE(has(error, row.words)) << error;
    EXPECT_TRUE(has(error, plugin.file())) << error;
  }
}

TEST(Load, TriesAgainAfterAFailure) {
  const TestPlugin plugin;
  plugin.control().fail_at = "PJRT_Plugin_Initialize";
  const std::string error = load_error(plugin.file());
  EXPECT_TRUE(has(error, "PJRT_Plugin_Initialize: INTERNAL: as the test wants it")) << error;
  plugin.control().fail_at = "";
  EXPECT_EQ(plugin.load().version().minor, 106);
  EXPECT_EQ(plugin.control().alive, 0);
}

c::NamedValue named(std::string_view name, c::ValueKind kind, std::size_t count) {
  c::NamedValue out;
  out.head.size = c::NamedValue::kSize;
  out.name = {name.data(), name.size()};
  out.kind = kind;
  out.count = count;
  return out;
}

TEST(Load, ReadsAttributes) {
  const TestPlugin plugin;
  const std::int64_t numbers[] = {1, 16, 1};
  c::NamedValue values[] = {named({"with\0nul", 8}, c::ValueKind::String, 3),
                            named("list", c::ValueKind::Int64List, 3),
                            named("", c::ValueKind::Bool, 1),
                            named("from a later version", static_cast<c::ValueKind>(77), 1),
                            named("real", c::ValueKind::Float, 1),
                            named("none", c::ValueKind::String, 0)};
  values[0].string = "a\0\x1b";
  values[1].int64s = numbers;
  values[2].boolean = true;
  values[4].float32 = 0.5f;
  values[5].string = nullptr;
  plugin.control().attributes = {values, 6};
  const NamedValues& told = plugin.load().attributes();
  const NamedValues expected = {{std::string("with\0nul", 8), std::string("a\0\x1b", 3)},
                                {"list", std::vector<std::int64_t>{1, 16, 1}},
                                {"", true},
                                {"real", 0.5f},
                                {"none", std::string()}};
  EXPECT_EQ(told, expected);
  EXPECT_EQ(*find(told, "real"), Value(0.5f));
  EXPECT_EQ(find(told, "absent"), nullptr);
  EXPECT_EQ(to_text(told[1]), "list = [1, 16, 1]");
  EXPECT_FALSE(has(to_text(told[0]), "\x1b"));
}

/// A later version's values are longer: fields behind ours are skipped.
TEST(Load, ReadsLongerAttributes) {
  struct Longer {
    c::NamedValue known;
    std::int64_t later[3];
  };
  const TestPlugin plugin;
  Longer values[] = {{named("a", c::ValueKind::Int64, 1), {7, 7, 7}},
                     {named("b", c::ValueKind::Int64, 1), {7, 7, 7}}};
  for (Longer& value : values) value.known.head.size = sizeof(Longer);
  values[0].known.int64 = 1;
  values[1].known.int64 = -1;
  plugin.control().attributes = {&values[0].known, 2};
  const NamedValues expected = {{"a", std::int64_t{1}}, {"b", std::int64_t{-1}}};
  EXPECT_EQ(plugin.load().attributes(), expected);
}

struct BadValue {
  const char* name;
  void (*spoil)(c::NamedValue& value, c::List<c::NamedValue>& list);
  const char* words;
};
const BadValue kBadValues[] = {
    {"a huge name",
     [](c::NamedValue& v, c::List<c::NamedValue>&) -> void { v.name.size = SIZE_MAX; },
     "a text of 18446744073709551615 bytes"},
    {"a name that is nowhere",
     [](c::NamedValue& v, c::List<c::NamedValue>&) -> void { v.name.data = nullptr; },
     "a text of 4 bytes"},
    {"a huge list",
     [](c::NamedValue& v, c::List<c::NamedValue>&) -> void {
       v.kind = c::ValueKind::Int64List;
       v.count = SIZE_MAX / 4;
     },
     "a list of"},
    {"a struct without a size",
     [](c::NamedValue& v, c::List<c::NamedValue>&) -> void { v.head.size = 0; },
     "a named value of 0 bytes"},
    {"more values than there are",
     [](c::NamedValue&, c::List<c::NamedValue>& list) -> void { list.count = SIZE_MAX; },
     "a list of 18446744073709551615 values"},
    {"values that are nowhere",
     [](c::NamedValue&, c::List<c::NamedValue>& list) -> void { list.items = nullptr; },
     "a list of 1 values"},
};

TEST(Load, RefusesAttributes) {
  for (const BadValue& row : kBadValues) {
    SCOPED_TRACE(row.name);
    const TestPlugin plugin;
    c::NamedValue value = named("name", c::ValueKind::String, 0);
    plugin.control().attributes = {&value, 1};
    row.spoil(value, plugin.control().attributes);
    const std::string error = load_error(plugin.file());
    EXPECT_TRUE(has(error, row.words)) << error;
    EXPECT_TRUE(has(error, "PJRT_Plugin_Attributes")) << error;
  }
}

TEST(Find, LooksBelowAFolder) {
  const TestPlugin plugin;
  const std::string& folder = plugin.folder();
  EXPECT_EQ(find_plugin("some/file.so", folder), "some/file.so");
  const std::string error = error_of([&] { find_plugin("cuda", folder); });
  EXPECT_TRUE(has(error, "no plugin for cuda in " + folder +
                             "; in the sources, ./dev accelerator cuda13 brings it; elsewhere `pip "
                             "download --no-deps jax-cuda13-pjrt=="))
      << error;
  EXPECT_EQ(fault_of([&] { find_plugin("cpu", folder); }), Fault::Usage);
  const auto put = [&](const std::string& file) -> void {
    std::filesystem::create_directories(std::filesystem::path(folder + file).parent_path());
    std::ofstream(folder + file) << "library";
  };
  put("/cuda13/nvidia/cu13/lib/a.so");
  EXPECT_FALSE(error_of([&] { find_plugin("cuda", folder); }).empty());
  put("/cuda13/jax_plugins/xla_cuda13/xla.so");
  EXPECT_EQ(find_plugin("cuda", folder), folder + "/cuda13/jax_plugins/xla_cuda13/xla.so");
  std::filesystem::create_directory(folder + "/rocm");
  std::filesystem::create_directory_symlink(folder + "/cuda13/jax_plugins",
                                            folder + "/rocm/linked");
  EXPECT_EQ(find_plugin("rocm", folder), folder + "/rocm/linked/xla_cuda13/xla.so");
}

/// The wheels that messages name are those that ./dev accelerator brings.
TEST(Find, NamesTheWheelsOfTheScript) {
  std::ifstream script(repo_file("tools/accelerator.sh"));
  const std::string all(std::istreambuf_iterator<char>(script), {});
  for (const std::string& name : plugin_names()) {
    const std::string error = error_of([&] { find_plugin(name, "/absent"); });
    const std::string begin = "--no-deps ";
    const std::size_t at = error.find(begin) + begin.size();
    const std::string wheel = error.substr(at, error.find('`', at) - at);
    const std::size_t equals = wheel.find("==");
    const std::string package = wheel.substr(0, equals), version = wheel.substr(equals + 2);
    const std::size_t row = all.find(" " + package + " ");
    ASSERT_NE(row, std::string::npos) << package;
    const std::string line = all.substr(row, all.find('\n', row) - row);
    EXPECT_TRUE(has(line, " " + version + " ")) << line;
  }
}

TEST(Find, CompilersOfCudaBesideAPlugin) {
  const TestPlugin plugin;
  const std::string folder = plugin.folder();
  std::filesystem::create_directories(folder + "/jax_plugins/xla_cuda13");
  const std::string file = folder + "/jax_plugins/xla_cuda13/xla.so";
  std::filesystem::copy_file(plugin.file(), file);
  EXPECT_TRUE(flags_for(load_plugin(file)).empty());
  std::filesystem::create_directories(folder + "/nvidia/cu13");
  const NamedValues flags = {{"xla_gpu_cuda_data_dir", folder + "/nvidia/cu13"}};
  EXPECT_EQ(flags_for(load_plugin(file)), flags);
}

}  // namespace
}  // namespace tessera::pjrt
