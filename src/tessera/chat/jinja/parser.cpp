#include "tessera/chat/jinja/parser.h"

#include <algorithm>
#include <span>

#include "tessera/chat/jinja/expression_parser.h"
#include "tessera/chat/jinja/set_first.h"

namespace tessera::jinja {

namespace {

using Names = std::vector<std::string_view>;

class Parser {
 public:
  explicit Parser(std::string_view source) : in_(tokens_of(source)) {}

  Syntax run() {
    Syntax out;
    out.body = body({}, Place{});
    out.symbols = in_.symbols();
    out.has_generation = has_generation_;
    out.set_first = symbols_set_first(out.body, out.symbols.size());
    return out;
  }

 private:
  struct Deep {
    explicit Deep(ExpressionParser& in) : in(in) { in.enter(); }
    ~Deep() { in.leave(); }
    Deep(const Deep&) = delete;
    Deep& operator=(const Deep&) = delete;
    ExpressionParser& in;
  };

  /// Statements up to one of the tags `ends`, whose name is the next token then; no ends: up to
  /// the end of the template. `begin`: of the block.
  Body body(const Names& ends, Place begin) {
    const Deep deep(in_);
    Body out;
    while (true) {
      const Token token = in_.now();
      if (token.kind == TokenKind::End) {
        if (ends.empty()) return out;
        bad_at(begin, "the block has no {% ", ends.back(), " %}");
      }
      if (token.kind == TokenKind::Data) {
        Statement& text = add(out, Statement::Is::Text, token.place);
        text.text = in_.take().text;
      } else if (token.kind == TokenKind::OutputBegin) {
        in_.take();
        Statement& output = add(out, Statement::Is::Output, token.place);
        output.expressions.push_back(in_.tuple());
        end_of(TokenKind::OutputEnd, "'}}'");
      } else {
        in_.take();
        const Token& name = in_.now();
        if (name.kind == TokenKind::Name && std::ranges::find(ends, name.text) != ends.end())
          return out;
        statement(out);
      }
    }
  }

  Statement& add(Body& body, Statement::Is is, Place place) {
    body.emplace_back();
    body.back().is = is;
    body.back().place = place;
    return body.back();
  }

  void end_of(TokenKind kind, std::string_view what) {
    if (in_.now().kind != kind) in_.unexpected(what);
    in_.take();
  }
  void end_of_tag() { end_of(TokenKind::BlockEnd, "'%}'"); }
  /// The end of a tag that opens a block, where Jinja allows a colon.
  void end_of_opening() {
    in_.take_operator(":");
    end_of_tag();
  }
  /// The body up to the tag `end`, which is taken.
  Body block(std::string_view end, Place begin) {
    Body out = body({end}, begin);
    in_.take();
    end_of_tag();
    return out;
  }

  void statement(Body& out) {
    const Place place = in_.now().place;
    const std::string name = in_.expect_name("the name of a tag");
    if (name == "if") return if_(add(out, Statement::Is::If, place));
    if (name == "for") return for_(add(out, Statement::Is::For, place));
    if (name == "set") return set(add(out, Statement::Is::Set, place));
    if (name == "macro") return macro(add(out, Statement::Is::Macro, place));
    if (name == "generation") {
      has_generation_ = true;
      Statement& made = add(out, Statement::Is::Generation, place);
      end_of_opening();
      const int loops = std::exchange(loops_, 0);
      made.bodies.push_back(block("endgeneration", place));
      loops_ = loops;
      return;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) bad_at(place, "{% ", name, " %} stands outside of a loop");
      add(out, name == "break" ? Statement::Is::Break : Statement::Is::Continue, place);
      return end_of_tag();
    }
    if (name.starts_with("end") || name.starts_with("el"))
      bad_at(place, "{% ", name, " %} ends nothing that is open");
    bad_at(place, "{% ", name, " %} is not supported");
  }

