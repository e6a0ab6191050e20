"""The HTTP door: jobs from outside, from callers that are strangers until they have proved who they are.

To be read in this order:

    urls         where it is mounted: ``path("api/", include("priqueue.api.urls"))``
    views        the operations, and what each may answer
    credentials  who asks: an API key, or a session
    bodies       what was sent: its size first, then strict JSON
    schemas      the shapes of what comes in and goes out
    submission   from what was sent to a job, or the field that is wrong
    problems     every answer that is no success; outsiders learn nothing of the inside
    document     the OpenAPI document of all that
"""
