"""Text that would run if a page took it for markup, for a script or for an address."""

HOSTILE = (
    "<img src=x onerror=canary()>",
    "<script>canary()</script>",
    '"><svg onload=canary()>',
    "' autofocus onfocus='canary()' x='",
    "javascript:canary()",
    "javascript://127.0.0.1/%0acanary()",
    "data:text/html,<script>canary()</script>",
    "</title><script>canary()</script>",
    "<a href='javascript:canary()' autofocus>x</a>",
    "<iframe srcdoc='<script>parent.canary()</script>'></iframe>",
    "<math><mtext><table><mglyph><style><img src=x onerror=canary()>",
    "{{constructor.constructor('canary()')()}}${canary()}`${canary()}`",
    "url('javascript:canary()');background:url(x)",
    "\u202egpj.exe\u2066<img src=x onerror=canary()>\u2069\u200b",
    "<template shadowrootmode=open><img src=x onerror=canary()></template>",
    "&lt;img src=x onerror=canary()&gt;&#x3c;script&#x3e;canary()&#x3c;/script&#x3e;",
    "__proto__",
    "constructor",
)
"""`canary` is a function of every window that the tests open (browser.watch.CANARY)."""

MARKUP = HOSTILE[0]
"""The one that is planted where there is room for one alone."""
