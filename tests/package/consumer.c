/* A program of somebody else, built with the installed pkg-config file alone. Compiles as C and as C++. */
#include <stdio.h>
#include <string.h>
#include <zklock/version.h>
#include <zklock/zklock.h>

int main(void)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *client = NULL;
    int number = 0;
    const char *text = zkl_version(&number);

    printf("zklock %s (%d)\n", text, number);
    if (number != ZKL_VERSION_NUMBER || strcmp(text, EXPECTED_VERSION) != 0) {
        printf("expected %s (%d)\n", EXPECTED_VERSION, ZKL_VERSION_NUMBER);
        return 1;
    }
    if (zkl_client_open(&client, &options) != ZKL_EINVAL) {
        printf("a client was opened without servers\n");
        return 1;
    }
    return 0;
}
