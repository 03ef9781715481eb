#include "tessera/chat/chat_template.h"

#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

const std::tm kNoon = {.tm_sec = 0,
                       .tm_min = 0,
                       .tm_hour = 12,
                       .tm_mday = 1,
                       .tm_mon = 0,
                       .tm_year = 124,
                       .tm_wday = 1,
                       .tm_yday = 0,
                       .tm_isdst = 0,
                       .tm_gmtoff = 0,
                       .tm_zone = nullptr};

std::string made(const std::string& source, const ChatLimits& limits = {}) {
  const Json variables = {{"x", 3}, {"s", "text"}, {"l", {1, 2}}, {"d", {{"a", 1}}}};
  try {
    return ChatTemplate::parse(source, "t").render(variables, kNoon, limits).text;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Data);
    return error.what();
  }
}

TEST(ChatTemplate, RefusesWithThePlace) {
  const struct {
    const char *source, *message;
  } kCases[] = {
      // What Jinja has and this has not.
      {"a\n  {% include 'x' %}", "t, line 2, column 6: {% include %} is not supported"},
      {"{% do l.append(1) %}", "t, line 1, column 4: {% do %} is not supported"},
      {"{% call f() %}{% endcall %}", "t, line 1, column 4: {% call %} is not supported"},
      {"{{ l | groupby('a') }}", "t, line 1, column 8: the filter 'groupby' is not supported"},
      {"{{ l | map('batch', 2) | list }}",
       "t, line 1, column 8: the filter 'batch' is not supported"},
      {"{{ s is sameas s }}", "t, line 1, column 9: the test 'sameas' is not supported"},
      {"{{ '%d' % 3 }}",
       "t, line 1, column 9: '%' with a text before it, which formats it, is not supported; "
       "use '~'"},
      {"{{ s.format(1) }}", "t, line 1, column 5: 'format' of a text is not supported"},
      {"{{ s.__class__ }}", "t, line 1, column 5: the attribute '__class__' is not supported"},
      {"{{ x.real }}", "t, line 1, column 5: 'real' of a whole number is not supported"},
      {"{{ l.append(3) }}", "t, line 1, column 5: 'append' of a list is not supported"},
      {"{{ f(*l) }}", "t, line 1, column 6: '*' before an argument is not supported"},
      {"{% for i in l recursive %}{% endfor %}",
       "t, line 1, column 15: {% for ... recursive %} is not supported"},
      {"{{ (s|safe).strip() }}",
       "t, line 1, column 18: strip() of a text marked safe is not supported"},
      {"{{ 'straße' | upper }}",
       "t, line 1, column 16: the capital of 'ß' (U+00DF) is not supported"},
      {"{{ strftime_now('%Q') }}", "t, line 1, column 16: strftime_now: '%Q' is not supported"},
      {"{{ 99999999999999999999 }}",
       "t, line 1, column 4: the number 99999999999999999999 is too large; it is not supported"},
      {"{{ 9223372036854775807 + 1 }}",
       "t, line 1, column 24: the result of '+' is too large; it is not supported"},
      {"{% for i in l %}{{ loop.cycle(1, 2) }}{% endfor %}",
       "t, line 1, column 24: 'loop.cycle' is not supported"},
      {"{{ d.items }}", "t, line 1, column 1: a function is printed"},
      {"{% for i in l %}{{ x }}{% endfor %}{% set x = 1 %}",
       "t, line 1, column 20: 'x' is read in a block before {% set x %} outside of blocks has set "
       "it; rename the second"},
      {"{{ cycler(1) }}", "t, line 1, column 4: 'cycler' is not supported"},
      // What is wrong in Jinja, too.
      {"{{ nothing.at.all }}", "t, line 1, column 11: 'at' of 'nothing', which is not defined"},
      {"{{ d.b.c }}", "t, line 1, column 7: 'c' of 'b', which is not defined"},
      {"{{ s + 1 }}", "t, line 1, column 6: '+' between a text and a whole number"},
      {"\n\n{% if x %}", "t, line 3, column 4: the block has no {% endif %}"},
      {"{{ x", "t, line 1, column 1: the tag has no end '}}'"},
      {"{{ raise_exception('no\x1b[1m') }}", "t refuses the dialogue: no\\x1b[1m"},
      {"\xff", "t is not UTF-8 at byte 1; save it as UTF-8"},
  };
  for (const auto& c : kCases) EXPECT_EQ(made(c.source), c.message) << c.source;
}

