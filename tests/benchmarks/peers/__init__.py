"""Peers: the same job on other queues, each as its own documentation begins, without results."""
