/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include <fnmatch.h>

#include "leaks.h" /* texts close clients of silent servers */

#define LINES_MAX 900
#define NAMES_MAX 24

/* --- the file --------------------------------------------------------------------------------- */

static struct {
    const char *name;
    size_t count;
    char *lines[LINES_MAX];
    int numbers[LINES_MAX];
    size_t now; /* the line that is being done */
} file;

static void __attribute__((format(printf, 1, 2))) fail_here(const char *format, ...)
{
    char what[1800];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    fail_msg("%s:%d: %s", file.name, file.numbers[file.now], what);
}

/* --- what steps have names for ---------------------------------------------------------------- */

static struct named {
    char name[32];
    struct actor *actor;
    struct step begun;
} threads[NAMES_MAX];

static struct kept {
    char name[32], value[VALUE_MAX];
} kept[NAMES_MAX];

static struct named *thread_of(const char *name)
{
    struct named *t = threads;

    while (t->actor && strcmp(t->name, name) != 0)
        t++;
    check_num(t - threads, <, NAMES_MAX - 1);
    if (!t->actor) {
        snprintf(t->name, sizeof t->name, "%s", name);
        t->actor = world_actor();
    }
    return t;
}

static struct kept *kept_as(const char *name)
{
    struct kept *k = kept;

    while (k->name[0] && strcmp(k->name, name) != 0)
        k++;
    check_num(k - kept, <, NAMES_MAX - 1);
    return k;
}

/* The text with what was kept in place of a $NAME. */
static const char *expand(const char *word)
{
    const char *at = strchr(word, '$');
    char name[32], *text;

    if (!at)
        return word;
    size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz");
    snprintf(name, sizeof name, "%.*s", (int)length, at + 1);
    if (!kept_as(name)->name[0])
        fail_here("nothing is kept as %s", name);
    text = world_alloc(strlen(word) + strlen(kept_as(name)->value) + 1);
    sprintf(text, "%.*s%s%s", (int)(at - word), word, kept_as(name)->value, at + 1 + length);
    return text;
}

/* --- steps ------------------------------------------------------------------------------------ */

void say(struct step *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(s->value, sizeof s->value, format, args);
    va_end(args);
}

const char *option(const struct step *s, const char *key)
{
    size_t length = strlen(key);

    for (size_t i = 0; i < s->count; i++) {
        if (strncmp(s->words[i], key, length) == 0 && s->words[i][length] == '=')
            return s->words[i] + length + 1;
    }
    return NULL;
}

int64_t number(const struct step *s, const char *key, int64_t otherwise)
{
    const char *value = option(s, key);

    return value ? strtoll(value, NULL, 10) : otherwise;
}

/* The code comes first, one of "@(OK|ELOST)", then what the detail has. */
static bool is_code(const struct step *s, const char *expected)
{
    char code[80];
    size_t length = strcspn(expected = expand(expected), " ");

    snprintf(code, sizeof code, "%.*s", (int)length, expected);
    return fnmatch(code, s->value, FNM_EXTMATCH) == 0 &&
           (!expected[length] || strstr(s->detail, expected + length + 1));
}

static int bars_in(const char *text)
{
    int count = 0;

    for (text = strchr(text, '|'); text; text = strchr(text + 1, '|'))
        count++;
    return count;
}

/* By wildcards, which stand for no '|'. */
static bool is_like(const char *expected, const char *value)
{
    return bars_in(expected) == bars_in(value) && fnmatch(expected, value, 0) == 0;
}

static bool is_as_expected(const struct step *s)
{
    const char *expected = s->expected;

    if (s->is_call)
        return is_code(s, expected ? expected : "OK");
    if (!expected)
        return true;
    if (expected[0] == '!')
        return strcmp(expand(expected + 1), s->value) != 0;
    if (strcmp(expected, "\"\"") == 0)
        return s->value[0] == '\0';
    bool below = expected[0] == '<', equal = expected[0] && expected[1] == '=';
    if (!below && expected[0] != '>')
        return is_like(expand(expected), s->value);
    int64_t bound = strtoll(expand(expected + 1 + equal), NULL, 10);
    int64_t is = strtoll(s->value, NULL, 10);
    return (below ? is < bound : is > bound) || (equal && is == bound);
}

