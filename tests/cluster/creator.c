/* SPDX-License-Identifier: Apache-2.0 */
#include "creator.h"

/* As the server writes it: the base64 of the SHA-1 of the credential, which it makes itself. */
#define CREATOR_ACL_START "31:digest:alice:"

struct zkl_client_options creator_options(void)
{
    struct zkl_client_options options = cluster_options();

    options.auth_scheme = "digest";
    options.acl = ZKL_ACL_CREATOR;
    return options;
}

struct zkl_client *creator_client(const char *credential)
{
    struct zkl_client_options options = creator_options();

    options.auth_credential = credential;
    return world_client_with(&options);
}

bool check_creators_if_there(const char *path)
{
    char acl[256];
    int rc = wire_get_acl(raw, path, acl, sizeof acl);

    if (rc == WIRE_NONODE)
        return false;
    check_ok(rc);
    if (strncmp(acl, CREATOR_ACL_START, strlen(CREATOR_ACL_START)) != 0 || strchr(acl, ','))
        fail_msg("%s has the ACL %s", path, acl);
    return true;
}

void check_creators(const char *path)
{
    check_true(check_creators_if_there(path));
}
