"""What a stream promises, in words."""

from __future__ import annotations

from millrace.kernel.progress.time_contract import TimeContract
from millrace.plan.explain.intervals import interval_text


def contract_text(contract: TimeContract) -> str:
    """What is known of a stream's time: its kind, its order, how it is spoken for, and how far ahead rows may be."""
    words = f"{contract.kind} time" + (f" {contract.column}" if contract.column else "")
    if contract.kind == "external":
        words += f", {_order_text(contract)}"
    guard = contract.max_future_skew
    return f"{words}, {_ets_text(contract)}" + (f", {interval_text(guard)} ahead at most" if guard is not None else "")


def _order_text(contract: TimeContract) -> str:
    if contract.punctuation is not None:
        per = f" for each {', '.join(contract.per)}" if contract.per else ""
        order = f"punctuated by {contract.punctuation}{per}"
    elif contract.rows is not None:
        order = f"disorder {contract.rows} {'ROW' if contract.rows == 1 else 'ROWS'}"
    else:
        order = f"disorder {interval_text(contract.disorder)}" if contract.disorder else "ordered"
    order += f" in each partition of {', '.join(contract.partitions)}" if contract.partitions else ""
    also = [
        f"{column} {f'disorder {interval_text(length)}' if length else 'ordered'}" for column, length in contract.also
    ]
    return order + "".join(f", also {each}" for each in also)


def _ets_text(contract: TimeContract) -> str:
    kind = "every" if contract.ets == "periodic" else contract.ets.replace("_", " ")
    lengths = (("", contract.every), ("skew ", contract.skew), ("lull ", contract.lull))
    return " ".join(["ETS", kind, *(f"{word}{interval_text(each)}" for word, each in lengths if each is not None)])
