# expect: SF111
from sqlalchemy import create_engine

def engine(url):
    return create_engine(url, connect_args={"options": "-c synchronous_commit=off"})
