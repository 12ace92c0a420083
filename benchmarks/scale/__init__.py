"""The whole path in virtual time, with AWS's ramps and quotas: uploads, lanes, workers."""
