"""The HTML page of a comparison: `html_page` fills the template, `charts` draws, `projection` maps.

The charts are SVG, and a short script reacts to the mouse and the keyboard. A plotting library
would add several megabytes to each page (plotly), or give pictures that nobody can explore and no
screen reader can read (matplotlib).
"""
