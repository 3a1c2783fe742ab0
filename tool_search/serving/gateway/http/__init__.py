"""The gateway over HTTP: sessions, and requests without one."""
