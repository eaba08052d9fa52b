"""What pages refer to beside each other."""

from factbook.http.requests import Reply
from factbook.web.site import assets
from factbook.web.site.page_context import PageContext


async def show(visit: PageContext) -> Reply:
    """A stylesheet, a script or a picture."""
    return assets.reply(visit.request.path)
