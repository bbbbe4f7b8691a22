"""The management driver `cnf-nodeport`: CNFs whose NodePort Services are reached by the cluster's load balancer."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from slipway.cluster.spec import StepArguments
from slipway.load_balancer.cnf_parameters import cnf_balancer_parameters
from slipway.load_balancer.cnf_steps import CheckBalancer, CnfSteps, Expose, Withdraw
from slipway.load_balancer.services import NotBalanced, declared
from slipway.load_balancer.steps import BalancerSteps
from slipway.model.action import Action
from slipway.model.errors import RequestError, Unprocessable
from slipway.model.hooks import Edges, HookPlan
from slipway.model.operation import OperationType
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.situation import PlanningSituation, Situation

CHECK, EXPOSE, WITHDRAW = "check the load balancer", "expose Services", "withdraw Services"
# After these the Services may have other ports, or be others.
FOLLOWED = ("instantiate", "scale", "heal", "change_current_package")
CHECKED = ("instantiate", "change_current_package")


class CnfNodePortDriver:
    """It brings the actions of balancers themselves, too, which plans of clusters name."""

    name = "cnf-nodeport"
    aliases = ("mgmt-drivers-cnf-nodeport", "mgmt_drivers_cnf_nodeport")

    def __init__(self, cnf: CnfSteps, balancers: BalancerSteps) -> None:
        self.actions: tuple[Action[Any], ...] = (*balancers.actions, *cnf.actions)

    def check(self, situation: Situation) -> None:
        if situation.operation is not OperationType.TERMINATE:  # which is never refused for its parameters
            cnf_balancer_parameters(situation)

    def plan(self, operation: str, edges: Edges, situation: PlanningSituation) -> HookPlan:
        """Front-ends go before what they lead to goes, and come after it."""
        if operation == "terminate":
            given: dict[str, Any] = {}
            with contextlib.suppress(RequestError):  # a termination is never refused: then the cluster's login is used
                given = _given(situation)
            return HookPlan(start=Plan.of(_step(WITHDRAW, Withdraw(**given), Verb.REMOVE)))
        if operation not in FOLLOWED or "end" not in edges:
            return HookPlan()
        target = situation.change.after
        try:
            ports = declared(target) if target is not None and operation in CHECKED else ()
        except NotBalanced as error:
            raise Unprocessable(f"{error}; expose its TCP ports in a Service of their own.") from None
        given, first = _given(situation), operation == "instantiate"
        checked = _step(CHECK, CheckBalancer(**given, front_ends=ports))
        exposed = _step(EXPOSE, Expose(**given, first=first), Verb.MAKE if first else Verb.CHANGE)
        return HookPlan(start=Plan.of(checked) if operation in CHECKED else Plan(), end=Plan.of(exposed))


def _given(situation: Situation) -> dict[str, Any]:
    parameters = cnf_balancer_parameters(situation)
    access = parameters.external_lb_param
    return {
        "ssh_ip": access.ssh_ip if access else None,
        "login": access.login if access else None,
        "script": parameters.script_path,
    }


def _step(name: str, args: StepArguments, verb: Verb | None = None) -> Step:
    action = {CheckBalancer: "cnf_nodeport.check", Expose: "cnf_nodeport.expose", Withdraw: "cnf_nodeport.withdraw"}
    effects = (Effect(verb, "front-ends", "of the VNF"),) if verb else ()
    plain = msgspec.json.decode(msgspec.json.encode(args))
    return Step(id=name, action=action[type(args)], args=plain, effects=effects)
