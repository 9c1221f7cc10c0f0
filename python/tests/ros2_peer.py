"""A node of ROS 2 that knows nothing of channels: wants a temperature, and waits until it is so."""

from __future__ import annotations

import sys
import time

import rclpy
from std_msgs.msg import Float64MultiArray


def main() -> int:
    """Publish the setpoint until the readings are near it."""
    wanted = float(sys.argv[1])
    rclpy.init()
    node = rclpy.create_node("peer")
    readings: list[list[float]] = []
    node.create_subscription(
        Float64MultiArray, "/plant/reading", lambda m: readings.append(list(m.data)), 10
    )
    publisher = node.create_publisher(Float64MultiArray, "/plant/setpoint", 10)
    last = time.monotonic() + 60
    while not (readings and readings[-1][0] > wanted - 1):
        if time.monotonic() > last:
            print(f"cold: {readings[-1:]}")
            return 1
        publisher.publish(Float64MultiArray(data=[wanted]))
        publisher.publish(Float64MultiArray(data=[wanted, wanted]))
        soon = time.monotonic() + 0.2
        while time.monotonic() < soon:
            rclpy.spin_once(node, timeout_sec=0.02)
    print(f"warm after {len(readings)} readings")
    node.destroy_node()
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
