"""Measuring: chunks and their positions, what a search retrieves, faults, and how sure we are.

This folder computes and holds results. It writes no report and asks no chat model.
"""
