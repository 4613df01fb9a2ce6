// What became of a graph: as tables for people, and as records for programs.
#include <string.h>

#include "backend/internal.h"

/// Takes an idle call, whose context shows which kernels late sizes chose; NULL: there is none.
static TorCall *borrow_call(TorExecutable *exe) {
    pthread_mutex_lock(&exe->lock);
    TorCall *call = exe->idle;
    if (call) exe->idle = call->next;
    pthread_mutex_unlock(&exe->lock);
    return call;
}

static void return_call(TorExecutable *exe, TorCall *call) {
    if (!call) return;
    pthread_mutex_lock(&exe->lock);
    call->next = exe->idle;
    exe->idle = call;
    pthread_mutex_unlock(&exe->lock);
}

ToroidStatus tor_exe_describe(const TorExecutable *exe, char **before, char **after, char **steps) {
    TorExecutable *e = (TorExecutable *)(uintptr_t)exe;
    *before = *after = *steps = NULL;
    ToroidStatus status = tor_table_print(e->before, before);
    if (status == TOROID_OK) status = tor_table_print(e->after, after);
    if (status == TOROID_OK) {
        TorCall *call = borrow_call(e);
        status = tor_plan_print(e->plan, call ? call->context : NULL, steps);
        return_call(e, call);
    }
    if (status == TOROID_OK) return TOROID_OK;
    tor_free(*before);
    tor_free(*after);
    *before = *after = NULL;
    return status;
}

// ---------------------------------------------------------------- where nodes went

enum { NONE = UINT32_MAX };

/// A reader of a node, in a list.
typedef struct Reader {
    uint32_t node;
    struct Reader *next;
} Reader;

typedef struct {
    const TorTable *before, *after;
    TorArena *arena;
    uint32_t *number;  ///< by id of a node that is left: its number in `after`
    uint32_t *maker;   ///< by id of a value: the number in `before` of the node that makes it
    Reader **readers;  ///< by number in `before`
    uint32_t *seen;    ///< by number in `after`: the node of `before` that has it in its list, + 1
    TorPlaces *places;
} Search;

static uint32_t *numbers(TorArena *arena, size_t count) {
    uint32_t *list = tor_arena_alloc(arena, (count + 1) * sizeof *list);
    for (size_t i = 0; list && i < count; i++) list[i] = NONE;
    return list;
}

static bool begin_search(Search *s, const TorGraph *g) {
    s->number = numbers(s->arena, g->next_node);
    s->maker = numbers(s->arena, g->next_value);
    s->seen = tor_arena_alloc(s->arena, (s->after->n_nodes + 1) * sizeof *s->seen);
    s->readers = tor_arena_alloc(s->arena, (s->before->n_nodes + 1) * sizeof *s->readers);
    s->places = tor_arena_alloc(s->arena, (s->before->n_nodes + 1) * sizeof *s->places);
    if (!s->number || !s->maker || !s->seen || !s->readers || !s->places) return false;
    for (uint32_t i = 0; i < s->after->n_nodes; i++) s->number[s->after->nodes[i].node->id] = i;
    for (uint32_t i = 0; i < s->before->n_nodes; i++)
        for (int r = 0; r < s->before->nodes[i].n_results; r++)
            s->maker[s->before->nodes[i].results[r].value->id] = i;
    return true;
}

/// Adds a place to the list of node `i`, which has room, unless it is there.
static void add_place(Search *s, uint32_t i, uint32_t place) {
    if (s->seen[place] == i + 1) return;
    s->seen[place] = i + 1;
    s->places[i].nodes[s->places[i].count++] = place;
}

/// The node that makes a value now, or what took its place; NONE if nothing did, or if it is a
/// source that nothing reads any more.
static uint32_t place_of(const Search *s, const TorValue *value) {
    uint32_t place = s->number[value->node->id];
    while (place == NONE && value->successor) {
        value = value->successor;
        place = s->number[value->node->id];
    }
    bool idle = tor_op_kind(value->node->op) == TOR_KIND_SOURCE && !value->uses;
    return idle ? NONE : place;
}

