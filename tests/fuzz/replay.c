/* SPDX-License-Identifier: Apache-2.0
 * A fuzz target without a fuzzer: each file, or each file of a folder, is one input. Whatever is wrong
 * ends the process; the last file named is the one. */
#include <dirent.h>
#include <sys/stat.h>

#include "fuzz.h"

static size_t files;

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat about;
    if (!file || fstat(fileno(file), &about) != 0) {
        perror(path);
        exit(1);
    }
    /* Of exactly this size: a sanitizer then sees who reads behind it. */
    size_t size = (size_t)about.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    must(data && fread(data, 1, size, file) == size);
    fclose(file);
    printf("%s\n", path);
    fflush(stdout);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    files++;
}

static void replay(const char *path)
{
    struct stat about;
    struct dirent **list;
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        replay_file(path);
        return;
    }
    int count = scandir(path, &list, NULL, alphasort);
    must(count >= 0);
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, list[i]->d_name);
        if (list[i]->d_name[0] != '.')
            replay_file(name);
        free(list[i]);
    }
    free(list);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%zu inputs\n", files);
    return files > 0 ? 0 : 1;
}
