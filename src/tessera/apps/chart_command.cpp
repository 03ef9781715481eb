#include "tessera/apps/file_of_runs.h"
#include "tessera/report/loss_chart.h"

namespace tessera {

int chart_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  const auto make = [](const std::vector<std::string>& runs, Problems& problems) {
    std::vector<LossCurve> curves;
    for (const std::string& run : runs)
      problems.gather([&] { curves.push_back(read_losses(run)); });
    return problems.empty() ? loss_chart(curves) : "";
  };
  return write_file_of_runs({"chart", "losses.svg", "picture", "the losses",
                             "Draws the losses of runs against steps, as an SVG picture. RUN is "
                             "the folder of a run, its --output.",
                             OwnFile::Picture, make},
                            arguments, console);
}

}  // namespace tessera
