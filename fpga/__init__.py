"""Boards, host link and FPGA builds.  Empty until the FPGA flow lands."""
