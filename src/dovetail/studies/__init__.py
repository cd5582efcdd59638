"""Many replays, and the published tables that they reproduce."""
