#include "tests/ptx/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <map>
#include <string.h>
#include <vector>

namespace ptx
{
namespace
{

/* Functions of an ELF file by their address in it. */
std::map<uint64_t, std::string> functions_of(const char *file)
{
    std::ifstream in(file, std::ios::binary);
    std::vector<char> all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::map<uint64_t, std::string> found;
    Elf64_Ehdr head;
    if (all.size() < sizeof head)
        return found;
    memcpy(&head, all.data(), sizeof head);
    std::vector<Elf64_Shdr> sections(head.e_shnum);
    memcpy(sections.data(), all.data() + head.e_shoff, sections.size() * sizeof sections[0]);
    for (const Elf64_Shdr &table : sections) {
        if (table.sh_type != SHT_SYMTAB)
            continue;
        const char *names = all.data() + sections[table.sh_link].sh_offset;
        for (size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            memcpy(&symbol, all.data() + table.sh_offset + at, sizeof symbol);
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value)
                found[symbol.st_value] = names + symbol.st_name;
        }
    }
    return found;
}

} // namespace

std::string symbol_of(const void *function)
{
    static std::map<std::string, std::map<uint64_t, std::string>> files;
    Dl_info where;
    if (!dladdr(function, &where))
        return "";
    auto [file, is_new] = files.try_emplace(where.dli_fname);
    if (is_new)
        file->second = functions_of(where.dli_fname);
    auto at = file->second.find((uintptr_t)function - (uintptr_t)where.dli_fbase);
    return at == file->second.end() ? "" : at->second;
}

} // namespace ptx
