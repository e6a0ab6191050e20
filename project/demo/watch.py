"""What the demo does while it runs: look after the services and show the lanes, until it is asked to stop."""

import priqueue
from project.demo.interruption import Interruption
from project.demo.supervisor import Supervisor
from project.demo.table import Screen

LOOK_EVERY_S = 1.0


def run(supervisor: Supervisor, interruption: Interruption, screen: Screen) -> None:
    """Show the lanes every second; return when a signal asks for it."""
    while not interruption.wait(LOOK_EVERY_S):
        for message in supervisor.tend():
            screen.message(message)
        try:
            screen.show(priqueue.stats())
        except priqueue.PriqueueError as error:
            screen.show_unknown(str(error))
