# expect: SF301
from sqlalchemy.orm import Session
import surefoot as sf
@sf.step(ignore=("session",))
def add(session: Session, o: dict) -> None:
    session.add(o)
    session.commit()
