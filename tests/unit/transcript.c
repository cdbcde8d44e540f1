/* SPDX-License-Identifier: Apache-2.0
 * Runs the tests of the core that are text: transcript FILE [NAME]: all tests of the file, or that one.
 *
 *     # A comment. Blanks, and how lines are broken, do not count in what is expected.
 *     test NAME                         begins with a connected core at 0 ms, and ends with nothing left
 *     lock /r; at 2; created 7          commands: functions of script.h without their "script_"
 *         [2] #1 QUEUEING -> LISTING:   indented: all that was recorded since the last such lines, or
 *             list  > list /r           since "forget"
 *     a line that ends so: \             goes on in the next one
 *     has > list /r                     this line is there; it stays recorded
 *     lacks #1 failed ...               no line begins so, or has it inside
 *     parse lock-7 -> lock 7            what the command finds; * is anything
 *     steps NAME $a                     what several tests say: "NAME 7"; common.steps has those of several files
 *     for $i in 1..3: lock /r           or several lines, up to "end"; for $path $number in /a 1 | /b 2
 */
#include <fnmatch.h>

#include "script.h"

#define LINES_MAX 2000
#define FILE_SIZE 65536
#define VARIABLES_MAX 6
#define COMMON "common.steps"
#define DEPTH_MAX 8

struct line {
    const char *file;
    int number;
    bool deeper;
    const char *text;
};

/* From a line on until before another. */
struct part {
    const char *name;
    size_t from, to;
    const char *variables;
};

struct variables {
    size_t count;
    char names[VARIABLES_MAX][20], values[VARIABLES_MAX][LINE_SIZE];
};

static const char *file; /* that is read */
static struct line lines[LINES_MAX];
static size_t line_count;
static struct part parts[200];
static size_t part_count;
static const struct line *at;                 /* what is being carried out */
static const struct line *callers[DEPTH_MAX]; /* whose steps that is one of */
static size_t called;
static size_t words_read; /* of the command */
static bool is_said;      /* what it expects was compared */

static void say_callers(void)
{
    while (called > 0) {
        const struct line *caller = callers[--called];
        print_error("%s:%d: in \"%s\"\n", caller->file, caller->number, caller->text);
    }
}

void fail_here(const char *format, ...)
{
    char text[TEXT_MAX + LINE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s:%d: %s\n", at->file, at->number, text);
    say_callers();
    _fail(at->file, at->number);
    abort();
}

/* --- words ---------------------------------------------------------------- */

const char *word(const struct command *c, size_t i)
{
    if (i >= c->count)
        fail_here("%s wants more words", c->words[0]);
    words_read = i < words_read ? words_read : i + 1;
    return c->words[i];
}

const char *rest(const struct command *c, size_t i)
{
    words_read = c->count;
    return i < c->count ? c->texts[i] : "";
}

int64_t number_in(const char *text)
{
    char *end;
    long long value = strtoll(text, &end, 0);
    if (end == text || (*end && *end != '+'))
        fail_here("%s is no number", text);
    return value + (*end ? number_in(end + 1) : 0);
}

int64_t number(const struct command *c, size_t i)
{
    return number_in(word(c, i));
}

size_t read_text(const char *from, char *out)
{
    char *to = out;
    for (from += strcmp(from, "\"\"") == 0 ? 2 : 0; *from;) {
        unsigned value;
        int length = 0;
        if (sscanf(from, "\\x%2x%n", &value, &length) == 1) {
            *to++ = (char)value;
            from += length;
        } else if (sscanf(from, "\\{%u%n", &value, &length) == 1) {
            memset(to, from[length], value);
            to += value;
            from += length + 2;
        } else if (*from == '\\') {
            to += sprintf(to, "%s",
                          from[1] == 'G'   ? "_c_" NIL_GUID "-"
                          : from[1] == 'n' ? "\n"
                                           : " ");
            from += 2;
        } else {
            *to++ = *from++;
        }
        assert_true(to < out + TEXT_MAX / 2);
    }
    *to = '\0';
    return (size_t)(to - out);
}

void says(const struct command *c, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    is_said = true;
    if (!c->expected)
        fail_here("-> %s", text);
    if (strcmp(text, c->expected) != 0 && fnmatch(c->expected, text, 0) != 0)
        fail_here("-> %s, not %s", text, c->expected);
}

static void run(size_t from, size_t to, const struct variables *v);

/* The names are "$a $b"; the last one's value is all that is left. */
static void bind(struct variables *v, const char *names, const char *values)
{
    char copy[LINE_SIZE], *save;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok_r(copy, " ", &save), *next; name; name = next) {
        next = strtok_r(NULL, " ", &save);
        values += strspn(values, " ");
        size_t length = next ? strcspn(values, " ") : strlen(values);
        while (!next && length > 0 && values[length - 1] == ' ')
            length--;
        if (v->count == VARIABLES_MAX || length == 0)
            fail_here("%s", length == 0 ? "a value is missing" : "too many names");
        snprintf(v->names[v->count], sizeof v->names[0], "%s", name);
        snprintf(v->values[v->count++], sizeof v->values[0], "%.*s", (int)length, values);
        values += length;
    }
}

