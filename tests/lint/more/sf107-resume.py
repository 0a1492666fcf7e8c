# expect: SF107
import time

def main(store):
    session_id = f"s{time.time_ns()}"
    store.resume_session(session_id)
