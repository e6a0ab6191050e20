"""A small shop: placing an order puts work of every priority into the queue."""
