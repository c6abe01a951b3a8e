/* A descriptor of cuDNN's backend interface, held to its protocol: attributes that its kind has, of
 * their type and count, all that are needed, none after it is final. Whoever breaks it ends the
 * test. */
#ifndef SHOAL_TESTS_EMULATION_CUDNN_DESCRIPTOR_H
#define SHOAL_TESTS_EMULATION_CUDNN_DESCRIPTOR_H

#ifdef __cplusplus
#include "tests/emulation/cudnn_graph.h"

#include <cstring>
#include <memory>

namespace emulation
{

struct descriptor {
    int kind = 0; /* enum cudnn_kind */
    bool is_final = false;
    std::map<int, std::vector<unsigned char>> attributes;
    std::shared_ptr<graph> operations; /* of a graph, a configuration, a plan */
    bool differs = false;              /* of a configuration, an engine: each run is another */
    int64_t workspace = 0;             /* of a plan, bytes */

    template <typename T> std::vector<T> all(int attribute) const
    {
        const auto found = attributes.find(attribute);
        std::vector<T> elements;
        if (found != attributes.end())
            for (size_t i = 0; i < found->second.size(); i += sizeof(T)) {
                T each;
                memcpy(&each, &found->second[i], sizeof each);
                elements.push_back(each);
            }
        return elements;
    }
    template <typename T> T one(int attribute, T otherwise) const
    {
        const std::vector<T> elements = all<T>(attribute);
        return elements.empty() ? otherwise : elements[0];
    }
};

descriptor *descriptor_make(int kind);
void descriptor_destroy(void *pointer);
/* The descriptor: there, and not final; or final, and of the kind (-1: any). */
descriptor *descriptor_open(void *pointer);
descriptor *descriptor_final(const void *pointer, int kind);
/* The final descriptor that is the attribute's value. */
descriptor *descriptor_of(const descriptor *it, int attribute, int kind);

void descriptor_set(descriptor *it, int attribute, int type, int64_t count, const void *elements);
/* That all is set which is needed. */
void descriptor_check(const descriptor *it);

/* What an operation's descriptor says. */
bool descriptor_is_operation(const descriptor *it);
operation descriptor_operation(const descriptor *it);

} // namespace emulation
#endif
#endif
