#include "tessera/chat/jinja/set_first.h"

#include <cstddef>

namespace tessera::jinja {

namespace {

/// In the order of the text, without the bodies of loops, macros and captured blocks.
class FirstUses {
 public:
  explicit FirstUses(std::size_t symbols) : read_(symbols, false), set_(symbols, false) {}

  void body(const Body& body, bool certain) {
    for (const Statement& s : body) {
      const bool branches = s.is == Statement::Is::If;
      // Of a loop the filter is within it.
      const std::size_t own = s.is == Statement::Is::For ? 1 : s.expressions.size();
      for (std::size_t i = 0; i < own; ++i) read(s.expressions[i].get());
      if (branches) {
        for (const Body& branch : s.bodies) this->body(branch, false);
      }
      const bool sets = s.is == Statement::Is::Set || s.is == Statement::Is::SetBlock;
      if (!sets) continue;
      for (const int symbol : s.target.symbols) {
        const auto at = static_cast<std::size_t>(symbol);
        if (!s.target.attribute.empty()) {
          read_[at] = true;
        } else if (certain && !read_[at]) {
          set_[at] = true;
        }
      }
    }
  }

  std::vector<bool> take() { return std::move(set_); }

 private:
  void read(const Expression* e) {
    if (e == nullptr) return;
    if (e->is == Expression::Is::Name) read_[static_cast<std::size_t>(e->symbol)] = true;
    for (const ExpressionPtr& part : e->parts) read(part.get());
    for (const auto& [name, value] : e->named) read(value.get());
  }

  std::vector<bool> read_, set_;
};

}  // namespace

std::vector<bool> symbols_set_first(const Body& body, std::size_t symbols) {
  FirstUses uses(symbols);
  uses.body(body, true);
  return uses.take();
}

}  // namespace tessera::jinja