/// A node that has neither a place nor a successor is computed where its readers are.
static bool find_places(Search *s, uint32_t i) {
    const TorTableNode *node = &s->before->nodes[i];
    size_t room = (size_t)node->n_results + 1;
    for (const Reader *r = s->readers[i]; r; r = r->next) room += s->places[r->node].count;
    s->places[i].nodes = tor_arena_alloc(s->arena, room * sizeof *s->places[i].nodes);
    if (!s->places[i].nodes) return false;
    for (int r = 0; r < node->n_results; r++) {
        uint32_t place = place_of(s, node->results[r].value);
        if (place != NONE) add_place(s, i, place);
    }
    if (node->n_results == 0 && s->number[node->node->id] != NONE)
        add_place(s, i, s->number[node->node->id]);
    if (s->places[i].count) return true;
    for (const Reader *r = s->readers[i]; r; r = r->next)
        for (uint32_t k = 0; k < s->places[r->node].count; k++)
            add_place(s, i, s->places[r->node].nodes[k]);
    return true;
}

static bool add_to_readers(Search *s, uint32_t i) {
    const TorTableNode *node = &s->before->nodes[i];
    for (int k = 0; k < node->n_operands; k++) {
        uint32_t maker = s->maker[node->operands[k].value->id];
        if (maker == NONE) continue;  // a number
        Reader *reader = tor_arena_alloc(s->arena, sizeof *reader);
        if (!reader) return false;
        *reader = (Reader){i, s->readers[maker]};
        s->readers[maker] = reader;
    }
    return true;
}

static bool find_all(Search *s, const TorGraph *g) {
    if (!begin_search(s, g)) return false;
    for (uint32_t i = (uint32_t)s->before->n_nodes; i-- > 0;)  // readers first
        if (!find_places(s, i) || !add_to_readers(s, i)) return false;
    return true;
}

// ---------------------------------------------------------------- records

static bool describe_steps(TorExeRecord *record, const Search *s, TorExecutable *exe) {
    record->n_steps = tor_plan_step_count(exe->plan);
    record->steps = tor_arena_alloc(record->arena, (record->n_steps + 1) * sizeof *record->steps);
    record->step_nodes = numbers(record->arena, record->n_steps);
    if (!record->steps || !record->step_nodes) return false;
    TorCall *call = borrow_call(exe);
    record->bound = call != NULL;
    bool done = true;
    for (uint32_t i = 0; done && i < record->n_steps; i++) {
        done = tor_step_describe(&record->steps[i], record->arena, exe->plan,
                                 call ? call->context : NULL, i);
        if (done) record->step_nodes[i] = s->number[record->steps[i].node];
    }
    return_call(exe, call);
    return done;
}

ToroidStatus tor_exe_record(const TorExecutable *exe, TorExeRecord **out) {
    TorExecutable *e = (TorExecutable *)(uintptr_t)exe;
    *out = NULL;
    TorExeRecord *record = tor_alloc_zero(sizeof *record);
    if (!record) return tor_no_memory();
    record->before = e->before;
    record->after = e->after;
    bool done = tor_arena_create(&record->arena) == TOROID_OK;
    if (done) {
        Search search = {.before = e->before, .after = e->after, .arena = record->arena};
        done = find_all(&search, e->g) && describe_steps(record, &search, e);
        record->places = search.places;
    }
    if (!done) {
        tor_exe_record_destroy(&record);
        return tor_no_memory();
    }
    *out = record;
    return TOROID_OK;
}

void tor_exe_record_destroy(TorExeRecord **record) {
    if (!record || !*record) return;
    tor_arena_destroy(&(*record)->arena);
    tor_free(*record);
    *record = NULL;
}
