"""`factbook import aws`: accounts of an organization of AWS."""

from typing import Annotated, Any

import typer

from factbook.cli.imports.report import Chosen, Plan, import_chosen
from factbook.cli.local import DatabaseUrl
from factbook.cli.output import Json

Role = Annotated[
    str,
    typer.Option(metavar="ARN", help="Role of the management account, or of a delegated one."),
]
ExternalId = Annotated[str, typer.Option(metavar="TEXT", help="What the role asks for.")]
OwnerTags = Annotated[
    list[str] | None,
    typer.Option("--owner-tag", metavar="KEY", help="Tag that names the owner; several times."),
]
Instance = Annotated[
    str, typer.Option(metavar="NAME", help="Name of the import, which is part of its sets.")
]


def aws(
    *,
    role: Role = "",
    external_id: ExternalId = "",
    closed: Annotated[
        bool, typer.Option("--closed", help="Import suspended and closed accounts.")
    ] = False,
    units: Annotated[
        bool, typer.Option("--units", help="Import organizational units, as systems.")
    ] = False,
    owner_tags: OwnerTags = None,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace of the resources and systems.")
    ] = "default",
    plan: Plan = False,
    instance: Instance = "default",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the accounts of an organization of AWS, as resources.

    The keys are those of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or of the role that a service
    account of Kubernetes has. With --role they only assume that one.

    \b
    Examples:
      factbook import aws --plan
      factbook import aws --role arn:aws:iam::111122223333:role/factbook --units
    """
    chosen: dict[str, Any] = {
        "role": role,
        "external_id": external_id,
        "closed": closed,
        "units": units,
        "namespace": namespace,
    }
    if owner_tags:
        chosen["owner_tags"] = tuple(owner_tags)
    import_chosen(Chosen("aws", chosen, instance), database_url, plan=plan, as_json=as_json)
