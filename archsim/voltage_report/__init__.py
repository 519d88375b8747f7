"""The report of a machine's memories at low voltage: one HTML file that needs nothing else.

page      `write_voltage_report`: what is on the page, in which order
figures   errors and energy over the supply; errors by layer and by bit
tables    the same as numbers
"""

from archsim.voltage_report.page import voltage_report_html, write_voltage_report

__all__ = ["voltage_report_html", "write_voltage_report"]
