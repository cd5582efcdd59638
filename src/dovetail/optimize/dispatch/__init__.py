"""One dispatching moment on nodes: the problem and the models of the dispatcher paper."""
