/* Reads PTX's text: statements one by one, each a list of words. */
#ifndef SHOAL_TESTS_PTX_STATEMENTS_H
#define SHOAL_TESTS_PTX_STATEMENTS_H

#ifdef __cplusplus
#include <string>
#include <vector>

namespace ptx
{

struct statement {
    std::vector<std::string> words; /* "add.s32" "%r1" "," "[" "%rd2" "+" "16" "]" */
    int line;
    bool is_inline; /* of an asm statement */
};

/* Whether a word may have it; `::` may be in one, too. */
bool is_word(char c);

/* Up to the next `;`, `{` or `}` that is not within a list, or a label's `:`. */
class reader
{
  public:
    reader(const std::string &all, std::string name) : text(all), file(std::move(name))
    {
    }

    /* False at the end of the text. */
    bool next(statement *s);

    /* Throws fault, with the file and the line. */
    [[noreturn]] void fail(int at, const std::string &why) const;

  private:
    const std::string &text;
    std::string file;
    size_t at = 0;
    int line = 1;
    bool is_inline = false;

    bool skip_space();
    void skip_comment();
    size_t end_of_word(size_t from) const;
};

} // namespace ptx
#endif
#endif
