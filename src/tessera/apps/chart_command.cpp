#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/run_words.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/data/file.h"
#include "tessera/train/loss_chart.h"

namespace tessera {

int chart_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  const std::vector<Flag> flags = {
      {"output", {}, "FILE", "where the picture goes, which is replaced [losses.svg]"}};
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, flags, problems);
  if (parsed.help) {
    console.out << "tessera chart RUN... [--output FILE]\n\n"
                   "Draws the losses of runs against steps, as an SVG picture. RUN is the folder "
                   "of a run, its --output.\n\n"
                << flags_help(flags, console.columns);
    return 0;
  }
  std::string output = parsed.take_value("output");
  if (output.empty()) output = "losses.svg";
  if (!output.ends_with(".svg"))
    problems.add(text("--output is '", output, "'; it must end in .svg"));
  if (parsed.words.empty()) problems.add("chart takes the folders of one or more runs; give one");
  find_doubles(parsed.words, problems);
  std::vector<LossCurve> curves;
  for (const std::string& run : parsed.words)
    problems.gather([&] { curves.push_back(read_losses(run)); });
  problems.raise();
  write_atomically(output, loss_chart(curves));
  console.out << printable(text("wrote the losses of ", join(parsed.words), " to '", output, "'"))
              << "\n";
  return 0;
}

}  // namespace tessera
