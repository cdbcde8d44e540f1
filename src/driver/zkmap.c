/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates ZooKeeper's numbers into ours: codes of answers, types and states of events. They are
 * variables in libzookeeper, so no switch can name them. Unknown ones become OTHER, which does not
 * say whether a request was carried out. Constant tables, no lock. handle.c, call.c and renew.c use
 * it. */
#include "zkmap.h"

#ifndef THREADED
#define THREADED
#endif
#include <zookeeper/zookeeper.h>

#include "older.h"

/* The server's word for a session that has just ended; the C client's header has no name for it. */
#define UNKNOWN_SESSION (-12)
/* Likewise. */
#define REQUEST_TIMEOUT (-122)
#define QUOTA_EXCEEDED (-125)

static bool is_link(int rc)
{
    switch (rc) {
    /* The request may or may not have been carried out. ZINVALIDSTATE: the handle has just expired
     * and its event is on the way. */
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
    case ZAUTHFAILED:
    case ZSESSIONMOVED:
    case UNKNOWN_SESSION:
    /* How libzookeeper ends what is due on a connection that it gives up for an answer out of
     * order, for want of a descriptor, or for a TLS handshake that fails. */
    case ZRUNTIMEINCONSISTENCY:
    case ZSYSTEMERROR:
    case ZSSLCONNECTIONERROR:
    /* The server was too busy to carry it out, or something went wrong as it did: asked again. */
    case ZTHROTTLEDOP:
    case REQUEST_TIMEOUT:
    case ZDATAINCONSISTENCY:
    case ZMARSHALLINGERROR:
        return true;
    default:
        return false;
    }
}

enum zkl_answer zkl_map_rc(int rc)
{
    switch (rc) {
    case ZOK:
        return ZKL_ANSWER_OK;
    case ZNONODE:
        return ZKL_ANSWER_NONODE;
    case ZNODEEXISTS:
        return ZKL_ANSWER_EXISTS;
    case ZNOTEMPTY:
    case ZBADVERSION: /* of a path that was being renewed: another client was there, too */
        return ZKL_ANSWER_NOTEMPTY;
    case ZNOAUTH:
    case ZINVALIDACL: /* creator-only without an accepted credential */
        return ZKL_ANSWER_NOAUTH;
    case ZBADARGUMENTS:
    case ZNOCHILDRENFOREPHEMERALS:
        return ZKL_ANSWER_BADPATH;
    case QUOTA_EXCEEDED:
        return ZKL_ANSWER_QUOTA;
    case ZNOTREADONLY:
        return ZKL_ANSWER_READONLY;
    case ZSESSIONCLOSEDREQUIRESASLAUTH:
        return ZKL_ANSWER_AUTH;
    /* The others are no server's answer to anything that we ask. */
    case ZUNIMPLEMENTED:
    case ZEPHEMERALONLOCALSESSION:
    case ZNEWCONFIGNOQUORUM:
    case ZRECONFIGINPROGRESS:
    case ZRECONFIGDISABLED:
    case ZAPIERROR:
    case ZINVALIDCALLBACK:
    case ZNOTHING:
        return ZKL_ANSWER_UNIMPLEMENTED;
    case ZNOWATCHER:
        return ZKL_ANSWER_NOWATCHER;
    default:
        return is_link(rc) ? ZKL_ANSWER_LINK : ZKL_ANSWER_OTHER;
    }
}

bool zkl_map_is_word(int rc)
{
    switch (rc) {
    case ZOK:
    case ZNONODE:
    case ZNODEEXISTS:
    case ZNOTEMPTY:
    case ZBADVERSION:
    case ZNOAUTH:
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
        return true;
    default:
        return false;
    }
}

/* RUNTIMEINCONSISTENCY: the server's own end of the link came behind an answer out of order. */
bool zkl_map_is_hang_up(int rc)
{
    return rc == ZCONNECTIONLOSS || rc == ZRUNTIMEINCONSISTENCY;
}

enum zkl_answer zkl_map_refusal(int rc)
{
    /* What zoo_a* returns when malloc fails. */
    return rc == ZSYSTEMERROR || rc == ZMARSHALLINGERROR ? ZKL_ANSWER_NOMEM : zkl_map_rc(rc);
}

enum zkl_link_event zkl_map_state(int state)
{
    if (state == ZOO_CONNECTED_STATE)
        return ZKL_LINK_UP;
    if (state == ZOO_EXPIRED_SESSION_STATE)
        return ZKL_LINK_EXPIRED;
    if (state == ZOO_AUTH_FAILED_STATE)
        return ZKL_LINK_AUTH_FAILED;
    return ZKL_LINK_DOWN;
}
