#include "tessera/report/svg.h"

#include <cmath>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"

namespace tessera::svg {

namespace {

constexpr const char* kCommon = R"(<style>
  text { font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 13px; fill: #1d2530; }
  .title { font-weight: bold; font-size: 15px; }
  .tick { text-anchor: middle; fill: #5a6676; font-size: 12px; }
  .paper { fill: #ffffff; }
  .axis { stroke: #5a6676; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e8ecf1; }
    .tick { fill: #a9b3c0; }
    .paper { fill: #14181e; }
    .axis { stroke: #a9b3c0; }
  })";

}  // namespace

std::string escaped(std::string_view raw) {
  std::string out;
  for (const char c : replaced_utf8(raw)) {
    out += (c >= 0 && c < ' ') || c == 0x7F ? "\uFFFD"  // XML has none of them
           : c == '&'                       ? "&amp;"
           : c == '<'                       ? "&lt;"
           : c == '>'                       ? "&gt;"
           : c == '"'                       ? "&quot;"
                                            : std::string(1, c);
  }
  return out;
}

std::string begin(double width, double height, std::string_view title, std::string_view style) {
  std::string out = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" role=\"img\" ",
      width, height, width, height);
  out += text("aria-label=\"", escaped(title), "\">\n<title>", escaped(title), "</title>\n");
  out += text(kCommon, style, "</style>\n");
  out += format("<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
  return out;
}

std::string written(double x, double y, std::string_view kind, std::string_view what) {
  return text(format("<text x=\"%.2f\" y=\"%.2f\" class=\"", x, y), kind, "\">", escaped(what),
              "</text>\n");
}

double tick_step(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 10)));
  for (const double times : {1, 2, 5}) {
    if (range / (times * power) <= 12) return times * power;
  }
  return 10 * power;
}

}  // namespace tessera::svg
