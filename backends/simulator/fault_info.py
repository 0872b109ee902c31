"""What the fault tables say about one kind of fault."""

from __future__ import annotations

from attrs import frozen


@frozen
class FaultInfo:
    """One kind of fault. `rule` names the public page or the source the rule comes from."""

    title: str
    explanation: str
    rule: str
