"""Asking a server over HTTP: its rate limits, when to try again, and the client that does both."""
