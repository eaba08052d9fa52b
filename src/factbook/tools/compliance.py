"""get-entity-compliance: the catalog's own facts about the completeness of an entity."""

from factbook.clock import iso
from factbook.facts import shapes
from factbook.integrations import catalog
from factbook.tools.tool import Context, EntityArguments, Tool, encode, existing


async def run(arguments: EntityArguments, context: Context) -> str:
    """The compliance shape of the entity, read from the catalog at this moment."""
    found = await existing(context.database, arguments.ref())
    values = catalog.compliance(found.compliance)
    return encode(shapes.fill(shapes.COMPLIANCE, values, {}, {"": iso(context.now)}))


TOOL = Tool(
    name="get-entity-compliance",
    title="Compliance of an entity",
    description=(
        "Says whether a catalog entity has a title, description, tags, owner, documentation and "
        "relations. Read from the catalog at the moment of the call. kind defaults to component, "
        "namespace to default. A value that cannot be determined is `unknown`, with the reason in "
        "unknownReasons."
    ),
    arguments=EntityArguments,
    output_schema=shapes.schema(shapes.COMPLIANCE),
    run=run,
)
