"""Connects channels with topics of ROS 2: rows of doubles as std_msgs/msg/Float64MultiArray."""

from __future__ import annotations

import threading
from collections.abc import Callable

import rclpy
from bridge import arguments, connect
from rclpy.executors import SingleThreadedExecutor
from rclpy.publisher import Publisher
from std_msgs.msg import Float64MultiArray

from onbeat import aio

# Of ROS 2's own queues.
DEPTH = 10


class Node:
    """A node of ROS 2."""

    def __init__(self, name: str, topics: list[str]) -> None:
        """Make it, with publishers of these topics."""
        rclpy.init()
        self._node = rclpy.create_node(name)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._spinning = threading.Thread(target=self._executor.spin, daemon=True)
        self._publishers: dict[str, Publisher] = {
            topic: self._node.create_publisher(Float64MultiArray, topic, DEPTH) for topic in topics
        }

    def start(self, topics: list[str], take: Callable[[str, list[float]], None]) -> None:
        """Subscribe."""
        for topic in topics:

            def taken(message: Float64MultiArray, topic: str = topic) -> None:
                take(topic, list(message.data))

            self._node.create_subscription(Float64MultiArray, topic, taken, DEPTH)
        self._spinning.start()

    def send(self, topic: str, values: list[float], closing: threading.Event) -> bool:
        """Publish."""
        self._publishers[topic].publish(Float64MultiArray(data=values))
        return True

    def stop(self) -> None:
        """Leave."""
        self._executor.shutdown()
        self._spinning.join()
        self._node.destroy_node()
        rclpy.shutdown()


def main() -> None:
    """Join the run, and connect."""
    given = arguments(__doc__).parse_args()
    node = Node("onbeat_bridge", [route.topic for route in given.out])
    aio.run(lambda run: connect(run, node, given.out, given.into))


if __name__ == "__main__":
    main()
