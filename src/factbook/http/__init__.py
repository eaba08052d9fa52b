"""What every interface over HTTP shares: requests and replies, who asks, and what is counted."""
