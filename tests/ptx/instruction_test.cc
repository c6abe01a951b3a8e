#include "tests/ptx/instruction_test.h"

#include <cstdio>

namespace ptx
{

void run(const std::string &body, unsigned threads, std::vector<uint32_t> *words,
         const std::vector<unsigned char> &map)
{
    enum { MAP_AT = 64, MAP_BYTES = 128 };
    size_t bytes = words->size() * sizeof(uint32_t);
    std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\n"
                       ".extern .shared .align 16 .b8 bytes[];\n"
                       ".visible .entry test(\n.param .u64 at,\n.param .align 64 .b8 map[128]\n)\n"
                       ".maxntid 384, 1, 1\n{\n"
                       ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<40>; .reg .f32 %f<100>;\n"
                       ".reg .b64 %rd<9>;\n"
                       "mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, " +
                       std::to_string(bytes / threads) +
                       ";\nld.param.u64 %rd1, [at]; add.s64 %rd0, %rd1, %rd0;\n"
                       "mov.u64 %rd8, map; cvta.param.u64 %rd8, %rd8;\n" +
                       body + "\nret;\n}\n";
    std::vector<kernel> kernels = parse_text(text, "test.ptx");
    grid g = {};
    g.program = &kernels[0];
    g.blocks[0] = g.blocks[1] = g.blocks[2] = g.threads[1] = g.threads[2] = 1;
    g.threads[0] = threads;
    g.dynamic_shared_bytes = SHARED_BYTES;
    auto *start = (unsigned char *)words->data();
    g.memory.push_back({start, bytes});
    g.arguments.resize(MAP_AT + MAP_BYTES);
    memcpy(g.arguments.data(), &start, sizeof start);
    std::copy(map.begin(), map.end(), g.arguments.begin() + MAP_AT);
    run_grid(&g);
}

static int failures, number;

void report(bool good, const std::string &what, const std::string &why)
{
    failures += !good;
    printf("%sok %d - %s\n%s%s%s", good ? "" : "not ", ++number, what.c_str(), good ? "" : "# ",
           good ? "" : why.c_str(), good ? "" : "\n");
}

void test_result(const result_row &row, unsigned threads)
{
    std::vector<uint32_t> words(WORDS * threads);
    for (size_t i = 0; i < words.size(); i++)
        words[i] = i == 1 ? 0xffffffff : (uint32_t)i;
    std::string why;
    uint32_t got = 0;
    try {
        run(std::string(row.body) + " st.global.u32 [%rd0], %r1;", threads, &words);
        got = words[row.thread * WORDS];
        why = "is " + std::to_string(got) + ", not " + std::to_string(row.expected);
    } catch (const fault &f) {
        why = f.what();
        got = ~row.expected;
    }
    report(got == row.expected, row.body, why);
}

void test_fault(const fault_row &row, unsigned threads, const std::vector<unsigned char> &map)
{
    std::vector<uint32_t> words(WORDS * threads);
    std::string told = "nothing is wrong";
    try {
        run(row.body, threads, &words, map);
    } catch (const fault &f) {
        told = f.what();
    }
    report(told.find(row.text) != std::string::npos, "told: " + row.text, told);
}

int end_of_tests()
{
    printf("1..%d\n", number);
    return failures > 0;
}

} // namespace ptx
