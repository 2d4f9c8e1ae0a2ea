"""Keeps hosts, quotas and parents exact across replicas, each of which judges by its own watch cache.

A cache lacks what another replica is about to write. So before a write of a host or of quotas is sent:

1. It is judged by the tree and by the *claims*, the writes of all replicas that are under way (`claim_register.py`,
   `judge.py`, `known_claims.py`). Each of them may be stored or not, and what leaves less to others counts
   (`possible_tree.py`). A write that the tree forbids gets the usual error. A write that only a claim forbids waits if
   the claim is one of this replica, and gets 429 otherwise.
2. Its own claim is recorded in a Lease that all replicas share, provided that the Lease has not changed since it was
   read. Claims that wait at the same time share this write. If another replica was faster, its claims are read and
   the write is judged again (`lease_writer.py`, `claim_lease.py`, `claim_codec.py`).
3. The HelmRelease is written, and the claim ends with the result. Others stop counting it when they see the Tenant, or
   when it has left the Lease: with the next claim, or after a second if the Tenant does not show that the claim is
   over. The Lease then has the resourceVersion of the write, and no replica judges before its cache has that. So of
   two writes that exclude each other, the second is judged when the first is a claim or part of the tree.
4. If there is no result, because the cluster did not answer or the replica was killed, others count the claim for
   `EXPIRY_SECONDS` from when they first saw it (`claim.py`). By then the write is stored, or it never will be.

A create without a host and quotas is not recorded, so that it costs nothing. But it inherits a host, which another
replica may be giving to somebody else. Therefore each create, and each change of a host, is judged once more at its own
event, where the tree has exactly the writes that were stored before it (`own_events.py`). Of two writes that exclude
each other, the later finds the earlier, and is withdrawn (`withdrawal.py`).

A replica that is killed, or that gets no answer, may not judge a write that it has stored. Such a write has a mark, an
annotation that is written with it. Every replica looks at each mark. One that is still there after some seconds, on a
Tenant that another one excludes, is judged by the history of the cluster, in which every replica finds the same tree as
the one that was killed would have found (`unconfirmed_writes.py`, `write_history.py`). Until then no controller acts on
the Tenant; the first status that they write removes the mark.

A deletion writes a mark on its Tenant first (`deletion_marks.py`, `tenant_deleter.py`). A child that was stored before
the mark is in the tree at the event of the mark, and the deletion is refused. One that is stored after it finds the
mark at its own event, and is withdrawn. Within one replica, creations in a Tenant and its deletion wait for each other
(`parent_locks.py`).

`claiming_backend.py` does all this around the Backend that writes HelmReleases.
"""
