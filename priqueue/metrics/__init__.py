"""Metrics: the queue's figures as Prometheus scrapes them. Needs the extra ``metrics``.

The figures are read from the queue at each scrape. So one endpoint speaks for all processes, and a restart loses none.

    catalogue   every metric: its name, kind, unit and where its value comes from
    collector   reads the queue once and fills the catalogue
    views       who may see it
    urls        what a project includes
"""
