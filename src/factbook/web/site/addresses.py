"""The addresses that people copy: of this service, as they reach it."""

from factbook.web.site.page_context import PageContext


def server(visit: PageContext) -> str:
    """The address of this service, as the settings say or as the request came."""
    public = visit.state.settings.public_url
    if public:
        return public.rstrip("/")
    # A host that is not among the allowed ones does not get here.
    host = visit.request.header(b"host") or "127.0.0.1:8000"
    return f"{visit.request.scope.get('scheme', 'http')}://{host}"
