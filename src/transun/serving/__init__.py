"""A server to try a saved model: predictions over HTTP, and a test of the certificate by labelled feedback."""

from transun.serving.app import create_app
from transun.serving.feedback import Feedback
from transun.serving.promise import NoPromise, Promise, promise_of
from transun.serving.service import Limits, Service

__all__ = ["Feedback", "Limits", "NoPromise", "Promise", "Service", "create_app", "promise_of"]
