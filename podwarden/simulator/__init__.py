"""The embedded engine and a simulated fleet, for demo, tests and benchmarks.

Prohibited: knowing the control plane. It publishes GPUs exactly as the node agent does, through kube.devices.
"""
