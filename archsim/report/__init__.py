"""The report of a result: one HTML file that needs nothing else.

page        `report_html`, `write_report`: what is on the page, in which order
figures     the figures of `archsim.plots`, each wide and narrow, as inline SVG
svg         from matplotlib's SVG to one that follows the page's colours and fonts
captions    what each figure tells the reader of this result
cards       headline figures
tables      the tables
theme       colours, for light and dark
page.html, style.css   the template and its style
"""

from archsim.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
