"""gunicorn for the project: one process, a few threads, on the address given on the command line."""

wsgi_app = "project.wsgi:application"
workers = 1
threads = 4
graceful_timeout = 5
accesslog = None
# Newer versions would put a control socket into the home folder; older ones pass this name by.
control_socket_disable = True
