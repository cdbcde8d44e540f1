/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GRAIN 32
#define SMALL 128 /* sizes by grains, each with a list of what was freed; then by powers of two */
#define LARGE 12

bool arena_on;

struct block {
    size_t room; /* in bytes */
    struct block *next;
    char bytes[];
};

/* It lies at the arena's beginning, and is copied with it. */
struct arena {
    size_t used;
    struct block *freed[SMALL + LARGE];
};

static struct arena *arena;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *old);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);

void arena_reset(void)
{
    if (!arena)
        arena = mmap(NULL, ARENA_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED) {
        perror("explore: memory");
        exit(2);
    }
    memset(arena, 0, sizeof *arena);
    arena->used = (sizeof *arena + 15) & ~(size_t)15;
}

size_t arena_used(void)
{
    return arena->used;
}

void arena_save(void *to)
{
    memcpy(to, arena, arena->used);
}

void arena_load(const void *from)
{
    memcpy(arena, from, ((const struct arena *)from)->used);
}

static bool is_inside(const void *at)
{
    return arena && (const char *)at >= (const char *)arena &&
           (const char *)at < (const char *)arena + ARENA_MAX;
}

/* The list of a size, and how many bytes its blocks have. */
static size_t list_of(size_t size, size_t *room)
{
    size_t list = (size + GRAIN - 1) / GRAIN;
    *room = list * GRAIN;
    if (list < SMALL)
        return list;
    for (list = SMALL, *room = SMALL * GRAIN; *room < size; *room *= 2)
        list++;
    return list;
}

void *__wrap_malloc(size_t size)
{
    size_t room, list;
    if (!arena_on)
        return __real_malloc(size);
    list = list_of(size, &room);
    struct block *block = list < SMALL + LARGE ? arena->freed[list] : NULL;
    if (block) {
        arena->freed[list] = block->next;
        return block->bytes;
    }
    block = (struct block *)((char *)arena + arena->used);
    arena->used += sizeof *block + room;
    if (list >= SMALL + LARGE || arena->used > ARENA_MAX) {
        fputs("explore: the arena is too small\n", stderr);
        _Exit(2);
    }
    block->room = room;
    return block->bytes;
}

void __wrap_free(void *old)
{
    if (!is_inside(old)) {
        __real_free(old);
        return;
    }
    struct block *block = (struct block *)((char *)old - offsetof(struct block, bytes));
    size_t room, list = list_of(block->room, &room);
    block->next = arena->freed[list];
    arena->freed[list] = block;
}

void *__wrap_calloc(size_t count, size_t size)
{
    if (!arena_on)
        return __real_calloc(count, size);
    return memset(__wrap_malloc(count * size), 0, count * size);
}

void *__wrap_realloc(void *old, size_t size)
{
    if (!arena_on && !is_inside(old))
        return __real_realloc(old, size);
    void *now = __wrap_malloc(size);
    if (old) {
        struct block *block = (struct block *)((char *)old - offsetof(struct block, bytes));
        memcpy(now, old, block->room < size ? block->room : size);
        __wrap_free(old);
    }
    return now;
}

char *__wrap_strndup(const char *text, size_t length)
{
    if (!arena_on)
        return __real_strndup(text, length);
    length = strnlen(text, length);
    char *copy = memcpy(__wrap_malloc(length + 1), text, length);
    copy[length] = '\0';
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return arena_on ? __wrap_strndup(text, strlen(text)) : __real_strdup(text);
}
