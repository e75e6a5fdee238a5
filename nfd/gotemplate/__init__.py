"""Go's text/template with sprig's functions, for the templates of rules.

`parse(text)` gives a `Template`; its `render(data)` fills it. Semantics are Go 1.26's
with `missingkey=error` (spec: worker, section 6.5). See `docs/templates.md`.
"""

from nfd.gotemplate.errors import TemplateError
from nfd.gotemplate.template import MAX_SOURCE, Template, parse

__all__ = ["MAX_SOURCE", "Template", "TemplateError", "parse"]
