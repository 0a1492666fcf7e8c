# expect: SF101
import json
def go(path, state, mail):
    state["status"] = "sent"
    with open(path + ".new", "x") as f:
        json.dump(state, f)
    send_mail(mail.to, mail.text)
