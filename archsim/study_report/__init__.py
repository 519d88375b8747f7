"""The report of a study: one HTML file that needs nothing else, in which points are looked at.

page       `write_study_report`: what is on the page, in which order
shown      which points are on it, and their columns
figures    the figures and what filters them, in Bokeh
study.js   what happens when a reader brushes and filters
tables     what is best, what matters, what the front has in common
"""

from archsim.study_report.page import study_report_html, write_study_report

__all__ = ["study_report_html", "write_study_report"]
