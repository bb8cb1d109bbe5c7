"""The gateway of the bundled stack: questions in over HTTP, answers from the cache or from Triton.

A bare ASGI application on one event loop. A question is normalised and looked up in the cache; on a miss it is
tokenised and sent to Triton under a deadline, and questions that are the same wait for one inference. Everything an
incident needs is measured on the way: stage times, outcomes, and log lines with numbers.
"""
