"""The demo: everything the shop needs, started and stopped by one command."""
