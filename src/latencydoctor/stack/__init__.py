"""The patient: a real, small serving stack (Triton, Valkey, gateway, controller, Prometheus, Alertmanager)."""
