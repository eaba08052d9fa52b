"""What can go wrong between GitHub and whoever asks, in GitHub's own words."""

from tests.fakes.faults import saying

SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)
# A secondary rate limit, which says how long to wait.
secondary_limit = saying({"message": SECONDARY}, 403, {"retry-after": "60"})
# JSON, but of no form that was agreed on.
of_another_form = saying({"data": {"r0": {"id": 1}}, "tree": 7})
