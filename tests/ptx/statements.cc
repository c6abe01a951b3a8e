#include "tests/ptx/statements.h"
#include "tests/ptx/program.h"

#include <algorithm>
#include <cctype>

namespace ptx
{

bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

void reader::fail(int at_line, const std::string &why) const
{
    throw fault(file + ":" + std::to_string(at_line) + ": " + why);
}

void reader::skip_comment()
{
    size_t end = std::min(text.find('\n', at), text.size());
    std::string comment = text.substr(at, end - at);
    if (comment.find("begin inline asm") != std::string::npos)
        is_inline = true;
    if (comment.find("end inline asm") != std::string::npos)
        is_inline = false;
    at = end;
}

bool reader::skip_space()
{
    for (; at < text.size(); at++) {
        if (text.compare(at, 2, "//") == 0)
            skip_comment();
        if (at < text.size() && !isspace((unsigned char)text[at]))
            return true;
        line += at < text.size() && text[at] == '\n';
    }
    return false;
}

size_t reader::end_of_word(size_t from) const
{
    while (from < text.size() && (is_word(text[from]) || text.compare(from, 2, "::") == 0))
        from += is_word(text[from]) ? 1 : 2;
    return from;
}

bool reader::next(statement *s)
{
    s->words.clear();
    bool in_list = false;
    while (skip_space()) {
        if (s->words.empty())
            *s = {{}, line, is_inline};
        char c = text[at];
        size_t begin = at++;
        if (is_word(c))
            at = end_of_word(at);
        if (c == '"')
            at = std::min(text.find('"', at), text.size() - 1) + 1;
        if (c == ';')
            return true;
        s->words.push_back(text.substr(begin, at - begin));
        bool is_block = s->words.size() == 1 || s->words[0][0] == '.';
        in_list = in_list || (c == '{' && !is_block);
        if (c == ':' || ((c == '{' || c == '}') && !in_list))
            return true;
        in_list = in_list && c != '}';
    }
    if (!s->words.empty())
        fail(s->line, "the text ends within a statement");
    return false;
}

} // namespace ptx
