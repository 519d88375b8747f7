"""Cores behind AXI4-Stream and AXI4-Lite.  A contents page.

register_map.py: what lies where; lite_slave.py: the bus; axi_core.py: the core behind both;
documents.py: the map as HTML, JSON, C and SystemRDL.
"""
