/* Makes kernels of PTX's statements. */
#include "tests/ptx/forms.h"
#include "tests/ptx/statements.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace ptx
{
namespace
{

unsigned bytes_of(const std::string &type)
{
    static const std::map<std::string, unsigned> all = {
        {".pred", 1}, {".b8", 1},  {".u8", 1},  {".b16", 2}, {".u16", 2}, {".s16", 2}, {".b32", 4},
        {".u32", 4},  {".s32", 4}, {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8},
    };
    auto at = all.find(type);
    return at == all.end() ? 0 : at->second;
}

class kernel_reader
{
  public:
    kernel_reader(reader &from, std::string file, const std::map<std::string, uint64_t> &shared)
        : in(from), places(shared)
    {
        k.file = std::move(file);
    }

    kernel read(const statement &head); /* `.visible .entry name ( parameters ) {` */

  private:
    reader &in;
    kernel k;
    std::map<std::string, uint64_t> places;               /* of parameters and shared arrays */
    std::vector<std::map<std::string, int>> registers{1}; /* of each { } that is open */
    std::map<std::string, uint64_t> labels;
    struct jump {
        size_t code, operand;
        std::string label;
    };
    std::vector<jump> jumps;

    void read_parameters(const statement &s);
    void read_launch_bounds(const statement &s);
    void read_registers(const statement &s);
    void read_instruction(const statement &s);
    operand read_value(const statement &s, size_t *at);
    void check(const instruction &i, const statement &s);
    uint64_t constant_of(const statement &s, const std::string &word);
    int special_register(const std::string &name);
    int find_register(const std::string &name) const;
};

/* .param .align 8 .b8 name[256] , .param .u64 name */
void kernel_reader::read_parameters(const statement &s)
{
    auto word = std::find(s.words.begin(), s.words.end(), "(");
    for (; word != s.words.end() && *word != ")"; word++) {
        if (*word != ".param")
            continue;
        uint64_t align = 0, count = 1;
        if (*++word == ".align") {
            align = std::stoull(word[1]);
            word += 2;
        }
        unsigned bytes = bytes_of(*word);
        if (!bytes)
            in.fail(s.line, "parameters of type " + *word + " are not known");
        const std::string &name = *++word;
        if (word[1] == "[")
            count = std::stoull(word[2]);
        align = std::max<uint64_t>(align, bytes);
        uint64_t offset = (k.parameter_bytes + align - 1) / align * align;
        k.parameter_bytes = offset + bytes * count;
        places[name] = PARAMETERS_AT + offset;
    }
}

/* .maxntid 384 , 1 , 1 .minnctapersm 1 */
void kernel_reader::read_launch_bounds(const statement &s)
{
    for (auto word = s.words.begin(); word != s.words.end(); word++)
        if (*word == ".maxntid")
            k.most_threads =
                (unsigned)(std::stoul(word[1]) * std::stoul(word[3]) * std::stoul(word[5]));
        else if (*word == ".minnctapersm")
            k.least_blocks = (unsigned)std::stoul(word[1]);
}

/* .reg .b32 %r < 2597 > , .reg .pred over */
void kernel_reader::read_registers(const statement &s)
{
    size_t words = s.words.size();
    unsigned bytes = words == 3 || (words == 6 && s.words[3] == "<") ? bytes_of(s.words[1]) : 0;
    if (!bytes)
        in.fail(s.line, "registers are declared as `.reg .b32 %r<9>` or `.reg .pred p`");
    int count = words == 6 ? std::stoi(s.words[4]) : 1;
    for (int i = 0; i < count; i++) {
        std::string name = s.words[2] + (words == 6 ? std::to_string(i) : "");
        registers.back()[name] = (int)k.registers.size();
        k.registers.push_back({name, bytes});
    }
}

/* -1: none of that name */
int kernel_reader::find_register(const std::string &name) const
{
    for (auto scope = registers.rbegin(); scope != registers.rend(); scope++)
        if (auto found = scope->find(name); found != scope->end())
            return found->second;
    return -1;
}

int kernel_reader::special_register(const std::string &name)
{
    static const char *const known[] = {
        "%tid.x",  "%tid.y",  "%tid.z",    "%ctaid.x",  "%ctaid.y",  "%ctaid.z", "%ntid.x",
        "%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid",
    };
    if (std::find(std::begin(known), std::end(known), name) == std::end(known))
        return -1;
    auto [at, is_new] = k.special.try_emplace(name, (int)k.registers.size());
    if (is_new)
        k.registers.push_back({name, 4});
    return at->second;
}

/* 12, 0x1F, 0f3F800000 */
uint64_t kernel_reader::constant_of(const statement &s, const std::string &word)
{
    bool is_float = word.size() == 10 && (word[1] == 'f' || word[1] == 'F');
    char *end;
    uint64_t value =
        is_float ? std::strtoull(word.c_str() + 2, &end, 16) : std::strtoull(word.c_str(), &end, 0);
    if (*end || !isdigit((unsigned char)word[0]))
        in.fail(s.line, "not a register, a number or a name that was declared: " + word);
    return value;
}

/* `%rd1 + -16`, `16`, `name`, a label */
operand kernel_reader::read_value(const statement &s, size_t *at)
{
    operand o;
    for (bool negative = false; *at < s.words.size(); ++*at) {
        const std::string &word = s.words[*at];
        if (word == "-" || word == "+") {
            negative = word == "-";
            continue;
        }
        if (!is_word(word[0]))
            break;
        auto place = places.find(word);
        int reg = find_register(word);
        if (word[0] == '%' || reg >= 0) {
            o.reg = reg >= 0 ? reg : special_register(word);
            if (o.reg < 0)
                in.fail(s.line, "no such register: " + word);
        } else if (word == "_") {
            o.is_sink = true;
        } else if (word[0] == '$') {
            o.is_label = true;
            jumps.push_back({k.code.size(), 0, word});
        } else if (place != places.end()) {
            o.constant += place->second;
        } else {
            uint64_t value = constant_of(s, word);
            o.constant += negative ? -value : value;
        }
    }
    return o;
}

void kernel_reader::check(const instruction &i, const statement &s)
{
    const form &f = *i.what;
    if (i.operands.size() != f.operands.size())
        in.fail(s.line, f.name + " takes " + std::to_string(f.operands.size()) +
                            " operands, here are " + std::to_string(i.operands.size()));
    for (size_t n = 0; n < f.operands.size(); n++) {
        const operand_rule &rule = f.operands[n];
        const operand &o = i.operands[n];
        std::string which = "operand " + std::to_string(n + 1) + " of " + f.name;
        bool wants_label = rule.how == operand_rule::LABEL;
        bool wants_address = rule.how == operand_rule::ADDRESS;
        bool wants_sink = rule.how == operand_rule::SINK;
        if (o.is_label != wants_label || o.is_address != wants_address || o.is_sink != wants_sink)
            in.fail(s.line, which + " is to be " +
                                (wants_label     ? "a label"
                                 : wants_address ? "an address"
                                 : wants_sink    ? "_"
                                                 : "a value"));
        if (rule.how == operand_rule::WRITTEN && o.reg < 0)
            in.fail(s.line, which + " is to be a register");
        unsigned bytes = o.reg < 0 ? 0 : k.registers[o.reg].bytes;
        bool fits = bytes == rule.bytes || (rule.or_more && bytes > rule.bytes);
        if (o.reg >= 0 && !fits)
            in.fail(s.line, which + ", " + k.registers[o.reg].name + ", has " +
                                std::to_string(bytes) + " bytes, not " +
                                std::to_string(rule.bytes));
    }
}

/* @%p1 name operands */
void kernel_reader::read_instruction(const statement &s)
{
    instruction i = {};
    i.line = s.line;
    i.is_inline = s.is_inline;
    size_t at = 0;
    if (s.words[0] == "@") {
        i.guard_negated = s.words[1] == "!";
        const std::string &name = s.words[i.guard_negated ? 2 : 1];
        i.guard = find_register(name);
        if (i.guard < 0)
            in.fail(s.line, "no such predicate: " + name);
        at = i.guard_negated ? 3 : 2;
    }
    const std::string &name = s.words[at++];
    if (!find_form(name, 0))
        in.fail(s.line, "unknown instruction: " + name);
    while (at < s.words.size()) {
        const std::string &word = s.words[at];
        if (word == "," || word == "|" || word == "{" || word == "}" || word == "]") {
            at++;
            continue;
        }
        bool is_address = word == "[";
        at += is_address;
        size_t begin = at;
        operand o = read_value(s, &at);
        if (at == begin)
            in.fail(s.line, "what is `" + word + "` in " + name + "?");
        o.is_address = is_address;
        if (o.is_label)
            jumps.back().operand = i.operands.size();
        i.operands.push_back(o);
    }
    i.what = find_form(name, i.operands.size());
    check(i, s);
    k.code.push_back(i);
}

kernel kernel_reader::read(const statement &head)
{
    k.name = head.words[std::find(head.words.begin(), head.words.end(), ".entry") -
                        head.words.begin() + 1];
    read_parameters(head);
    read_launch_bounds(head);
    statement s;
    while (in.next(&s) && (s.words[0] != "}" || registers.size() > 1)) {
        if (s.words[0] == "{")
            registers.emplace_back();
        else if (s.words[0] == "}")
            registers.pop_back();
        else if (s.words[0] == ".reg")
            read_registers(s);
        else if (s.words[0] == ".pragma") /* "nounroll": for ptxas */
            continue;
        else if (s.words[0][0] == '.')
            in.fail(s.line, "unknown in a kernel: " + s.words[0]);
        else if (s.words.back() == ":")
            labels[s.words[0]] = k.code.size();
        else
            read_instruction(s);
    }
    for (const jump &j : jumps) {
        auto to = labels.find(j.label);
        if (to == labels.end())
            in.fail(k.code[j.code].line, "no such label: " + j.label);
        k.code[j.code].operands[j.operand].constant = to->second;
    }
    return k;
}

} // namespace

std::vector<kernel> parse_text(const std::string &text, const std::string &file)
{
    std::vector<kernel> all;
    reader in(text, file);
    std::map<std::string, uint64_t> shared;
    statement s;
    /* no end of a line: .version 9.0 .target sm_80 .address_size 64 come before a statement */
    while (in.next(&s)) {
        while (s.words.size() > 1 && (s.words[0] == ".version" || s.words[0] == ".target" ||
                                      s.words[0] == ".address_size"))
            s.words.erase(s.words.begin(), s.words.begin() + 2);
        auto is = [&](const char *word) {
            return std::find(s.words.begin(), s.words.end(), word) != s.words.end();
        };
        if (is(".entry") && s.words.back() == "{")
            all.push_back(kernel_reader(in, file, shared).read(s));
        else if (is(".extern") && is(".shared")) /* name [ ] */
            shared[s.words[s.words.size() - 3]] = SHARED_AT;
        else
            in.fail(s.line, "unknown outside of kernels: " + s.words[0]);
    }
    return all;
}

std::vector<kernel> parse_file(const std::string &file)
{
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in)
        throw fault(file + ": cannot be read");
    return parse_text(text.str(), file);
}

} // namespace ptx