  void if_(Statement& out) {
    out.expressions.push_back(in_.tuple(false));
    end_of_opening();
    while (true) {
      out.bodies.push_back(body({"elif", "else", "endif"}, out.place));
      const std::string tag = in_.take().text;
      if (tag == "elif") {
        out.expressions.push_back(in_.tuple(false));
        end_of_opening();
      } else if (tag == "else") {
        end_of_opening();
        out.bodies.push_back(block("endif", out.place));
        return;
      } else {
        return end_of_tag();
      }
    }
  }

  Target target(bool with_attribute) {
    Target out;
    while (true) {
      if (in_.now().is_operator("("))
        bad_at(in_.now().place, "parentheses around what is assigned to are not supported");
      const Place place = in_.now().place;
      const std::string name = in_.expect_name("a name to assign to");
      for (const std::string_view constant : {"true", "True", "false", "False", "none", "None"}) {
        if (name == constant) bad_at(place, "'", name, "' cannot be assigned to");
      }
      out.symbols.push_back(in_.symbol(name));
      if (with_attribute && in_.take_operator(".")) {
        out.attribute = in_.expect_name("the name of an attribute");
        if (out.attribute.starts_with("_"))
          bad_at(place, "the attribute '", out.attribute, "' cannot be assigned to");
        if (out.symbols.size() > 1 || in_.now().is_operator(","))
          bad_at(place, "an attribute among several targets is not supported");
        return out;
      }
      if (!in_.take_operator(",")) return out;
      out.unpacks = true;
      const Token& next = in_.now();
      if (next.is_name("in") || next.is_operator("=")) return out;
    }
  }

  void for_(Statement& out) {
    out.target = target(false);
    if (!in_.take_name("in")) in_.unexpected("'in'");
    out.expressions.push_back(in_.tuple(false));
    if (in_.take_name("if")) out.expressions.push_back(in_.expression());
    if (in_.now().is_name("recursive"))
      bad_at(in_.now().place, "{% for ... recursive %} is not supported");
    end_of_opening();
    ++loops_;
    out.symbol = in_.symbol("loop");
    out.bodies.push_back(body({"else", "endfor"}, out.place));
    --loops_;
    const bool has_else = in_.take().text == "else";
    if (!has_else) return end_of_tag();
    end_of_opening();
    out.bodies.push_back(block("endfor", out.place));
  }

  void set(Statement& out) {
    out.target = target(true);
    if (in_.take_operator("=")) {
      out.expressions.push_back(in_.tuple());
      return end_of_tag();
    }
    out.is = Statement::Is::SetBlock;
    if (out.target.unpacks) in_.unexpected("'='");
    out.expressions.push_back(in_.filters(nullptr));
    end_of_opening();
    const int loops = std::exchange(loops_, 0);
    out.bodies.push_back(block("endset", out.place));
    loops_ = loops;
  }

  void macro(Statement& out) {
    out.text = in_.expect_name("the name of a macro");
    out.symbol = in_.symbol(out.text);
    in_.expect_operator("(");
    while (!in_.now().is_operator(")")) {
      const Place place = in_.now().place;
      const int symbol = in_.symbol(in_.expect_name("the name of a parameter"));
      ExpressionPtr otherwise;
      if (in_.take_operator("=")) {
        otherwise = in_.expression();
      } else if (!out.parameters.empty() && out.parameters.back().second) {
        bad_at(place, "a parameter without a default follows one that has one");
      }
      out.parameters.emplace_back(symbol, std::move(otherwise));
      if (!in_.take_operator(",")) break;
    }
    in_.expect_operator(")");
    end_of_opening();
    const int loops = std::exchange(loops_, 0);
    out.bodies.push_back(block("endmacro", out.place));
    loops_ = loops;
  }

  ExpressionParser in_;
  int loops_ = 0;
  bool has_generation_ = false;
};

}  // namespace

Syntax parse(std::string_view source) { return Parser(source).run(); }

}  // namespace tessera::jinja
