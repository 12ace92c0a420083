"""What every part decides with: ids, instants, errors, messages, lanes and tenants."""
