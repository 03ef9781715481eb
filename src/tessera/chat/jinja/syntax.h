#pragma once
/// A template as a tree.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/chat/jinja/place.h"
#include "tessera/chat/jinja/value.h"

namespace tessera::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

/// parts: what an expression is made of, in the order of the text.
struct Expression {
  enum class Is {
    Constant,
    Name,  // symbol
    List,
    Tuple,
    Dict,       // key, value, key, value
    Attribute,  // of parts[0], `name`
    Item,       // parts[0][parts[1]]
    Slice,      // parts[0][parts[1]:parts[2]:parts[3]]; nullptr: left out
    Call,       // parts[0], then arguments
    Filter,     // parts[0], which may be nullptr in {% set %}; then arguments
    Test,       // parts[0], then arguments
    Unary,      // name: + or -
    Binary,     // name: the operator
    Compare,    // names: an operator between two parts each
    And,
    Or,
    Not,
    Concat,     // ~
    Condition,  // parts[0] if parts[1] else parts[2], which may be nullptr
  };
  Is is = Is::Constant;
  Place place;
  int depth = 1;  // of the tree below it
  int symbol = -1;
  std::string name;
  std::vector<std::string> names;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;  // arguments
  TextValue text;                                            // of a constant that is one
  Value constant;
};

struct Statement;
using Body = std::vector<Statement>;

/// What is assigned to: names, or an attribute of a namespace.
struct Target {
  std::vector<int> symbols;
  bool unpacks = false;
  std::string attribute;  // of the namespace symbols[0]; empty: none
};

struct Statement {
  enum class Is {
    Text,        // text
    Output,      // expressions[0]
    If,          // expressions and bodies; one body more is the else
    For,         // expressions[0]; [1]: its filter; bodies[0], [1]: else
    Set,         // expressions[0]
    SetBlock,    // bodies[0]; expressions[0]: filters of it
    Macro,       // symbol, parameters, bodies[0]
    Generation,  // bodies[0]
    Break,
    Continue,
  };
  Is is = Is::Text;
  Place place;
  std::string text;
  Target target;
  int symbol = -1;
  std::vector<std::pair<int, ExpressionPtr>> parameters;  // with a default, or nullptr
  std::vector<ExpressionPtr> expressions;
  std::vector<Body> bodies;
};

struct Syntax {
  Body body;
  std::vector<std::string> symbols;  // the names that it uses, by number
  bool has_generation = false;
  /// Of each symbol: the template sets it outside of blocks before it reads it there. In Jinja, a
  /// block that reads it earlier does not see a variable of that name which was handed over.
  std::vector<bool> set_first;
};

}  // namespace tessera::jinja
