"""What the package's servers share: the playground and the Azure skill.

`server` runs an application on an address; `http` has limits for requests, and JSON responses.
"""
