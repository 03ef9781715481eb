#include "tessera/apps/buffer_layout.h"

#include <optional>

#include "tessera/base/error.h"
#include "tessera/config/memory_cap.h"
#include "tessera/files/file.h"
#include "tessera/plan/buffer_file.h"

namespace tessera {

namespace {

/// Half a minute of a core.
constexpr std::int64_t kLayoutSteps = 10'000'000'000;

/// How far one gets without the cap, for the message.
std::string smallest_known(std::span<const TimedBuffer> buffers) {
  const std::optional<SmallestLayout> smallest = smallest_layout(buffers, kLayoutSteps / 10);
  if (!smallest) return "no layout of any height was found";
  return text("the smallest layout found takes ", smallest->height, " bytes, and none is below ",
              smallest->lower_bound);
}

std::vector<std::int64_t> offsets_below(const BufferFile& file, std::int64_t cap,
                                        Console& console) {
  const FoundLayout found = search_layout(file.buffers, cap, kLayoutSteps);
  if (found.outcome == LayoutOutcome::Found) {
    console.err << text("height ", found.height, " of ", cap, ", fullest moment ",
                        fullest_moment_bytes(file.buffers), " bytes; ", found.decisions,
                        " buffers placed\n");
    return found.offsets;
  }
  const std::int64_t fullest = fullest_moment_bytes(file.buffers);
  require(fullest <= cap, "memory-cap is ", cap,
          " bytes, but the buffers of the fullest moment take ", fullest,
          ": no layout is that small; raise the cap to at least ", fullest);
  require(found.outcome != LayoutOutcome::Impossible, "memory-cap is ", cap,
          " bytes: no layout is that small (proved), although the fullest moment takes ", fullest,
          " (", found.decisions, " buffers placed and taken back); ", smallest_known(file.buffers),
          "; raise the cap");
  fail(Fault::Usage, "memory-cap is ", cap, " bytes: no layout was found in ", found.decisions,
       " placements, but a layout was not proved impossible; the fullest moment takes ", fullest,
       "; ", smallest_known(file.buffers), "; raise the cap");
}

std::vector<std::int64_t> smallest_offsets(const BufferFile& file, Console& console) {
  const std::optional<SmallestLayout> smallest = smallest_layout(file.buffers, kLayoutSteps);
  require(smallest.has_value(), "no layout of any height was found for the ", file.buffers.size(),
          " buffers; the given offsets may contradict each other, or too many ",
          "buffers are alive at once");
  console.err << text("height ", smallest->height, ", no layout is below ", smallest->lower_bound,
                      ", fullest moment ", fullest_moment_bytes(file.buffers), " bytes\n");
  return smallest->offsets;
}

}  // namespace

bool asks_for_buffer_layout(const ParsedFlags& parsed) {
  return parsed.find("minimalloc") != nullptr;
}

int lay_out_buffer_file(ParsedFlags& parsed, Problems& problems, Console& console) {
  const std::string path = parsed.take_value("minimalloc");
  const std::string cap_text = parsed.take_value("memory-cap");
  if (path.empty()) problems.add("--minimalloc is empty; name a file of buffers");
  for (const Setting& other : parsed.settings)
    problems.add(text(other.source, " does nothing with --minimalloc ", path,
                      "; only --memory-cap is read there"));
  std::optional<std::int64_t> cap;
  problems.gather([&] { cap = parse_memory_cap(cap_text.empty() ? "none" : cap_text); });
  problems.raise();
  const BufferFile file = parse_buffer_file(read_file(path), path);
  console.out << to_text(
      file, cap ? offsets_below(file, *cap, console) : smallest_offsets(file, console));
  return 0;
}

}  // namespace tessera
