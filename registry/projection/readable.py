"""Says before a read what is wrong with the cluster that the objects come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.request.context import RequestContext
from apiserver.storage.watch_cache import WatchCache
from registry.application.release_backend import is_not_served, stale_warning
from registry.projection.feed import ProjectionFeed
from registry.projection.storage import CheckReadable


class ClusterFeed(Protocol):
    """`cluster_error` is the reason why the cluster cannot be watched, or None."""

    cluster_error: StatusError | None


def warns_if_stale(feed: ClusterFeed, cache: WatchCache) -> CheckReadable:
    """The check of what is always served once it has been read."""
    missing = _not_served(cache.resource.plural)

    def check(context: RequestContext) -> None:
        if feed.cluster_error is not None:
            context.warn(stale_warning(feed.cluster_error, missing, has_read=cache.ready))

    return check


def readable(
    feed: ProjectionFeed, missing: Callable[[], str] = lambda: "", *, not_served: str = "", if_refused: str = ""
) -> CheckReadable:
    """The check of a projection. `missing` names what has to be installed, if anything; `not_served` what has to be if
    the watch ends because the cluster does not serve the kind; `if_refused` where the server gets the right to read it.

    A kind that is not installed, or that the server may not read, is an empty list with a warning: after an error,
    Kubernetes would delete no namespace any more. While nothing has been read and the cluster cannot be reached, it
    raises ServiceUnavailable at once, rather than let the client wait. A later outage gives a warning, as the cache
    still serves.
    """
    plural = feed.cache.resource.plural
    not_served = not_served or _not_served(plural)
    refused = f"the server may not read what {plural} are made from"

    def check(context: RequestContext) -> None:
        error = feed.cluster_error
        if why := missing():
            context.warn(why)
        elif feed.is_refused:
            context.warn(f"{refused}: {if_refused}" if if_refused else refused)
        elif error is not None and not feed.cache.ready:
            why = not_served if is_not_served(error) else f"what {plural} are made from cannot be read at present"
            raise errors.ServiceUnavailable(why, retry_after=1)
        elif error is not None:
            context.warn(stale_warning(error, not_served, has_read=True))

    return check


def _not_served(plural: str) -> str:
    return f"kube-apiserver does not serve what {plural} are made from"
