#include "tests/ptx/forms.h"

namespace ptx
{

const form *find_form(const std::string &name)
{
    static const std::map<std::string, const form *> all = [] {
        std::map<std::string, const form *> found;
        for (const auto *table :
             {&arithmetic_forms(), &memory_forms(), &warp_forms(), &control_forms()})
            for (const form &row : *table)
                found[row.name] = &row;
        return found;
    }();
    auto at = all.find(name);
    return at == all.end() ? nullptr : at->second;
}

} // namespace ptx
