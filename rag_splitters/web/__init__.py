"""Code that the package's servers share: the playground, the Azure skill and MCP.

`server` runs an application on an address; `http` limits requests and makes JSON responses.
"""
