#include "tessera/report/page.h"

#include "tessera/base/text.h"
#include "tessera/report/svg.h"

namespace tessera::page {

namespace {

constexpr const char* kPageStyle = R"(
  body { font-family: system-ui, "DejaVu Sans", sans-serif; margin: 2em auto; max-width: 70em;
         padding: 0 1em; background: #ffffff; color: #1d2530; }
  h1 { font-size: 1.6em; overflow-wrap: anywhere; }
  p { margin: 0.3em 0; overflow-wrap: anywhere; }
  h2 { margin: 1.6em 0 0.5em; font-size: 1.2em; }
  .wide { overflow-x: auto; }
  .beside { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(28em, 100%), 1fr)); gap: 0 1em; }
  .beside svg { margin: 0.5em 0; width: 100%; }
  table { border-collapse: collapse; font-size: 14px; }
  th, td { padding: 0.35em 0.8em; text-align: right; border-bottom: 1px solid #8a94a355; }
  th:first-child, td:first-child, .read { text-align: left; }
  svg { display: block; margin: 1.5em 0; max-width: 100%; height: auto; }
  .wide svg { max-width: none; }
  @media (prefers-color-scheme: dark) { body { background: #14181e; color: #e8ecf1; } })";

}  // namespace

std::string begin(std::string_view title) {
  return text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
              "<meta name=\"generator\" content=\"tessera\">\n",
              "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
              svg::escaped(title), "</title>\n<style>", kPageStyle,
              "</style>\n</head>\n<body>\n<h1>", svg::escaped(title), "</h1>\n");
}

std::string end() { return "</body>\n</html>\n"; }

std::string heading(std::string_view what) { return text("<h2>", svg::escaped(what), "</h2>\n"); }

std::string paragraph(std::string_view what) { return text("<p>", svg::escaped(what), "</p>\n"); }

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t sentences) {
  std::string out = "<div class=\"wide\"><table>\n";
  bool head = true;
  for (const std::vector<std::string>& row : rows) {
    const char* cell = head ? "th" : "td";
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const char* const kind = i + sentences >= row.size() ? " class=\"read\"" : "";
      out += text("<", cell, kind, ">", svg::escaped(row[i]), "</", cell, ">");
    }
    out += "</tr>\n";
    head = false;
  }
  return out + "</table></div>\n";
}

std::string wide(std::string_view drawing) {
  return text("<div class=\"wide\">\n", drawing, "</div>\n");
}

std::string beside(std::string_view drawings) {
  return text("<div class=\"beside\">\n", drawings, "</div>\n");
}

}  // namespace tessera::page
