"""Writes rows with psycopg 3 until it is ended. See test/clients/README.md."""

import sys
import threading
import time

import psycopg

folder, key, name = sys.argv[1:]


def connect():
    with open(f"{folder}/{key}", encoding="utf-8") as uri:
        return psycopg.connect(uri.read(), autocommit=True, connect_timeout=5)


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")  # one call: two threads write
    sys.stdout.flush()


def work(worker):
    session = None
    for row in range(1, 10**9):
        try:
            session = session or connect()
            session.execute("INSERT INTO written VALUES (%s, %s)", (worker, row))
            say("ok", worker, row)
        except (psycopg.Error, OSError) as error:
            say("error", worker, row, str(error).replace("\n", " "))
            if session:
                session.close()
            session = None
            time.sleep(0.1)
        time.sleep(0.02)


for i in range(2):
    threading.Thread(target=work, args=(f"{name}-{i}",)).start()