/* For each of the handles, up to one that is not as expected. */
static int do_step(void *arg)
{
    struct step *s = arg;

    if ((s->known = obey_words(s)))
        return 0;
    for (size_t i = 0; i < s->count; i++) {
        if (strchr(s->words[i], '='))
            continue;
        s->handle = handle_of(s->words[i], &s->number);
        s->known = s->handle && obey_handle(s);
        if (!s->known || !is_as_expected(s))
            break;
    }
    return 0;
}

static bool try_step(struct step *s)
{
    if (s->actor)
        actor_do(s->actor, do_step, s);
    else
        do_step(s);
    return is_as_expected(s);
}

/* The default bound only ends a hang. A slow machine has more than one that is given. */
static void await_step(struct step *s, int ms)
{
    if (!wait_until(try_step(s) || !s->known, ms > 0 ? ms : WAIT_MS) && lag_is_slow())
        (void)wait_until(try_step(s), SLOW_WAIT_MS);
}

static void check_step(const struct step *s, const char *text)
{
    if (!s->known)
        fail_here("what is %s?", text);
    if (!is_as_expected(s))
        fail_here("%s: %s, %s", text, s->value, s->detail);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* What stands behind the mark in the text, which ends there. NULL: no mark. */
static char *cut_behind(char *text, const char *mark)
{
    char *at = strstr(text, mark);

    if (!at)
        return NULL;
    *at = '\0';
    return at + strlen(mark);
}

static void read_words(struct step *s, char *text)
{
    char *rest;

    s->verb = strtok_r(text, " ", &rest);
    for (char *word = strtok_r(NULL, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (s->count == WORDS_MAX)
            fail_here("too many words");
        s->words[s->count++] = expand(word);
    }
}

/* THREAD: ends, waits, exits. False: it is another step. */
static bool look_at(struct named *thread, const char *what, const char *expected)
{
    if (strcmp(what, "ends") == 0) {
        (void)actor_result(thread->actor);
        thread->begun.expected = expected;
        check_step(&thread->begun, thread->name);
        thread->begun.verb = NULL;
    } else if (strcmp(what, "waits") == 0) {
        if (actor_is_done(thread->actor))
            fail_here("%s does not wait: %s", thread->name, thread->begun.value);
    } else if (strcmp(what, "exits") == 0) {
        world_drop(thread->actor);
        thread->name[0] = '\0'; /* the next one of that name is another one */
    } else {
        return false;
    }
    return true;
}

static void begin(struct named *thread, const struct step *s)
{
    thread->begun = *s; /* its words stay where they are until the test is over */
    actor_begin(thread->actor, do_step, &thread->begun);
}

static void keep_value(const char *name, const char *value)
{
    struct kept *k = kept_as(name);

    snprintf(k->name, sizeof k->name, "%s", name);
    snprintf(k->value, sizeof k->value, "%s", value);
}

static void do_one(const char *whole)
{
    char *text = memcpy(world_alloc(strlen(whole) + 1), whole, strlen(whole));
    struct step *s = world_alloc(sizeof *s);
    struct named *thread = NULL;
    bool awaits = strncmp(text, "await ", 6) == 0, begins = cut_behind(text, " &") != NULL;
    char *name = cut_behind(text, " as ");

    s->expected = cut_behind(text, " -> ");
    text += awaits ? 6 : 0;
    int ms = awaits ? (int)strtol(text, &text, 10) : 0;
    text += ms > 0;
    size_t length = strcspn(text, " :");
    if (text[length] == ':') {
        text[length] = '\0';
        thread = thread_of(text);
        text += length + 2;
    }
    if (thread && look_at(thread, text, s->expected))
        return;
    read_words(s, text);
    s->actor = thread ? thread->actor : NULL;
    if (begins) {
        begin(thread, s);
        return;
    }
    if (awaits)
        await_step(s, ms);
    else
        try_step(s);
    check_step(s, whole);
    if (name)
        keep_value(name, s->value);
}

static void do_steps(const char *line)
{
    char text[2000], *rest;

    snprintf(text, sizeof text, "%s", line);
    for (char *part = strtok_r(text, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        while (*part == ' ')
            part++;
        char *end = part + strlen(part);
        while (end > part && end[-1] == ' ')
            *--end = '\0';
        do_one(part);
    }
}

/* --- tests ------------------------------------------------------------------------------------ */

/* "repeat N LONG" and "each NAME WORDS" up to "end". */
static struct {
    size_t first;
    int left;
    char words[2000], name[32], *rest;
} loop;

static bool next_round(void)
{
    const char *word = loop.name[0] ? strtok_r(NULL, " ", &loop.rest) : NULL;

    if (word)
        keep_value(loop.name, word);
    return loop.name[0] ? word != NULL : loop.left-- > 0;
}

/* "N LONG": with ZKL_TEST_LONG=1 another number. */
static int times(const char *text)
{
    char *rest;
    long brief = strtol(text, &rest, 10);

    return (int)(*rest ? test_length(strtol(rest, NULL, 10), brief) : brief);
}

static void do_line_or_loop(const char *line)
{
    bool each = strncmp(line, "each ", 5) == 0;

    if (strcmp(line, "end") == 0) {
        file.now = next_round() ? loop.first : file.now;
        return;
    }
    if (!each && strncmp(line, "repeat ", 7) != 0) {
        do_steps(line);
        return;
    }
    loop.first = file.now;
    loop.left = each ? 0 : times(line + 7);
    snprintf(loop.words, sizeof loop.words, "%s", line);
    strtok_r(loop.words, " ", &loop.rest);
    snprintf(loop.name, sizeof loop.name, "%s", each ? strtok_r(NULL, " ", &loop.rest) : "");
    next_round();
}

static void run_lines(void)
{
    memset(threads, 0, sizeof threads);
    memset(kept, 0, sizeof kept);
    forget_handles();
    for (file.now++; file.now < file.count; file.now++) {
        if (strncmp(file.lines[file.now], "test ", 5) == 0)
            break;
        do_line_or_loop(file.lines[file.now]);
    }
    for (const struct named *t = threads; t->actor; t++) {
        if (t->begun.verb)
            fail_msg("%s: what came of %s?", t->name, t->begun.verb);
    }
}

static void run(void **state)
{
    struct world_case all = {run_lines};
    void *it = &all;

    file.now = (size_t)(uintptr_t)*state;
    world_run(&it);
}

static bool read_lines(FILE *from)
{
    char line[2000];

    for (int number = 1; fgets(line, sizeof line, from) && file.count < LINES_MAX; number++) {
        line[strcspn(line, "\n")] = '\0';
        char *before = file.count > 0 ? file.lines[file.count - 1] : "";
        if (before[0] && before[strlen(before) - 1] == '\\') { /* goes on */
            before[strlen(before) - 1] = '\0';
            check_num(
                asprintf(&file.lines[file.count - 1], "%s%s", before, line + strspn(line, " ")), >,
                0);
            free(before);
            continue;
        }
        if (line[0] == '#' || line[0] == '\0')
            continue;
        file.numbers[file.count] = number;
        file.lines[file.count++] = strdup(line);
    }
    return file.count > 0 && feof(from);
}

int main(int argc, char **argv)
{
    FILE *from = argc > 1 ? fopen(argv[1], "re") : NULL;

    if (!from || !read_lines(from)) {
        fprintf(stderr, "steps FILE [TEST]\n");
        return 1;
    }
    fclose(from);
    file.name = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
    for (size_t i = 0; i < file.count; i++) {
        if (strncmp(file.lines[i], "test ", 5) == 0)
            tests_add(file.lines[i] + 5, run, cluster_raw_open, cluster_world_end,
                      (void *)(uintptr_t)i);
    }
    return cluster_main(argc - 1, argv + 1);
}
