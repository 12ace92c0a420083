"""Runs queries in a subset of CloudWatch Logs Insights' language over log events.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax.html

The subset: the commands fields, display, filter, parse, stats, sort, dedup and limit; the functions of `functions` and
`aggregates`. Anything else is refused as malformed.

Where the documentation leaves it open: a comparison with a missing field selects nothing, whatever its operator, and
so does its negation; results that nobody sorted have the latest events first; `stats` without any event has no result.
"""
