/* What runs beside the threads of a block on compute capability 9.0: barriers in shared memory,
 * copies by TMA, products of warpgroups (NVIDIA, "Parallel Thread Execution ISA": mbarrier,
 * cp.async.bulk.tensor, wgmma).
 *
 * All of it is as late as it may be. A copy lands when land() is called, which is when no thread
 * can go on without; a product is made when its group is waited for. What may be early, too, is
 * found by asking what orders it, not by trying:
 *  - a warp has a clock for each warp: how far of that one it has seen. Arriving at a barrier hands
 *    them on, waiting for its phase takes them;
 *  - a product reads what copies have brought: each thread of it must have waited for the barrier's
 *    phase of that copy;
 *  - a copy overwrites what products have read: whoever asks for it must have seen that they were
 *    waited for.
 * And what hardware demands of alignments, descriptors, counts and phases is checked.
 *
 * Knows nothing of fibers, kernels and registers: async_calls.cc calls it for them. Addresses are
 * those in the window of shared memory. Whatever is wrong throws async_fault. */
#ifndef SHOAL_TESTS_EMULATION_ASYNC_BLOCK_H
#define SHOAL_TESTS_EMULATION_ASYNC_BLOCK_H

#ifdef __cplusplus
#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace emulation
{

struct async_fault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* What the emulated driver writes into a tensor map. */
struct map_fields {
    uint64_t magic; /* MAP_MAGIC */
    const unsigned char *memory;
    uint64_t sizes[4], strides[3]; /* elements; bytes */
    uint32_t box[4];
};
enum : uint64_t { MAP_MAGIC = 0x70616d5f726f7374 };

/* A warp's part of D += A B: 16 rows of 64, n columns, 16 deep. */
struct async_product {
    enum { ROWS = 16, DEPTH = 16, WARPS = 4 };
    bool a_in_registers;
    float values[ROWS][DEPTH]; /* of A, if so */
    uint64_t a, b;             /* descriptors */
    bool b_by_rows;            /* B's rows, not its columns, lie in shared memory one by one */
    int n;
    bool adds;
};

/* Sums of a warp that are done. key: as the caller named them. */
struct async_sums {
    uint64_t key;
    int n;
    std::vector<float> d; /* [16, n] */
};

class async_block
{
  public:
    async_block(unsigned char *shared, size_t bytes, uint32_t address, unsigned threads);

    /* ---- barriers: of one thread ---- */
    void init(unsigned thread, uint32_t barrier, unsigned count);
    void made(unsigned thread);
    void arrive(unsigned thread, uint32_t barrier, unsigned bytes);
    bool is_over(unsigned thread, uint32_t barrier, unsigned parity); /* then it is waited for */
    std::string state_of(uint32_t barrier) const;
    void block_barrier(); /* __syncthreads */

    /* ---- copies ---- */
    void copy(unsigned thread, uint32_t to, const void *map, const int (&place)[4],
              uint32_t barrier);
    /* Bytes as they lie. */
    void copy_plain(unsigned thread, uint32_t to, const unsigned char *from, uint32_t count,
                    uint32_t barrier);
    /* The thread reads what copies have brought, itself. */
    void read(unsigned thread, uint32_t from, uint32_t count);
    size_t copies_under_way() const
    {
        return copies.size();
    }
    void land(size_t which); /* of those */

    /* ---- products: of a warp ---- */
    void fence(unsigned warp);
    /* Whether sums of that name are under way; else they are to be handed over. */
    bool has_sums(unsigned warp, uint64_t key) const;
    void multiply(unsigned warp, const async_product &product, uint64_t key,
                  const std::vector<float> &sums);
    void commit(unsigned warp);
    /* Makes the products of all groups but the last `left`: those sums that nothing more is under
     * way for. */
    std::vector<async_sums> wait(unsigned warp, unsigned left);

    /* All threads have ended. */
    void end();

    /* How many phases have ended so far: then those who wait look again. */
    uint64_t phases_over = 0;

  private:
    using clocks = std::vector<uint64_t>; /* of each warp */

    struct barrier_state {
        unsigned count, missing, maker;
        int64_t bytes = 0; /* that are still to come; < 0: have come before they were expected */
        uint64_t phase = 0, made_in;
        bool is_fenced = false;
        clocks arrived, handed;
        std::map<unsigned, uint64_t> seen; /* by thread: phases that it has waited for */
    };
    struct copy_state {
        uint32_t to, count, barrier;
        const unsigned char *plain; /* NULL: by the map */
        map_fields map;
        int place[4];
        uint64_t phase;
        int number;
    };
    struct pending_product {
        async_product what;
        uint64_t key;
        std::vector<uint32_t> chunks;
    };
    struct warp_state {
        clocks seen;
        bool is_fenced = false;
        size_t told = 0;     /* products of its warpgroup, up to here */
        int waited_for = -1; /* index in landed: the last, with swizzle, that all its threads did */
        std::deque<std::vector<pending_product>> groups;
        std::vector<pending_product> open; /* not committed */
        struct sums {
            int n;
            unsigned pending;
            std::vector<float> d;
        };
        std::map<uint64_t, sums> under_way;
    };
    /* 16 bytes of shared memory. */
    struct chunk {
        int brought_by = -1; /* index in landed; -1: nobody */
        bool is_coming = false;
        unsigned readers = 0;          /* products under way */
        std::vector<uint64_t> read_at; /* a warp's own clock when it waited for its last read */
    };

    unsigned char *memory;
    size_t bytes;
    uint32_t base;
    unsigned thread_count;
    uint64_t epoch = 0; /* of the block's barrier */
    std::map<uint32_t, barrier_state> barriers;
    std::vector<copy_state> copies, landed;
    int copies_so_far = 0;
    std::vector<warp_state> warps;
    std::vector<chunk> chunks;
    std::vector<std::vector<std::string>> products_of_groups; /* what each warp must ask for */

    barrier_state &find(unsigned thread, uint32_t barrier);
    void end_phase_if_due(barrier_state &b);
    chunk &chunk_at(uint32_t address, const std::string &what);
    void check_target(unsigned thread, uint32_t to, uint32_t count);
    void add_copy(unsigned thread, copy_state c);
    void bring_tile(const copy_state &c);
    std::vector<uint32_t> check_matrix(unsigned warp, uint64_t matrix, int count, bool by_rows,
                                       int first, const char *name);
    const copy_state &copy_that_brought(uint32_t address, const std::string &what);
    void check_waited(unsigned thread, const copy_state &by, const std::string &what) const;
    void check_read(unsigned warp, uint32_t address, const char *name);
    void make(unsigned warp, const pending_product &product);
    float element(uint32_t address) const;
};

/* Where element (i, k) of a factor lies: i counts A's rows or B's columns, k what is summed
 * over. */
uint32_t async_element_at(uint64_t matrix, bool by_rows, int i, int k);

} // namespace emulation
#endif
#endif
