"""Pages for people who look after a queue, the same in the admin and by ``include("priqueue.urls")``.

    routes      every address, its view and the permission it takes
    mount       where the pages hang: in the admin, or by themselves
    visit       one request to a page: who, what they may, how it is drawn
    reading     what pages know of the queue, and since when
    confirming  a question before every change; sent twice, it acts once

and a file for each page.
"""
