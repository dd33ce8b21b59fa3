"""Prints tool lists as JSON whose schemas pydantic makes: one list for each of its two modes.

pydantic itself accepts and refuses the arguments. Nothing here needs a network.
"""

import json
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal, Optional, Union
from uuid import UUID

import pydantic
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError


class Currency(str, Enum):
    EUR = "EUR"
    CHF = "CHF"


class Amount(BaseModel):
    """An amount of money."""

    value: Decimal = Field(gt=0, max_digits=12, decimal_places=2)
    currency: Currency = Currency.EUR


class Transfer(BaseModel):
    """Moves money between two accounts."""

    model_config = ConfigDict(extra="forbid")

    source: Annotated[str, Field(pattern=r"^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$", description="The account to debit.")]
    target: Annotated[str, Field(pattern=r"^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$")]
    amount: Amount
    note: Optional[str] = Field(default=None, max_length=140)


class Card(BaseModel):
    kind: Literal["card"]
    number: Annotated[str, Field(min_length=12, max_length=19)]


class Invoice(BaseModel):
    kind: Literal["invoice"]
    due: date


class Order(BaseModel):
    """Pays an order in one of two ways, which `kind` tells apart."""

    id: UUID
    payment: Union[Card, Invoice] = Field(discriminator="kind")
    items: Annotated[list[tuple[str, Annotated[int, Field(ge=1, le=99)]]], Field(min_length=1, max_length=3)]
    labels: dict[Annotated[str, Field(pattern="^[a-z]+$")], int] = {}


class Node(BaseModel):
    name: str
    children: list["Node"] = Field(default=[], max_length=2)


class Tree(BaseModel):
    """Draws a tree, whose schema refers to itself."""

    root: Node


# One row for each model: arguments of which pydantic accepts some and refuses others. Its own answers decide which.
MODELS = {
    Transfer: [
        {"source": "CH9300762011623852957", "target": "DE89370400440532013000", "amount": {"value": "10.50"}},
        {"source": "CH9300762011623852957", "target": "DE89370400440532013000", "amount": {"value": 3}, "note": None},
        {"source": "CH93", "target": "DE89370400440532013000", "amount": {"value": "10.50"}},
        {"source": "CH9300762011623852957", "target": "DE89370400440532013000", "amount": {"value": 0}},
        {"source": "CH9300762011623852957", "target": "DE89370400440532013000", "amount": {"value": 1}, "more": 1},
    ],
    Order: [
        {
            "id": "0191f3d0-8a5c-7c1e-9d2b-6b8c3c0d4e5f",
            "payment": {"kind": "card", "number": "4111111111111111"},
            "items": [["pen", 2]],
            "labels": {"gift": 1},
        },
        {
            "id": "0191f3d0-8a5c-7c1e-9d2b-6b8c3c0d4e5f",
            "payment": {"kind": "invoice", "due": "2026-12-31"},
            "items": [["pen", 2], ["pad", 1]],
        },
        {
            "id": "0191f3d0-8a5c-7c1e-9d2b-6b8c3c0d4e5f",
            "payment": {"kind": "card", "due": "2026-12-31"},
            "items": [["pen", 2]],
        },
        {
            "id": "0191f3d0-8a5c-7c1e-9d2b-6b8c3c0d4e5f",
            "payment": {"kind": "invoice", "due": "2026-12-31"},
            "items": [["pen", 200]],
        },
        {"id": "0191f3d0-8a5c-7c1e-9d2b-6b8c3c0d4e5f", "payment": {"kind": "invoice", "due": "2026-12-31"}, "items": []},
    ],
    Tree: [
        {"root": {"name": "root", "children": [{"name": "leaf"}, {"name": "b", "children": [{"name": "leaf"}]}]}},
        {"root": {"name": "root", "children": [{"name": 1}]}},
        {"root": {"name": "root", "children": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}},
    ],
}


def accepts(model, arguments):
    try:
        TypeAdapter(model).validate_json(json.dumps(arguments), strict=False)
        return True
    except ValidationError:
        return False


def tool(model, mode, cases):
    return {
        "name": f"pydantic_{mode}_{model.__name__.lower()}",
        "description": model.__doc__,
        "parameters": json.dumps(model.model_json_schema(mode=mode)),
        "accepted": [arguments for arguments in cases if accepts(model, arguments)],
        "refused": [arguments for arguments in cases if not accepts(model, arguments)],
    }


# In the mode `serialization` members with a default are required, and a decimal is a text. So it has only the models whose
# arguments mean the same in both.
LISTS = [
    ("validation", MODELS),
    ("serialization", {Tree: [{"root": {"name": "r", "children": []}}, {"root": {"name": 1, "children": []}}]}),
]

print(
    json.dumps(
        [
            {
                "from": f"pydantic {pydantic.VERSION}, {mode}",
                "tools": [tool(model, mode, cases) for model, cases in models.items()],
            }
            for mode, models in LISTS
        ]
    )
)
