"""The web interface: pages rendered on the server that work without scripts."""

from factbook.web.routes import endpoints, nowhere
from factbook.web.sign_in import first_start
from factbook.web.site.page_context import Site

__all__ = ["Site", "endpoints", "first_start", "nowhere"]