static void substitute(const struct variables *v, const char *text, char *out, size_t size)
{
    size_t n = 0;
    while (*text && n + 1 < size) {
        size_t i = 0, length = 1 + strspn(text + 1, "abcdefghijklmnopqrstuvwxyz_");
        while (*text == '$' && i < v->count &&
               (strlen(v->names[i]) != length || strncmp(text, v->names[i], length) != 0))
            i++;
        if (*text != '$') {
            out[n++] = *text++;
            continue;
        }
        if (i == v->count)
            fail_here("what is %.*s?", (int)length, text);
        n += (size_t)snprintf(out + n, size - n, "%s", v->values[i]);
        text += length;
    }
    out[n < size ? n : size - 1] = '\0';
}

static void carry_out(char *text)
{
    char copy[LINE_SIZE], *save;
    struct command c = {0};
    text += strspn(text, " ");
    char *arrow = strncmp(text, "has ", 4) == 0 || strncmp(text, "lacks ", 6) == 0
                      ? NULL
                      : strstr(text, " ->");
    if (arrow) {
        *arrow = '\0';
        c.expected = arrow + 3 + strspn(arrow + 3, " ");
    }
    snprintf(copy, sizeof copy, "%s", text);
    for (char *w = strtok_r(copy, " ", &save); w && c.count < WORDS_MAX;
         w = strtok_r(NULL, " ", &save)) {
        c.words[c.count] = w;
        c.texts[c.count++] = text + (w - copy);
    }
    if (c.count == 0 || c.count == WORDS_MAX)
        fail_here("%zu words", c.count);
    words_read = 1;
    is_said = false;
    if (obey(&c)) {
        if (words_read < c.count || (c.expected && !is_said))
            fail_here("what is \"%s\" for?",
                      is_said || !c.expected ? c.texts[words_read] : c.expected);
        return;
    }
    for (size_t i = 0; i < part_count; i++) {
        struct variables v = {0};
        if (!parts[i].variables || strcmp(parts[i].name, c.words[0]) != 0)
            continue;
        if (arrow)
            *arrow = ' ';
        bind(&v, parts[i].variables, rest(&c, 1));
        assert_true(called < DEPTH_MAX);
        callers[called++] = at;
        run(parts[i].from, parts[i].to, &v);
        at = callers[--called];
        return;
    }
    fail_here("what is \"%s\"?", text);
}

static void carry_out_all(const struct variables *v, const char *line)
{
    char text[LINE_SIZE];
    substitute(v, line, text, sizeof text);
    for (char *one = text, *end; one; one = end ? end + 2 : NULL) {
        end = strstr(one, "; ");
        if (end)
            *end = '\0';
        carry_out(one);
    }
}

/* From an indented line on: its lines' text. Returns the first line after them. */
static size_t expect_lines(size_t i, size_t to, const struct variables *v)
{
    static char all[TEXT_MAX];
    size_t n = 0;
    at = &lines[i];
    for (; i < to && lines[i].deeper; i++) {
        substitute(v, lines[i].text, all + n, sizeof all - n - 1);
        n += strlen(all + n);
        all[n++] = '\n';
        all[n] = '\0';
    }
    expect(all);
    return i;
}

static void run_for_each(size_t from, size_t to, const struct variables *outer)
{
    char names[LINE_SIZE], items[LINE_SIZE], *save;
    int first, last, length = 0;
    const char *in = strstr(lines[from].text, " in ");
    if (!in)
        fail_here("for what?");
    snprintf(names, sizeof names, "%.*s", (int)(in - lines[from].text - 4), lines[from].text + 4);
    substitute(outer, in + 4, items, sizeof items);
    if (sscanf(items, "%d..%d%n", &first, &last, &length) == 2 && !items[length]) {
        for (int i = first; i <= last; i++) {
            struct variables v = *outer;
            char value[20];
            snprintf(value, sizeof value, "%d", i);
            bind(&v, names, value);
            run(from + 1, to, &v);
        }
        return;
    }
    for (char *item = strtok_r(items, "|", &save); item; item = strtok_r(NULL, "|", &save)) {
        struct variables v = *outer;
        bind(&v, names, item);
        run(from + 1, to, &v);
    }
}

