"""The example site under load for minutes, while processes of it are killed."""
