"""Steps one after the other. Each method adds steps behind a chain and gives the longer chain; the old one stays usable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from .graph import Graph, Place
from .nodes import Decision, Node, node
from .problems import BuildError
from .values import Value, Variable, either

Arm = Callable[["Chain"], "Chain"]
"""Adds the steps of one way and gives its end."""
Action = Literal["accept", "reject", "refine", "edit-accept", "ask"]


class Chain:
    def __init__(self, graph: Graph, ends: list[Place], *, begins: bool = False) -> None:
        self._graph = graph
        self._ends = ends
        """Where the next step is attached."""
        self._begins = begins
        """The next step starts with the run."""

    @property
    def is_ended(self) -> bool:
        return not self._ends and not self._begins

    def step(
        self,
        id: str,
        does: Node | str,
        *,
        inputs: Mapping[str, Value] | None = None,
        name: str | None = None,
        timeout_ms: int | None = None,
        retries: int | None = None,
        retry_delay_ms: int | None = None,
        primary: bool = False,
        on_failure: Arm | None = None,
    ) -> Chain:
        """A step of any type. `on_failure` is the way that a failure takes instead of failing the run."""
        does = does if isinstance(does, Node) else node(does)
        limits = {"timeout": timeout_ms, "maxRetries": retries, "retryDelayMs": retry_delay_ms}
        settings = {key: value for key, value in limits.items() if value is not None}
        more: dict[str, Any] = {"settings": settings} if settings else {}
        if primary:
            more["outputRole"] = "primary"
        place = self._add(id, does.type_id, dict(does.config), inputs=inputs, name=name, more=more)
        if on_failure is None:
            return self._at(place)
        failed = self._way(Place(place.node, place.column, rule="any_failed"), on_failure)
        if failed._ends and failed._ends[0].node == id:
            raise BuildError(f'on_failure of "{id}" adds no step')
        return self._join(id, [self._at(place), failed])

    def approve(
        self,
        id: str,
        title: str | None = None,
        *,
        description: str | None = None,
        artifact: Value = None,
        actions: Sequence[Action] | None = None,
        required_approvals: int | None = None,
        rejection_policy: Literal["single-veto", "majority"] | None = None,
        approvers: Sequence[str] | None = None,
        timeout_ms: int | None = None,
        on_reject: Arm | None = None,
        on_refine: Arm | None = None,
        name: str | None = None,
    ) -> Chain:
        """Waits for approval. Without `on_reject`, a rejection fails the run."""
        offered = [*actions] if actions is not None else ["accept", "reject", "refine"] if on_refine else None
        config = _given(
            title=title, description=description, actions=offered, requiredApprovals=required_approvals,
            rejectionPolicy=rejection_policy, approversList=[*approvers] if approvers is not None else None,
            timeoutMs=timeout_ms,
        )  # fmt: skip
        inputs = None if artifact is None else {"artifact": artifact}
        place = self._add(id, "core.approvalGate", config, inputs=inputs, name=name)
        ways = [self._at(place)]
        for port, arm in (("reject", on_reject), ("refine", on_refine)):
            if arm is not None:
                ways.append(self._way(Place(place.node, place.column, port), arm))
        return self._join(id, ways)

    def ask(
        self, id: str, questions: Mapping[str, str], *, timeout_ms: int | None = None, name: str | None = None
    ) -> Chain:
        """Waits for the answers to questions, by id. They are `output(id, "answers")`."""
        asked = [{"id": key, "question": text} for key, text in questions.items()]
        config = _given(questions=asked, timeoutMs=timeout_ms)
        return self._at(self._add(id, "core.clarificationGate", config, name=name))

    def wait_for_event(
        self,
        id: str,
        event_type: str,
        correlation: Mapping[str, Any],
        *,
        timeout_ms: int | None = None,
        name: str | None = None,
    ) -> Chain:
        """Waits for an event of another system with these values. It is `output(id, "event")`."""
        data = {"eventType": event_type, "correlation": dict(correlation)}
        config = _given(kind="external-event", data=data, timeoutMs=timeout_ms)
        return self._at(self._add(id, "core.interrupt", config, name=name))

    def branch(
        self, id: str, when: Value, *, then: Arm, otherwise: Arm | None = None, name: str | None = None
    ) -> Chain:
        """Takes one of two ways. What follows comes after whichever was taken."""
        place = self._add(id, "core.conditional", {"expression": str(when)}, name=name)
        ways = [
            self._way(Place(place.node, place.column, "true"), then),
            self._way(Place(place.node, place.column, "false"), otherwise or (lambda way: way)),
        ]
        return self._join(id, ways)

    def parallel(self, id: str, *ways: Arm, name: str | None = None) -> Chain:
        """Takes all ways at once. What follows comes after all of them."""
        place = self._add(id, "core.parallel", {}, name=name)
        return self._join(id, [self._way(place, way) for way in ways], rule=None)

    def loop(
        self,
        id: str,
        body: Arm,
        *,
        items: Value = None,
        count: int | None = None,
        while_: Value = None,
        into: str | Variable[Any] | None = None,
        max_iterations: int | None = None,
        name: str | None = None,
    ) -> Chain:
        """Repeats its body: for each of `items`, `count` times, or `while_` something is true."""
        if sum(given is not None for given in (items, count, while_)) != 1:
            raise BuildError(f'the loop "{id}" needs one of items, count and while_')
        config = _given(
            items=None if items is None else str(items), count=count, into=_name(into), maxIterations=max_iterations,
            **{"while": None if while_ is None else str(while_)},
        )  # fmt: skip
        place = self._add(id, "core.loop", config, name=name)
        for end in self._way(Place(place.node, place.column, "body"), body)._ends:
            if end.node == id:
                raise BuildError(f'the body of the loop "{id}" adds no step')
            self._graph.add_edge(end, id)
        return Chain(self._graph, [Place(place.node, place.column, "done")])

    def map(
        self,
        id: str,
        config: Mapping[str, Any] | None = None,
        *,
        items: Value = None,
        tool: str | None = None,
        arguments: Value = None,
        agent: str | None = None,
        task: Value = None,
        workflow: str | None = None,
        workflow_inputs: Value = None,
        output: str | None = None,
        item_name: str | None = None,
        max_concurrency: int | None = None,
        on_item_error: Literal["fail", "collect"] | None = None,
        item_timeout_ms: int | None = None,
        into: str | Variable[Any] | None = None,
        inputs: Mapping[str, Value] | None = None,
        name: str | None = None,
    ) -> Chain:
        """Calls a tool, an agent or a workflow for each item of a list, several at a time. Expressions of `arguments`, `task`
        and `workflow_inputs` know the item as `item`, and as `item_name`; without them each item is given as it is. The
        output `results` has the results in order. `config` has settings as the host reads them."""
        if config is None and sum(given is not None for given in (tool, agent, workflow)) != 1:
            raise BuildError(f'the map "{id}" needs one of tool, agent and workflow')
        given: dict[str, Any] = dict(config or {})
        expressions = {"items": items, "arguments": arguments, "task": task, "inputs": workflow_inputs}
        for key, value in expressions.items():
            if value is not None:
                given.update(either(key, f"{key}Expression", value))
        more = _given(
            tool=tool, agent=agent, workflow=workflow, output=output, maxConcurrency=max_concurrency,
            onItemError=on_item_error, itemTimeoutMs=item_timeout_ms, into=_name(into), **{"as": item_name},
        )  # fmt: skip
        return self.step(id, node("vendor.baton.map", {**given, **more}), inputs=inputs, name=name)

    def supervise(
        self,
        id: str,
        *,
        rules: Sequence[Mapping[str, Any]] | None = None,
        otherwise: Decision | None = None,
        agent_id: str | None = None,
        workers: Sequence[Mapping[str, str]] | None = None,
        inputs: Mapping[str, Value] | None = None,
        dispatch: str = "hand-over",
        input_mapping: Mapping[str, str] | None = None,
        output_mapping: Mapping[str, str] | None = None,
        iteration_cap: int | None = None,
        fan_out: Literal["sequential", "parallel", "reject"] | None = None,
        max_concurrency: int | None = None,
        join: Mapping[str, Any] | None = None,
        on_child_failure: Literal["collect", "absorb", "fail-fast"] | None = None,
        output_attestation: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Chain:
        """A supervisor, by rules or by an agent, and the node that carries out its decisions. Nothing follows it: a
        decision to terminate completes the run."""
        if (rules is None) == (agent_id is None):
            raise BuildError(f'the supervisor "{id}" needs either rules or agent_id')
        config = _given(
            rules=[dict(one) for one in rules] if rules is not None else None, otherwise=otherwise, agentId=agent_id,
            workers=[dict(one) for one in workers] if workers is not None else None,
        )  # fmt: skip
        lead = self._add(id, "core.orchestrator.supervisor", {**config, **(settings or {})}, inputs=inputs)
        hand_over = _given(
            inputMapping=_map(input_mapping), outputMapping=_map(output_mapping), iterationCap=iteration_cap,
            fanOutPolicy=fan_out, maxConcurrency=max_concurrency, joinPolicy=_map(join),
            onChildFailure=on_child_failure, outputAttestation=_map(output_attestation),
        )  # fmt: skip
        place = self._graph.add_node(dispatch, "core.dispatch", hand_over, [lead])
        self._graph.add_edge(place, id)
        return Chain(self._graph, [])

    def fail(self, id: str, code: str, message: str) -> Chain:
        """Fails the run. Nothing follows."""
        self._add(id, "core.fail", {"code": code, "message": message})
        return Chain(self._graph, [])

    def end(self, id: str = "end", outputs: Mapping[str, Value] | None = None) -> Chain:
        """Ends this way. The outputs are the run's. Nothing follows."""
        self._add(id, "core.end", {}, inputs=outputs)
        return Chain(self._graph, [])

    def _add(self, id: str, type_id: str, config: dict[str, Any], **more: Any) -> Place:
        if self.is_ended:
            raise BuildError(f'nothing can follow here, but the step "{id}" does')
        return self._graph.add_node(id, type_id, config, self._ends, **more)

    def _at(self, place: Place) -> Chain:
        return Chain(self._graph, [place])

    def _way(self, place: Place, arm: Arm) -> Chain:
        way = arm(self._at(place))
        if not isinstance(way, Chain) or way._graph is not self._graph:
            raise BuildError(f'a way behind "{place.node}" must give back the chain it was given, with its steps added')
        return way

    def _join(self, id: str, ways: list[Chain], rule: str | None = "any_success") -> Chain:
        """What follows all ways that have not ended: with several of them behind a node that joins them."""
        open_ends = [end for way in ways for end in way._ends]
        if len(open_ends) < 2:
            return Chain(self._graph, open_ends)
        joined = [Place(end.node, end.column, end.port, rule) for end in open_ends]
        return self._at(self._graph.add_node(f"{id}-join", "core.merge", {}, joined))


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _map(items: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if items is None else dict(items)


def _name(variable: str | Variable[Any] | None) -> str | None:
    return variable.name if isinstance(variable, Variable) else variable
