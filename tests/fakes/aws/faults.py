"""What can go wrong between AWS and whoever asks, in the words of AWS."""

from starlette.requests import Request
from starlette.responses import Response

from tests.fakes.faults import Answer, as_json, saying


def error(name: str, status: int = 400) -> Response:
    """An error of this name."""
    return as_json({"__type": name, "Message": "No."}, status)


throttled = saying({"__type": "TooManyRequestsException", "Message": "Slow down."}, 400)
denied = saying({"__type": "AccessDeniedException", "Message": "You may not."}, 400)
expired = saying({"__type": "com.amazon.coral.service#ExpiredTokenException"}, 400)
outage = saying({"__type": "ServiceException", "Message": "Try again."}, 500)
# A good status, with an error in it.
error_within = saying({"__type": "AccessDeniedException", "Message": "You may not."})


async def same_token(request: Request, answer: Answer) -> Response:
    """A page whose token leads to itself."""
    body = bytes((await answer(request)).body)
    return Response(body[:-1] + b',"NextToken":"20"}', media_type="application/json")