/* Where the "end" of a "for" is. */
static size_t end_of(size_t from, size_t to)
{
    int depth = 0;
    for (size_t i = from; i < to; i++) {
        depth += strncmp(lines[i].text, "for ", 4) == 0;
        depth -= strcmp(lines[i].text, "end") == 0;
        if (depth == 0)
            return i;
    }
    fail_here("it has no end");
}

static void run(size_t from, size_t to, const struct variables *v)
{
    for (size_t i = from; i < to;) {
        at = &lines[i];
        if (at->deeper) {
            i = expect_lines(i, to, v);
        } else if (strncmp(at->text, "for ", 4) == 0) {
            size_t end = end_of(i, to);
            run_for_each(i, end, v);
            i = end + 1;
        } else {
            carry_out_all(v, at->text);
            i++;
        }
    }
}

/* --- the file ------------------------------------------------------------- */

static void carry_out_test(void **state)
{
    const struct part *part = *state;
    script_connected();
    run(part->from, part->to, &(struct variables){0});
    end_kept();
    script_free();
    at = NULL;
}

/* A failure inside script.c does not know the line of the transcript. */
static int say_where(void **state)
{
    (void)state;
    if (at)
        print_error("%s:%d: in \"%s\"\n", at->file, at->number, at->text);
    say_callers();
    at = NULL;
    return 0;
}

static void give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", file, what);
    exit(2);
}

static void begin_part(char *text)
{
    bool is_test = strncmp(text, "test ", 5) == 0;
    char *name = text + (is_test ? 5 : 6);
    char *variables = name + strcspn(name, " ");
    if (part_count > 0)
        parts[part_count - 1].to = line_count;
    if (part_count == sizeof parts / sizeof *parts)
        give_up("too many tests");
    if (*variables)
        *variables++ = '\0';
    parts[part_count++] =
        (struct part){.name = name, .from = line_count, .variables = is_test ? NULL : variables};
}

static void add_line(int number, bool deeper, const char *text)
{
    if (line_count == LINES_MAX)
        give_up("it is too long");
    lines[line_count++] = (struct line){file, number, deeper, text};
}

static void read_line(int number, char *text)
{
    char *begin = text + strspn(text, " ");
    if (strlen(text) >= LINE_SIZE)
        give_up("a line is too long");
    if (!*begin || strncmp(begin, "# ", 2) == 0)
        return;
    char *body = strncmp(begin, "for ", 4) == 0 ? strstr(begin, ": ") : NULL;
    if (body)
        *body = '\0';
    if (strncmp(text, "test ", 5) == 0 || strncmp(text, "steps ", 6) == 0)
        begin_part(begin);
    else
        add_line(number, begin > text, begin);
    if (body) {
        add_line(number, false, body + 2);
        add_line(number, false, "end");
    }
}

static void read_file(const char *name, char content[FILE_SIZE])
{
    FILE *in = fopen(file = name, "r");
    if (!in)
        give_up("it can't be read");
    if (fread(content, 1, FILE_SIZE, in) == FILE_SIZE)
        give_up("it is too long");
    fclose(in);
    char *rest = content;
    for (int number = 1, first; rest; number++) {
        char *text = strsep(&rest, "\n"), *end;
        for (first = number; rest && *text && *(end = strchr(text, '\0') - 1) == '\\'; number++) {
            char *more = strsep(&rest, "\n");
            more += strspn(more, " ");
            memmove(end, more, strlen(more) + 1);
        }
        read_line(first, text);
    }
    if (part_count > 0)
        parts[part_count - 1].to = line_count;
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[sizeof parts / sizeof *parts];
    static char common[ZKL_PATH_MAX], contents[2][FILE_SIZE];
    size_t count = 0;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "transcript FILE [NAME]\n");
        return 2;
    }
    const char *slash = strrchr(argv[1], '/');
    snprintf(common, sizeof common, "%.*s" COMMON, slash ? (int)(slash + 1 - argv[1]) : 0, argv[1]);
    read_file(common, contents[0]);
    read_file(argv[1], contents[1]);
    for (size_t i = 0; i < part_count; i++) {
        if (!parts[i].variables && (argc == 2 || fnmatch(argv[2], parts[i].name, 0) == 0))
            tests[count++] = (struct CMUnitTest){.name = parts[i].name,
                                                 .test_func = carry_out_test,
                                                 .teardown_func = say_where,
                                                 .initial_state = &parts[i]};
    }
    if (count == 0)
        give_up("it has no such test");
    return _cmocka_run_group_tests(file, tests, count, NULL, NULL);
}
