#pragma once
/// Which variables a template sets before it reads them.

#include <vector>

#include "tessera/chat/jinja/syntax.h"

namespace tessera::jinja {

/// Syntax::set_first of so many symbols.
std::vector<bool> symbols_set_first(const Body& body, std::size_t symbols);

}  // namespace tessera::jinja
