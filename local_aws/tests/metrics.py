"""What an emulator's CloudWatch has recorded."""

from datetime import UTC, datetime, timedelta

from local_aws.tests.emulator_server import EmulatorServer


def statistic(
    server: EmulatorServer, namespace: str, metric: str, dimensions: dict[str, str], name: str = "Sum"
) -> list[float]:
    """Return a statistic of the last minutes, one value for each minute with data."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    datapoints = server.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=metric,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        StartTime=now - timedelta(minutes=10),
        EndTime=now + timedelta(minutes=2),
        Period=60,
        Statistics=[name],
    )["Datapoints"]
    return [point[name] for point in sorted(datapoints, key=lambda point: point["Timestamp"])]
