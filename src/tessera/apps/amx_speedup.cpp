#include "tessera/apps/amx_speedup.h"

#include <charconv>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// The number after the key; nothing where the file is missing, or is no such file.
std::optional<double> read_kept(const std::string& path, const std::string& key) {
  std::string all;
  try {
    all = read_file(path, Fault::Resource);
  } catch (const Error&) {
    return std::nullopt;
  }
  if (!starts_with(all, key + "\n")) return std::nullopt;
  double times = 0;
  const char* const end = all.data() + all.size();
  const auto [at, failure] = std::from_chars(all.data() + key.size() + 1, end, times);
  const bool whole = failure == std::errc() && std::string_view(at, end) == "\n";
  return whole && times > 0 && times < 1e6 ? std::optional(times) : std::nullopt;
}

/// What the file has in the end: `times`, or what another process kept before.
double keep(const std::string& path, const std::string& key, const std::string& times) {
  fs::create_directories(fs::path(path).parent_path());
  AtomicFile file(path);
  file.write(text(key, "\n", times, "\n"));
  file.flush();
  std::error_code there;
  fs::create_hard_link(file.temporary(), path, there);
  if (there && !read_kept(path, key)) file.commit();  // over a damaged one
  return read_kept(path, key).value_or(std::stod(times));
}

}  // namespace

AmxSpeedup kept_amx_speedup(const std::string& folder, const std::string& key,
                            const std::function<double()>& measure) {
  const std::string name = hash128_text(std::as_bytes(std::span(key)));
  const std::string path = text(folder, "/f32-products/", name);
  if (!folder.empty()) {
    if (const auto kept = read_kept(path, key)) return {*kept};
  }
  const std::string times = format("%.3f", measure());
  if (folder.empty()) return {std::stod(times), "there is no home folder"};
  try {
    return {keep(path, key, times)};
  } catch (const std::exception& failure) {
    return {std::stod(times), failure.what()};
  }
}

std::string to_text(const AmxSpeedup& speedup) {
  const std::string trouble =
      speedup.trouble.empty() ? "" : text("; measured at each start, because ", speedup.trouble);
  return text("AMX measured ", format("%.2f", speedup.times), " times as fast as multiply-adds",
              trouble);
}

}  // namespace tessera