std::string times(int count, const std::string& text) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(ChatTemplate, HostileOnesEnd) {
  const std::string loop = "{% for a in range(99999) %}", end = "{% endfor %}";
  const struct {
    const char* name;
    std::string source, part;  // of the message
  } kCases[] = {
      {"loops", loop + loop + loop + end + end + end, "10,000,000 steps"},
      {"a text that doubles",
       "{% set ns = namespace(s='x') %}" + loop + "{% set ns.s = ns.s + ns.s %}" + end, "too long"},
      {"a list that doubles",
       "{% set ns = namespace(s=[1]) %}" + loop + "{% set ns.s = ns.s * 2 %}" + end, "too long"},
      {"a long repetition", "{{ 'x' * 9999999999 }}", "too long"},
      {"replace", "{{ ('x' * 1000000)|replace('x', 'y' * 1000000) }}", "too long"},
      {"join", "{{ range(99999)|join('y' * 1000000) }}", "too long"},
      {"indent", "{{ ('a\n' * 1000000)|indent(9999) }}", "too long"},
      {"a macro without an end", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deeper"},
      {"lists in lists",
       "{% set ns = namespace(s=[]) %}" + loop + "{% set ns.s = [ns.s] %}" + end + "{{ ns.s }}",
       "deeper"},
      {"such lists compared",
       "{% set ns = namespace(s=[], t=[]) %}{% for a in range(9999) %}{% set ns.s = [ns.s] %}" +
           std::string("{% set ns.t = [ns.t] %}") + end + "{{ ns.s == ns.t }}",
       "deeper"},
      {"itself in itself", "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a }}", "printed"},
      {"parentheses", "{{ " + times(100000, "(") + "x" + times(100000, ")") + " }}", "deeper"},
      {"brackets", "{{ " + times(100000, "[") + times(100000, "]") + " }}", "deeper"},
      {"a chain of +", "{{ x" + times(100000, " + x") + " }}", "levels"},
      {"a chain of filters", "{{ s" + times(100000, "|trim") + " }}", "levels"},
      {"not not", "{{ " + times(100000, "not ") + "x }}", "deeper"},
      {"minus", "{{ " + times(100000, "- ") + "x }}", "deeper"},
      {"else if", "{{ 1" + times(100000, " if x else 1") + " }}", "deeper"},
      {"blocks", times(100000, "{% if x %}"), "deeper"},
      {"maps of maps", "{{ [[[1]]]" + times(90, "|map('map', 'list')") + "|list }}", ""},
  };
  for (const auto& c : kCases) {
    const std::string out = made(c.source);
    EXPECT_NE(out.find(c.part), std::string::npos) << c.name << ": " << out.substr(0, 200);
    EXPECT_LT(out.size(), 1000u) << c.name;
  }
  EXPECT_EQ(made("{% for i in range(50) %}{% endfor %}a", {.steps = 1000}), "a");
  EXPECT_NE(made("{% for i in range(5000) %}{% endfor %}a", {.steps = 1000}).find("1,000 steps"),
            std::string::npos);
  EXPECT_NE(made("{{ 'a' * 2000 }}", {.bytes = 1000}).find("too long"), std::string::npos);
}

TEST(ChatTemplate, ALongTemplateOfShortBlocksRuns) {
  EXPECT_EQ(made(times(20000, "{% if x %}{{ x }}{% endif %}\n")).size(), 20000u);
}

TEST(ChatTemplate, VariablesThatAreSetAndHandedOver) {
  EXPECT_EQ(made("{{ x }}{% for i in l %}{{ x }}{% endfor %}{% set x = 1 %}{{ x }}"), "3331");
  EXPECT_EQ(made("{% set x = 1 %}{% for i in l %}{{ x }}{% endfor %}"), "11");
  EXPECT_EQ(made("{% if d.b %}{% set x = 1 %}{% endif %}{% for i in l %}{{ x }}{% endfor %}"),
            "33");
  EXPECT_EQ(made("{% macro f() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}"), "1");
}

TEST(ChatTemplate, GenerationInAMacroHasNoPlace) {
  const std::string out =
      made("{% macro f() %}{% generation %}a{% endgeneration %}{% endmacro %}{{ f() }}");
  EXPECT_NE(out.find("within a macro"), std::string::npos) << out;
}

}  // namespace

}  // namespace tessera
