"""Code that the package's servers share: the playground and the Azure skill.

`server` runs an application on an address; `http` limits requests and makes JSON responses.
"""
