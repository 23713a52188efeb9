"""What the host is and can do."""

from __future__ import annotations

from typing import Any

from . import api
from .request import Steps, get, send
from .surface import Group, M, call


class Host(Group[M]):
    @call
    def discover(self) -> Steps[dict[str, Any]]:
        """What this host can do, for this key."""
        return send(get(".well-known", "openwop"), self._options)

    @call
    def system(self) -> Steps[api.System]:
        """Version, limits and counts."""
        return send(get("v1", "host", "baton", "system"), self._options)

    @call
    def ready(self) -> Steps[api.Health]:
        """Raises Unavailable while the host starts or shuts down for longer than the client tries."""
        return send(get("readiness"), self._options)
