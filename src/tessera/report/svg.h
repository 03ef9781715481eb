#pragma once
/// What drawings have in common. Lengths are pixels, from the upper left corner.

#include <string>
#include <string_view>

namespace tessera::svg {

/// The first lines of a picture that follows its reader's choice of light or dark: a page of that
/// size, and the classes title, tick and axis beside those of `style`. "</svg>" ends it.
std::string begin(double width, double height, std::string_view title, std::string_view style);

/// As text of XML or HTML, with nothing in it that would be markup.
std::string escaped(std::string_view raw);

/// A line of text that begins, or as its class says ends or has its middle, at x.
std::string written(double x, double y, std::string_view kind, std::string_view what);

/// 1, 2 or 5 times a power of ten: about ten of them make `range`, which is above 0.
double tick_step(double range);

}  // namespace tessera::svg
