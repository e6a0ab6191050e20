"""Pages for people who look after a queue, the same in the admin and by ``include("priqueue.urls")``.

    routes      every address, its view and the permission it takes
    mount       where the pages hang: in the admin, or by themselves
    visit       one request to a page: who, what they may, how it is drawn
    reading     what pages know of the queue, and since when
    confirming  a question before every change; sent twice, it acts once
    way         from where in the list somebody came to a letter, and back to there
    taken       who took letters away, where the audit log has it

and a file for each page.
"""
