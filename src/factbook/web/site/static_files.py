"""What pages refer to beside each other."""

from factbook.http.requests import Reply
from factbook.web.site import assets
from factbook.web.site.page_context import Visit


async def show(visit: Visit) -> Reply:
    """A stylesheet, a script or a picture."""
    return assets.reply(visit.request.path)
