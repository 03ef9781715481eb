#include "tessera/config/own_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::size_t kHead = 4096;  // bytes among which the mark is

struct KindOfFile {
  OwnFile kind;
  std::string_view what, mark;
};
constexpr KindOfFile kKindsOfFile[] = {
    {OwnFile::Page, "a page", R"(<meta name="generator" content="tessera">)"},
    {OwnFile::Picture, "a picture", R"(<rect class="paper")"},
    {OwnFile::Plan, "a plan", "# Made by tessera plan --auto"},
    {OwnFile::Profile, "a profile", R"("args":{"name":"tessera"})"},
    {OwnFile::BenchResults, "results of bench", R"("load_before":)"},
    {OwnFile::Machine, "a machine file", "# Measured by `tessera doctor --calibrate`"},
};

}  // namespace

void check_replaces_own(const std::string& flag, const std::string& file, OwnFile kind,
                        Problems& problems) {
  std::error_code ignored;
  if (file.empty() || !std::filesystem::is_regular_file(file, ignored) ||
      std::filesystem::file_size(file, ignored) == 0)
    return;
  std::string head(kHead, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  const KindOfFile& own = *std::ranges::find(kKindsOfFile, kind, &KindOfFile::kind);
  if (head.find(own.mark) == std::string::npos)
    problems.add(text(flag, " '", file, "' exists and is not ", own.what,
                      " that tessera wrote; name another file, or remove it"));
}

}  // namespace tessera
