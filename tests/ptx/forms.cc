#include "tests/ptx/forms.h"

namespace ptx
{

const form *find_form(const std::string &name, size_t operands)
{
    static const std::multimap<std::string, const form *> all = [] {
        std::multimap<std::string, const form *> found;
        for (const auto *table :
             {&arithmetic_forms(), &memory_forms(), &warp_forms(), &barrier_forms(),
              &bulk_copy_forms(), &warpgroup_forms(), &register_pool_forms(), &control_forms()})
            for (const form &row : *table)
                found.emplace(row.name, &row);
        return found;
    }();
    auto [from, to] = all.equal_range(name);
    for (auto at = from; at != to; at++)
        if (at->second->operands.size() == operands)
            return at->second;
    return from == to ? nullptr : from->second;
}

} // namespace ptx
