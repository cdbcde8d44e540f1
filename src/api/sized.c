/* SPDX-License-Identifier: Apache-2.0
 *
 * A program and the library may have been built with different headers. New fields are only added
 * at the end of a struct, and 0 keeps the earlier behavior. So the shorter of the two sizes is what
 * both know, and the rest must be 0. This file owns nothing and takes no lock. Every call of the
 * API that receives a struct uses it.
 */
#include "sized.h"

#include <string.h>

#define SIZE_LIMIT 4096

static size_t size_of(const void *sized)
{
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

bool zkl_sized_is_good(const void *theirs, size_t least)
{
    size_t size = size_of(theirs);
    return size >= least && size <= SIZE_LIMIT && size % _Alignof(size_t) == 0;
}

bool zkl_sized_is_known(const void *theirs, size_t least, size_t our_size)
{
    if (!zkl_sized_is_good(theirs, least))
        return false;
    for (size_t i = our_size; i < size_of(theirs); i++) {
        if (((const char *)theirs)[i] != 0)
            return false;
    }
    return true;
}

void zkl_sized_read(void *ours, size_t our_size, const void *theirs)
{
    memset(ours, 0, our_size);
    memcpy(ours, theirs, smaller(size_of(theirs), our_size));
    memcpy(ours, &our_size, sizeof our_size);
}

void zkl_sized_write(void *theirs, const void *ours, size_t our_size)
{
    size_t size = size_of(theirs);
    memcpy(theirs, ours, smaller(size, our_size));
    if (size > our_size)
        memset((char *)theirs + our_size, 0, size - our_size);
    memcpy(theirs, &size, sizeof size);
}
