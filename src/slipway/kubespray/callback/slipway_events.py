"""An Ansible callback: what a run does, line by line as JSON, into the file that SLIPWAY_EVENTS names.

It is brought to the Ansible server with the inventory and runs inside ansible-playbook, so it imports Ansible alone.
"""

import json
import os

from ansible.plugins.callback import CallbackBase

LONGEST = 2000  # characters of a message
DOCUMENTATION = """
name: slipway_events
type: notification
short_description: writes events of a run as lines of JSON
description: One line for each play, task and result, to the file that SLIPWAY_EVENTS names.
requirements: [enabled in configuration]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "slipway_events"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        path = os.environ.get("SLIPWAY_EVENTS")
        if not path:
            self.disabled = True
            return
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", buffering=1)

    def _write(self, event, **more):
        self._file.write(json.dumps({"event": event, **more}) + "\n")

    def v2_playbook_on_play_start(self, play):
        self._write("play", name=play.get_name().strip())

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._write("task", name=task.get_name().strip())

    def v2_playbook_on_handler_task_start(self, task):
        self._write("task", name=task.get_name().strip())

    def v2_runner_on_ok(self, result):
        self._write("ok", host=result._host.get_name(), changed=bool(result._result.get("changed")))

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._write("failed", ignored=bool(ignore_errors), **_failure(result))

    def v2_runner_on_unreachable(self, result):
        self._write("unreachable", **_failure(result))

    def v2_playbook_on_stats(self, stats):
        self._write("stats", hosts={host: stats.summarize(host) for host in sorted(stats.processed)})


def _failure(result):
    return {
        "host": result._host.get_name(),
        "task": result._task.get_name().strip(),
        "message": _message(result._result)[:LONGEST],
    }


def _message(result):
    """As Ansible reports it: the message, and what a command printed; of a loop, those of its items that failed."""
    if result.get("_ansible_no_log"):
        return "hidden: the task has no_log"
    items = [item for item in result.get("results") or () if isinstance(item, dict) and item.get("failed")]
    if items:
        return " | ".join(_message(item) for item in items[:5])
    said = [str(result[key]).strip() for key in ("msg", "stderr", "module_stderr") if result.get(key)]
    if not said and result.get("stdout"):
        said = [str(result["stdout"]).strip()[-LONGEST:]]
    return ": ".join(dict.fromkeys(said)) or "no reason was given"
