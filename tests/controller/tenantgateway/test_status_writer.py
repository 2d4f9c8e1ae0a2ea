"""Events about changes of conditions and about rejected routes."""

from __future__ import annotations

from apiserver.meta.resource import Object
from controller.tenantgateway.status_writer import events_for_tenantgateway_conditions
from tests.controller.tenantgateway.gateway_world import World, api_error, run_in_world, run_until_settled


def test_progress_while_waiting_yields_no_event() -> None:
    def ready(reason: str, message: str, status: str = "False") -> list[Object]:
        return [{"type": "Ready", "status": status, "reason": reason, "message": message}]

    waiting, refused = ready("ListenersNotReady", "a, b"), ready("ReconcileError", "one")
    assert list(events_for_tenantgateway_conditions(waiting, ready("ListenersNotReady", "a"))) == []
    assert list(events_for_tenantgateway_conditions(refused, refused)) == []
    [other] = events_for_tenantgateway_conditions(refused, ready("ReconcileError", "two"))
    assert (other.type, other.note) == ("Warning", "two")
    [done] = events_for_tenantgateway_conditions(waiting, ready("Reconciled", "as wanted", "True"))
    assert (done.type, done.reason) == ("Normal", "Reconciled")
    lost = [{"type": "AttachedElsewhere", "status": "True", "reason": "OtherGateway", "message": "x"}]
    assert [each.type for each in events_for_tenantgateway_conditions(None, lost)] == ["Normal"]


def test_errors_and_conflicts_are_recorded_as_events() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("cozy-a", "winner", "one.foo.example.com")
        world.route("tenant-foo", "loser", "one.foo.example.com", port=443)
        world.failing_calls["create", "issuers", "cozystack-gateway"] = api_error()
        await run_until_settled(world)
        assert set(world.recorder.events) == {
            ("TenantGateway", "cozystack", "Warning", "ReconcileError"),
            ("HTTPRoute", "loser", "Warning", "HostnameConflict"),
        }

    run_in_world(main)
